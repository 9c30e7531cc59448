"""What answers look like: neighbours of an image, a mask on its way through a video, points matched between photos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from vitscope.core.files import file_names
from vitscope.core.results import Results
from vitscope.data.dataset import Dataset, LabelledSet
from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.data.decode import decode_image
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.pipeline.best_layers import BestLayers
from vitscope.report.style import FAINT, INK, sized, without_grid
from vitscope.tasks.davis_scores import boundary
from vitscope.tasks.keypoints import ALPHAS, correct_points
from vitscope.tasks.video_segmentation import EXAMPLES, snapshot_frames

RIGHT, WRONG = "#0072B2", "#D55E00"  # blue and vermilion: told apart by all common kinds of colour vision
OBJECTS = ("#F0E442", "#56B4E9", "#CC79A7", "#009E73", "#E69F00", "#D55E00", "#0072B2", "#FFFFFF")
NEIGHBOURS = 7
QUESTIONS = 6  # of a task
PIXELS = 320  # longer side of an image in a figure


@dataclass(frozen=True)
class Answer:
    """A figure of answers. name: of its file; kind: what is shown; which: the question, or the video."""

    name: str
    kind: str
    which: str
    dataset: str
    figure: Figure


@dataclass(frozen=True)
class Reply:
    """What one model answers to one question. right: whether each of its answers is; answers: as they are drawn."""

    model: str
    layer: int  # counted from 0
    answers: Any
    right: Sequence[bool]

    @property
    def title(self) -> str:
        return f"{_short(self.model, 30)}, layer {self.layer + 1}: {sum(self.right)} of {len(self.right)}"


@dataclass(frozen=True)
class Question:
    """One thing that every model was asked. asked: its image, or its pair."""

    title: str
    asked: Any
    replies: Sequence[Reply]

    @property
    def share(self) -> float:
        """Of right answers, over all models."""
        return float(np.mean([float(good) for reply in self.replies for good in reply.right] or [0.0]))


Kept = Callable[[str, str], torch.Tensor | None]  # (model, name) -> what a task kept to be looked at


def answer_pictures(results: Results, table: BestLayers) -> Iterator[Answer]:
    """For every dataset that is at hand: what each model's best layer answers, all of them side by side.

    Of the questions that tasks kept, those are shown that most models answer and those that fewest do, by turns.
    """
    seen: set[str] = set()
    places = file_names(dataset.title for dataset in results.datasets)
    for dataset in results.datasets:
        suffix = f"@{dataset.title}" if dataset.kind in seen else ""
        seen.add(dataset.kind)
        place = "" if not suffix else f"-{places[dataset.title]}"
        layers = {
            (column.task.key, title): cell.layer - 1
            for title, _ in table.models
            for column, cell in table.row(title)
            if cell is not None and column.dataset == dataset.title and column.protocol == "corrected"
        }

        def kept(title: str, name: str, suffix: str = suffix) -> torch.Tensor | None:
            return results.maps.get(f"{title}/{name}{suffix}")

        for task, (kind, file, ask, draw) in _ASKED.items():
            best = {title: layer for (key, title), layer in layers.items() if key == task}
            for number, question in enumerate(telling(ask(dataset, best, kept)), start=1):
                which = f"{number}: {question.title}, {question.share:.0%} right"
                figure = draw(question, f"{kind[0].upper()}{kind[1:]}: {question.title}")
                yield Answer(f"{file}{place}-{number}", kind, which, dataset.title, figure)
        if isinstance(dataset, VideoSet):
            names = file_names(sequence.name for sequence in dataset.sequences)
            for number, sequence in enumerate(dataset.sequences[:EXAMPLES]):
                shown = [title for title, _ in table.models if f"{title}/video.{number}{suffix}" in results.maps]
                if shown:
                    name = f"video-{names[sequence.name]}{place}"
                    figure = video_picture(sequence, number, shown, results, dataset.title, suffix)
                    yield Answer(name, "video", sequence.name, dataset.title, figure)


def telling(questions: Sequence[Question], most: int = QUESTIONS) -> list[Question]:
    """The questions that most models answer and those that fewest do, by turns: best, worst, second best ..."""
    ranked = sorted(questions, key=lambda question: -question.share)
    turns = [ranked[i // 2] if i % 2 == 0 else ranked[-1 - i // 2] for i in range(len(ranked))]
    return turns[:most]


def neighbour_questions(dataset: Dataset, best: Mapping[str, int], kept: Kept) -> list[Question]:
    """What is most alike among the labelled images; right if it is of the same class."""
    if not isinstance(dataset, LabelledSet):
        return []
    names = dataset.train.classes

    def reply(title: str, layer: int, query: int, found: torch.Tensor) -> Reply:
        others = [dataset.train[position] for position in found.tolist()[:NEIGHBOURS]]
        right = [other.label == dataset.test[query].label for other in others]
        return Reply(title, layer, [(other, names[other.label or 0]) for other in others], right)

    asked = _by_query(best, kept, "knn.queries", "knn.neighbours", reply)
    return [
        Question(names[dataset.test[query].label or 0], dataset.test[query], replies)
        for query, replies in asked.items()
    ]


def retrieval_questions(dataset: Dataset, best: Mapping[str, int], kept: Kept) -> list[Question]:
    """What is found first; right if it shows the same."""
    if not isinstance(dataset, RetrievalSet):
        return []

    def reply(title: str, layer: int, number: int, found: torch.Tensor) -> Reply:
        query = dataset.queries[number]
        places = [place for place in found.tolist() if place >= 0][:NEIGHBOURS]
        right = [place in query.easy + query.hard for place in places]
        return Reply(title, layer, [(dataset.database[place], "") for place in places], right)

    asked = _by_query(best, kept, "retrieval.queries", "retrieval.first", reply)
    return [Question(f"query {n + 1}", dataset.query_images[n], replies) for n, replies in asked.items()]


def _by_query(
    best: Mapping[str, int], kept: Kept, queries: str, answers: str, reply: Callable[..., Reply]
) -> dict[int, list[Reply]]:
    """The replies of all models to the questions that each of them was asked."""
    asked: dict[int, list[Reply]] = {}
    for title, layer in best.items():
        numbers, found = kept(title, queries), kept(title, answers)
        if numbers is not None and found is not None:
            for number, mine in zip(numbers.tolist(), found[:, layer], strict=True):
                asked.setdefault(number, []).append(reply(title, layer, number, mine))
    most = max((len(replies) for replies in asked.values()), default=0)
    return {number: replies for number, replies in asked.items() if len(replies) == most}


def keypoint_questions(dataset: Dataset, best: Mapping[str, int], kept: Kept) -> list[Question]:
    """Where the points of one photo are found in another; right if near enough."""
    if not isinstance(dataset, KeypointSet):
        return []
    asked: dict[int, list[Reply]] = {}
    for title, layer in best.items():
        numbers = kept(title, "keypoints.pairs")
        for number in [] if numbers is None else numbers.tolist():
            pair, found = dataset.pairs[number], kept(title, f"keypoints.{number}")
            assert found is not None, number
            right = correct_points(found[layer, None], torch.tensor(pair.target_points), pair.target_box)[0, 0]
            asked.setdefault(number, []).append(Reply(title, layer, found[layer], right.tolist()))
    return [
        Question(f"{dataset.pairs[n].category}", (dataset.pairs[n], dataset), replies) for n, replies in asked.items()
    ]


def neighbours_picture(question: Question, title: str) -> Figure:
    """The image that was asked about, and a row of answers for every model; framed by whether they are right."""
    rows = len(question.replies)
    across = max(1, *(len(reply.right) for reply in question.replies))
    captions = any(caption for reply in question.replies for _, caption in reply.answers)
    high = 1.5 if captions else 1.36
    figure = Figure(figsize=sized(1.12 * across + 2.2, high * rows + 0.75, lowest=0))
    grid = figure.add_gridspec(rows, across + 2, wspace=0.1, hspace=0.42 if captions else 0.3)
    with without_grid():
        asked = figure.add_subplot(grid[0, :2])
        asked.set_anchor("NW")
        _photo(asked, question.asked.load(), _short(question.title), INK)
        for row, reply in enumerate(question.replies):
            for column, ((sample, caption), good) in enumerate(zip(reply.answers, reply.right, strict=True)):
                panel = figure.add_subplot(grid[row, column + 2])
                _photo(panel, sample.load(), _short(caption), RIGHT if good else WRONG)
                if column == 0:
                    panel.set_title(reply.title, fontsize=8.5, pad=3)
    _title(figure, title, "left: what was asked; each row: what one model's best layer finds most alike")
    _legend(figure, "the same", "another")
    return figure


def _photo(panel: Axes, picture: Image.Image, caption: str, colour: str) -> None:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.crop((left, top, left + side, top + side)).resize((160, 160), Image.Resampling.LANCZOS)
    panel.imshow(np.asarray(square))
    panel.set(xticks=[], yticks=[])
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
    figure = Figure(figsize=sized(0.2 + 2.3 * len(frames), (2.3 * ratio + 0.3) * rows + 0.55, lowest=0))
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


def keypoint_picture(question: Question, title: str) -> Figure:
    """A pair with lines from each point to where every model finds it; the true place ringed where it was missed."""
    pair, dataset = question.asked
    across = min(2, len(question.replies))
    down = -(-len(question.replies) // across)
    figure = Figure(figsize=sized(4.8 * across, 2.75 * down + 0.6, lowest=0))
    grid = figure.subplots(down, across, squeeze=False, gridspec_kw={"wspace": 0.06, "hspace": 0.14})
    for panel in grid.flat:
        panel.set_axis_off()
    for panel, reply in zip(grid.flat, question.replies, strict=False):
        _matched(panel, pair, dataset, reply)
    what = f"right: nearer than {ALPHAS[0]} of the box's longer side; ring: where it should have been"
    _title(figure, title, what)
    _legend(figure, "right", "wrong")
    return figure


def _matched(panel: Axes, pair: KeypointPair, dataset: KeypointSet, reply: Reply) -> None:
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
    for (x, y), (u, v), (tx, ty), good in zip(
        pair.source_points, reply.answers.tolist(), pair.target_points, reply.right, strict=True
    ):
        colour = RIGHT if good else WRONG
        ends = ((x * scales[0], u * scales[1] + shift), (y * scales[0], v * scales[1]))
        panel.plot(*ends, color="white", lw=2.6, alpha=0.7)
        panel.plot(*ends, color=colour, lw=1.3, marker="o", ms=4.2, mec="white", mew=0.7)
        if not good:
            for edge, width in (("white", 2.6), (colour, 1.2)):
                panel.plot(tx * scales[1] + shift, ty * scales[1], "o", ms=7, mfc="none", mec=edge, mew=width)
    panel.set(xlim=(0, canvas.width), ylim=(height, 0))
    panel.text(0, -6, reply.title, fontsize=8.5, color=INK, va="bottom")


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


Asking = Callable[[Dataset, Mapping[str, int], Kept], list[Question]]
# task -> what it is called, what its files are called, who asks, who draws
_ASKED: dict[str, tuple[str, str, Asking, Callable[[Question, str], Figure]]] = {
    "knn": ("nearest neighbours", "neighbours", neighbour_questions, neighbours_picture),
    "retrieval": ("retrieval", "found", retrieval_questions, neighbours_picture),
    "keypoints": ("keypoints", "keypoints", keypoint_questions, keypoint_picture),
}
