"""What answers look like: neighbours of an image, a mask on its way through a video, points matched between photos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from vitscope.core.files import file_names
from vitscope.core.results import Results
from vitscope.data.dataset import LabelledSet
from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.data.decode import decode_image
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import Sample
from vitscope.pipeline.best_layers import BestLayers
from vitscope.report.style import FAINT, INK
from vitscope.tasks.davis_scores import boundary
from vitscope.tasks.keypoints import ALPHAS, correct_points
from vitscope.tasks.video_segmentation import EXAMPLES, snapshot_frames

RIGHT, WRONG = "#0072B2", "#D55E00"  # blue and vermilion: told apart by all common kinds of colour vision
OBJECTS = ("#F0E442", "#56B4E9", "#CC79A7", "#009E73", "#E69F00", "#D55E00", "#0072B2", "#FFFFFF")
NEIGHBOURS = 7
PIXELS = 320  # longer side of an image in a figure


@dataclass(frozen=True)
class Shown:
    """An image with a caption, framed by a colour."""

    sample: Sample
    caption: str
    colour: str


@dataclass(frozen=True)
class Answer:
    """A figure of answers. name: of its file; kind: what is shown; which: whose, or of which video."""

    name: str
    kind: str
    which: str
    dataset: str
    figure: Figure


def answer_pictures(results: Results, table: BestLayers) -> Iterator[Answer]:
    """For every dataset that is at hand: what each model's best layer answers."""
    seen: set[str] = set()
    slugs = file_names(title for title, _ in table.models)
    places = file_names(dataset.title for dataset in results.datasets)
    for dataset in results.datasets:
        suffix = f"@{dataset.title}" if dataset.kind in seen else ""
        seen.add(dataset.kind)
        place = "" if not suffix else f"-{places[dataset.title]}"
        for title, _ in table.models:
            best = {
                column.task.key: cell.layer - 1
                for column, cell in table.row(title)
                if cell is not None and column.dataset == dataset.title and column.protocol == "corrected"
            }

            def of(name: str, title: str = title, suffix: str = suffix) -> torch.Tensor | None:
                return results.maps.get(f"{title}/{name}{suffix}")

            stem = f"{slugs[title]}{place}"
            if (
                isinstance(dataset, LabelledSet)
                and dataset.kind == "labelled"
                and "knn" in best
                and of("knn.queries") is not None
            ):
                figure = neighbour_picture(title, dataset, best["knn"], of)
                yield Answer(f"neighbours-{stem}", "nearest neighbours", title, dataset.title, figure)
            if isinstance(dataset, RetrievalSet) and "retrieval" in best and of("retrieval.queries") is not None:
                figure = retrieval_picture(title, dataset, best["retrieval"], of)
                yield Answer(f"found-{stem}", "retrieval", title, dataset.title, figure)
            if isinstance(dataset, KeypointSet) and "keypoints" in best and of("keypoints.pairs") is not None:
                figure = keypoint_picture(title, dataset, best["keypoints"], of)
                yield Answer(f"keypoints-{stem}", "keypoints", title, dataset.title, figure)
        if isinstance(dataset, VideoSet):
            names = file_names(sequence.name for sequence in dataset.sequences)
            for number, sequence in enumerate(dataset.sequences[:EXAMPLES]):
                shown = [title for title, _ in table.models if f"{title}/video.{number}{suffix}" in results.maps]
                if shown:
                    name = f"video-{names[sequence.name]}{place}"
                    figure = video_picture(sequence, number, shown, results, dataset.title, suffix)
                    yield Answer(name, "video", sequence.name, dataset.title, figure)


Maps = Callable[[str], torch.Tensor | None]


def _given(maps: Maps, name: str) -> torch.Tensor:
    found = maps(name)
    assert found is not None, name
    return found


def neighbour_picture(title: str, dataset: LabelledSet, layer: int, maps: Maps) -> Figure:
    """A few queries and what is most alike among the labelled images; framed by whether the class is right."""
    names = dataset.train.classes
    rows = []
    for query, found in zip(
        _given(maps, "knn.queries").tolist(), _given(maps, "knn.neighbours")[:, layer], strict=True
    ):
        asked = dataset.test[query]
        others = [dataset.train[position] for position in found.tolist()]
        colours = [RIGHT if other.label == asked.label else WRONG for other in others]
        answers = [Shown(o, names[o.label or 0], colour) for o, colour in zip(others, colours, strict=True)]
        rows.append([Shown(asked, names[asked.label or 0], INK), *answers])
    figure = _photo_rows(rows)
    _title(figure, f"{title}: nearest neighbours at layer {layer + 1}", "left: the query; then the most alike")
    _legend(figure, "same class", "another class")
    return figure


