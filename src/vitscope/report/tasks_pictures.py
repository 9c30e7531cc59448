"""What answers look like: neighbours of a picture, a mask on its way through a video, points matched between photos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from vitscope.data.davis import VideoSequence
from vitscope.data.decode import decode_image
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import Sample
from vitscope.report.style import FAINT, INK
from vitscope.tasks.davis_scores import boundary
from vitscope.tasks.keypoints import ALPHAS, correct_points
from vitscope.tasks.labelled import LabelledSet
from vitscope.tasks.study import Evidence, snapshot_frames
from vitscope.tasks.table import TASKS

RIGHT, WRONG = "#0072B2", "#D55E00"  # blue and vermilion: told apart by all common kinds of colour vision
OBJECTS = ("#F0E442", "#56B4E9", "#CC79A7", "#009E73", "#E69F00", "#D55E00", "#0072B2", "#FFFFFF")
QUERIES, NEIGHBOURS, PAIRS = 5, 7, 6
PIXELS = 320  # longer side of a picture in a figure


@dataclass(frozen=True)
class Shown:
    """A picture with a caption, framed by a colour."""

    sample: Sample
    caption: str
    colour: str


def neighbour_picture(evidence: Evidence, dataset: LabelledSet, layer: int) -> Figure:
    """A few queries and what is most alike among the labelled pictures; framed by whether the class is right."""
    assert evidence.neighbours is not None
    assert evidence.features is not None
    found, names = evidence.neighbours.neighbours[:, layer], dataset.train.classes  # (q, 10)
    rows = []
    for query in _some(len(found)):
        asked = dataset.test[int(evidence.features.test_positions[query])]
        others = [dataset.train[int(evidence.features.train_positions[n])] for n in found[query].tolist()]
        colours = [RIGHT if other.label == asked.label else WRONG for other in others]
        answers = [Shown(o, names[o.label or 0], colour) for o, colour in zip(others, colours, strict=True)]
        rows.append([Shown(asked, names[asked.label or 0], INK), *answers])
    figure = _photo_rows(rows)
    _title(figure, f"{evidence.model}: nearest neighbours at layer {layer + 1}", "left: the query; then the most alike")
    _legend(figure, "same class", "another class")
    return figure


def retrieval_picture(evidence: Evidence, dataset: RetrievalSet, name: str, layer: int) -> Figure:
    """A few queries and what was found first; images that are neither right nor wrong (junk) are left out."""
    scores = evidence.retrieved[name]
    rows = []
    for number in _some(len(scores.asked)):
        query = dataset.queries[int(scores.asked[number])]
        answers = []
        for row in scores.first[number, layer].tolist():
            if row >= 0:
                position = int(scores.known[row])
                right = position in query.easy + query.hard
                answers.append(Shown(dataset.database[position], "", RIGHT if right else WRONG))
        rows.append([Shown(dataset.query_images[int(scores.asked[number])], "", INK), *answers])
    figure = _photo_rows(rows)
    _title(figure, f"{evidence.model}: {name} at layer {layer + 1}", "left: the query; then what was found first")
    _legend(figure, "the same", "another")
    return figure


def _some(count: int) -> list[int]:
    """A few of so many, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(QUERIES, count)).round().astype(int)).tolist()


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


def video_picture(sequence: VideoSequence, evidence: Sequence[Evidence], results: pl.DataFrame) -> Figure:
    """A mask on its way: annotated frames above, then what each model's best layer makes of them."""
    frames = snapshot_frames(len(sequence))
    layers = [(some, *_best_video_layer(some, sequence.name, results)) for some in evidence if some.snapshots]
    annotated = all(sequence.masks[number] is not None for number in frames)
    rows = len(layers) + int(annotated)
    ratio = sequence.size[0] / sequence.size[1]
    figure = Figure(figsize=(0.2 + 2.3 * len(frames), (2.3 * ratio + 0.3) * rows + 0.55))
    axes = figure.subplots(rows, len(frames), squeeze=False, gridspec_kw={"wspace": 0.03, "hspace": 0.16})
    if annotated:
        for panel, number in zip(axes[0], frames, strict=True):
            _overlay(panel, sequence.frame(number), sequence.labels(number))
        axes[0, 0].set_title("annotated", fontsize=9, pad=3)
    for row, (some, layer, score) in zip(axes[int(annotated) :], layers, strict=True):
        for panel, number in zip(row, frames, strict=True):
            _overlay(panel, sequence.frame(number), some.snapshots[sequence.name][number][layer])
        beside = "" if score is None else f": J&F {score:.2f}"
        row[0].set_title(f"{some.model}, layer {layer + 1}{beside}", fontsize=9, pad=3)
    for panel, number in zip(axes[-1], frames, strict=True):
        panel.set_xlabel(f"frame {number + 1}", fontsize=8, color=FAINT, labelpad=3)
    _title(figure, f"Video: {sequence.name}", "the mask of the first frame is given, the others follow from it")
    return figure


def _best_video_layer(evidence: Evidence, sequence: str, results: pl.DataFrame) -> tuple[int, float | None]:
    """The layer (0-based) that is best on all videos, and its score on this one; a late one if none is scored."""
    video = next(task for task in TASKS if task.key == "video")
    mine = results.filter((pl.col("model") == evidence.model) & (pl.col("measure") == video.measure))
    mine = mine.filter(pl.col("protocol") == evidence.protocol)
    overall = mine.filter(pl.col("variant") == "").sort("value", descending=True)
    if overall.is_empty():
        depth = len(next(iter(evidence.snapshots[sequence].values())))
        return 3 * depth // 4, None
    best = overall["layer"][0]
    here = mine.filter(pl.col("variant").str.starts_with(f"{sequence} ") & (pl.col("layer") == best))
    return best - 1, None if here.is_empty() else float(here["value"].mean())  # type: ignore[arg-type]


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


def keypoint_picture(evidence: Evidence, dataset: KeypointSet, layer: int) -> Figure:
    """A few pairs with lines from each point to where it was found; the true place ringed where it was missed."""
    assert evidence.matches is not None
    numbers = _spread_over_categories(evidence.matches.pairs, dataset)
    figure = Figure(figsize=(9.6, 2.75 * -(-len(numbers) // 2) + 0.6))
    grid = figure.subplots(-(-len(numbers) // 2), 2, squeeze=False, gridspec_kw={"wspace": 0.06, "hspace": 0.14})
    for panel in grid.flat:
        panel.set_axis_off()
    for panel, number in zip(grid.flat, numbers, strict=False):
        _matched(panel, dataset.pairs[number], dataset, evidence.matches.predicted[number][layer])
    what = f"right: nearer than {ALPHAS[0]} of the box's longer side; ring: where it should have been"
    _title(figure, f"{evidence.model}: keypoints at layer {layer + 1}", what)
    _legend(figure, "right", "wrong")
    return figure


def _spread_over_categories(numbers: Sequence[int], dataset: KeypointSet) -> list[int]:
    """One pair of each category in turn, the ones with most points first."""
    turns: dict[str, int] = {}
    ranked = []
    for number in sorted(numbers, key=lambda n: -len(dataset.pairs[n].source_points)):
        category = dataset.pairs[number].category
        ranked.append((turns.get(category, 0), category, number))
        turns[category] = turns.get(category, 0) + 1
    return [number for _, _, number in sorted(ranked)[:PAIRS]]


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