def retrieval_picture(title: str, dataset: RetrievalSet, layer: int, maps: Maps) -> Figure:
    """A few queries and what was found first; images that are neither right nor wrong (junk) are left out."""
    rows = []
    first = _given(maps, "retrieval.first")[:, layer]
    for number, found in zip(_given(maps, "retrieval.queries").tolist(), first, strict=True):
        query = dataset.queries[number]
        places = [place for place in found.tolist() if place >= 0]
        colours = [RIGHT if place in query.easy + query.hard else WRONG for place in places]
        answers = [Shown(dataset.database[p], "", colour) for p, colour in zip(places, colours, strict=True)]
        rows.append([Shown(dataset.query_images[number], "", INK), *answers])
    figure = _photo_rows(rows)
    _title(figure, f"{title}: {dataset.title} at layer {layer + 1}", "left: the query; then what was found first")
    _legend(figure, "the same", "another")
    return figure


def _photo_rows(rows: Sequence[Sequence[Shown]]) -> Figure:
    across = min(max(len(row) for row in rows), NEIGHBOURS + 1)
    captions = any(shown.caption for row in rows for shown in row)
    figure = Figure(figsize=(max(1.25 * across, 6) + 0.3, (1.42 if captions else 1.28) * len(rows) + 0.6))
    space = {"wspace": 0.12, "hspace": 0.32 if captions else 0.12}
    axes = figure.subplots(len(rows), across, squeeze=False, gridspec_kw=space)
    for panel in axes.flat:
        panel.set_axis_off()
    for panels, row in zip(axes, rows, strict=True):
        for panel, shown in zip(panels, row, strict=False):
            panel.set_axis_on()
            _photo(panel, shown.sample.load(), _short(shown.caption), shown.colour)
    return figure


def _photo(panel: Axes, picture: Image.Image, caption: str, colour: str) -> None:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.crop((left, top, left + side, top + side)).resize((160, 160), Image.Resampling.LANCZOS)
    panel.imshow(np.asarray(square))
    panel.set(xticks=[], yticks=[])
    panel.grid(False)
    for spine in panel.spines.values():
        spine.set(visible=True, color=colour, linewidth=1.0 if colour == INK else 2.6)
    panel.set_xlabel(caption, fontsize=7, color=colour, labelpad=2)


def video_picture(
    sequence: VideoSequence, number: int, models: Sequence[str], results: Results, dataset: str, suffix: str = ""
) -> Figure:
    """A mask on its way: annotated frames above, then what each model's best layer makes of them."""
    frames = snapshot_frames(len(sequence))
    annotated = all(sequence.masks[frame] is not None for frame in frames)
    rows = len(models) + int(annotated)
    ratio = sequence.size[0] / sequence.size[1]
    figure = Figure(figsize=(0.2 + 2.3 * len(frames), (2.3 * ratio + 0.3) * rows + 0.55))
    axes = figure.subplots(rows, len(frames), squeeze=False, gridspec_kw={"wspace": 0.03, "hspace": 0.16})
    if annotated:
        for panel, frame in zip(axes[0], frames, strict=True):
            _overlay(panel, sequence.frame(frame), sequence.labels(frame))
        axes[0, 0].set_title("annotated", fontsize=9, pad=3)
    for row, title in zip(axes[int(annotated) :], models, strict=True):
        masks = results.maps[f"{title}/video.{number}{suffix}"].numpy()  # (frames, h, w)
        layer = int(results.maps[f"{title}/video.layer{suffix}"])
        for panel, frame, mask in zip(row, frames, masks, strict=True):
            picture = sequence.frame(frame).resize((mask.shape[1], mask.shape[0]), Image.Resampling.BICUBIC)
            _overlay(panel, picture, mask)
        score = _video_score(results.table.filter(pl.col("dataset") == dataset), title, sequence.name, layer + 1)
        beside = "" if score is None else f": J&F {score:.2f}"
        row[0].set_title(f"{title}, layer {layer + 1}{beside}", fontsize=9, pad=3)
    for panel, frame in zip(axes[-1], frames, strict=True):
        panel.set_xlabel(f"frame {frame + 1}", fontsize=8, color=FAINT, labelpad=3)
    _title(figure, f"Video: {sequence.name}", "the mask of the first frame is given, the others follow from it")
    return figure


def _video_score(table: pl.DataFrame, model: str, sequence: str, layer: int) -> float | None:
    here = table.filter(
        (pl.col("model") == model)
        & (pl.col("measure") == "video_j&f")
        & (pl.col("protocol") == "corrected")
        & (pl.col("layer") == layer)
        & pl.col("variant").str.starts_with(f"{sequence} ")
    )
    return None if here.is_empty() else float(here["value"].mean())  # type: ignore[arg-type]


def _overlay(panel: Axes, picture: Image.Image, labels: np.ndarray | None) -> None:
    assert labels is not None
    pixels = np.asarray(picture).astype(float) / 255
    veil = 0.55 * pixels.mean(-1, keepdims=True) + 0.45  # the rest of the frame steps back
    pixels = np.where(labels[..., None] > 0, pixels, 0.35 * pixels + 0.65 * veil)
    for label in np.unique(labels[labels > 0]).tolist():
        colour = np.array([int(OBJECTS[(label - 1) % len(OBJECTS)][i : i + 2], 16) / 255 for i in (1, 3, 5)])
        mask = labels == label
        pixels[mask] = 0.55 * pixels[mask] + 0.45 * colour
        edge = boundary(mask)
        edge[1:] |= edge[:-1]
        edge[:, 1:] |= edge[:, :-1]
        pixels[edge] = 0.3 * colour
    panel.imshow(pixels, interpolation="antialiased")
    panel.set_axis_on()
    panel.set(xticks=[], yticks=[])
    panel.grid(False)
    for spine in panel.spines.values():
        spine.set_visible(False)


def keypoint_picture(title: str, dataset: KeypointSet, layer: int, maps: Maps) -> Figure:
    """A few pairs with lines from each point to where it was found; the true place ringed where it was missed."""
    numbers = _given(maps, "keypoints.pairs").tolist()
    figure = Figure(figsize=(9.6, 2.75 * -(-len(numbers) // 2) + 0.6))
    grid = figure.subplots(-(-len(numbers) // 2), 2, squeeze=False, gridspec_kw={"wspace": 0.06, "hspace": 0.14})
    for panel in grid.flat:
        panel.set_axis_off()
    for panel, number in zip(grid.flat, numbers, strict=False):
        _matched(panel, dataset.pairs[number], dataset, _given(maps, f"keypoints.{number}")[layer])
    what = f"right: nearer than {ALPHAS[0]} of the box's longer side; ring: where it should have been"
    _title(figure, f"{title}: keypoints at layer {layer + 1}", what)
    _legend(figure, "right", "wrong")
    return figure


def _matched(panel: Axes, pair: KeypointPair, dataset: KeypointSet, predicted: torch.Tensor) -> None:
    photos = [decode_image(dataset.images[position].path) for position in (pair.source, pair.target)]
    height = PIXELS * 2 // 3
    scales = [height / photo.height for photo in photos]
    resized = [
        p.resize((round(p.width * s), height), Image.Resampling.LANCZOS) for p, s in zip(photos, scales, strict=True)
    ]
    gap = 14
    shift = resized[0].width + gap
    canvas = Image.new("RGB", (shift + resized[1].width, height), "white")
    canvas.paste(resized[0], (0, 0))
    canvas.paste(resized[1], (shift, 0))
    panel.imshow(np.asarray(canvas), interpolation="antialiased")
    right = correct_points(predicted[None], torch.tensor(pair.target_points), pair.target_box)[0, 0]
    for (x, y), (u, v), (tx, ty), good in zip(
        pair.source_points, predicted.tolist(), pair.target_points, right.tolist(), strict=True
    ):
        colour = RIGHT if good else WRONG
        ends = ((x * scales[0], u * scales[1] + shift), (y * scales[0], v * scales[1]))
        panel.plot(*ends, color="white", lw=2.6, alpha=0.7)
        panel.plot(*ends, color=colour, lw=1.3, marker="o", ms=4.2, mec="white", mew=0.7)
        if not good:
            for edge, width in (("white", 2.6), (colour, 1.2)):
                panel.plot(tx * scales[1] + shift, ty * scales[1], "o", ms=7, mfc="none", mec=edge, mew=width)
    panel.set(xlim=(0, canvas.width), ylim=(height, 0))
    caption = f"{pair.category}: {int(right.sum())} of {len(right)}"
    panel.text(0, -6, caption, fontsize=8, color=INK, va="bottom")


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _title(figure: Figure, title: str, what: str) -> None:
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.01, right=0.99, top=1 - 0.72 / height, bottom=0.3 / height)
    figure.text(0.01, 1 - 0.08 / height, title, va="top", fontsize=11, fontweight="bold", color=INK)
    figure.text(0.01, 1 - 0.3 / height, what, va="top", fontsize=8, color=FAINT)


def _legend(figure: Figure, right: str, wrong: str) -> None:
    handles = [Line2D([], [], color=colour, lw=2.6, label=text) for colour, text in ((RIGHT, right), (WRONG, wrong))]
    figure.legend(handles=handles, loc="upper right", ncols=2, fontsize=8, bbox_to_anchor=(0.995, 1.0))
