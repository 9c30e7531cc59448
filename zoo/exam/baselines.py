"""What needs no learning at all: the figures that stand beside every figure of a network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from vitscope.attention.saliency import grid_mask, iou
from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.samples import SampleList
from vitscope.models.layout import Grid
from vitscope.tasks import keypoints
from vitscope.tasks.video_segmentation import SequenceScores, VideoScores, score_frame
from zoo.exam.marks import Scores, stacked
from zoo.exam.measures import jf, labels_of, pck, species_right
from zoo.exam.papers import Papers

COLOURS = 4  # shades of red, green and blue each
TEMPLATE = 16  # pixels

TITLES = {
    "colours": "colour histogram",
    "pixels": "grey 16x16 pixels",
    "position": "copy the position",
    "first mask": "copy the first mask",
    "disc": "centred disc",
    "everything": "all patches",
    "chance": "shuffled labels",
}


def colour_histogram(images: Tensor) -> Tensor:
    """How much of a picture has each of 4 x 4 x 4 colours: uint8 (n, h, w, 3) -> (n, 64).

    Roots, so that the cosine of two pictures is how far their histograms overlap (Bhattacharyya).
    """
    step = 256 // COLOURS
    red, green, blue = (images.long() // step).flatten(1, 2).unbind(-1)  # (n, h * w) each
    code = (red * COLOURS + green) * COLOURS + blue
    counts = torch.zeros(len(images), COLOURS**3).scatter_add_(1, code, torch.ones(code.shape))
    return (counts / code.shape[1]).sqrt()


def grey_template(images: Tensor) -> Tensor:
    """16 x 16 grey pixels about their mean, the stronger form of a template: uint8 (n, h, w, 3) -> (n, 256)."""
    grey = images.float().mean(-1).unsqueeze(1)  # (n, 1, h, w)
    small = torch.nn.functional.adaptive_avg_pool2d(grey, TEMPLATE).flatten(1)
    return small - small.mean(1, keepdim=True)


def copied_positions(pairs: KeypointSet) -> keypoints.KeypointScores:
    """Every point is where it was in the other picture."""
    return keypoints.score(
        pairs,
        {number: torch.tensor([pair.source_points]) for number, pair in enumerate(pairs.pairs)},  # (1, K, 2)
    )


def copied_masks(films: VideoSet) -> VideoScores:
    """Nothing ever moves."""
    scored = []
    for sequence in films.sequences:
        labels = [sequence.labels(number) for number in range(len(sequence))]
        known = [label for label in labels if label is not None]
        frames = [score_frame(truth, known[0][None], sequence.objects) for truth in known[1:-1]]
        both = [np.stack(values, -1) for values in zip(*frames, strict=True)]  # region, boundary: (1, O, F)
        scored.append(SequenceScores(sequence.name, *both, *both))
    return VideoScores(tuple(scored))


def centred_discs(grid: Grid) -> tuple[Tensor, tuple[str, ...]]:
    """All discs about the centre of a grid that differ: bool (R, N), from the smallest up, and their names."""
    rows, columns = (torch.arange(edge) - (edge - 1) / 2 for edge in grid)
    distance = (rows[:, None].square() + columns.square()).sqrt().flatten()  # (N,), in cells
    radii = distance.unique()
    return distance <= radii[:, None], tuple(f"radius {radius:.1f} cells" for radius in radii.tolist())


def mask_iou(predicted: Tensor, samples: SampleList, grid: Grid) -> Tensor:
    """Mean IoU of fixed masks (R, N) with the creatures of pictures: (R,)."""
    objects = (np.stack([region.decode() for region in sample.annotations]) for sample in samples)
    truth = torch.stack([grid_mask(torch.from_numpy(masks).float(), grid) for masks in objects])  # (n, N)
    return iou(predicted.unsqueeze(1), truth).double().mean(1)


def measure_baselines(papers: Papers, grid: Grid) -> dict[str, dict[str, Scores]]:
    """Measure -> baseline -> scores. grid: of the networks that they stand beside."""
    discs, radii = centred_discs(grid)
    everything = torch.ones(1, grid[0] * grid[1], dtype=torch.bool)
    views = {"colours": colour_histogram, "pixels": grey_template}
    species = {test: {name: _species(papers, test, view) for name, view in views.items()} for test in ("unc", "nat")}
    return species | {
        "pck": {"position": stacked([pck(copied_positions(paper.pairs)) for paper in papers.papers])},
        "jf": {"first mask": stacked([jf(copied_masks(paper.films)) for paper in papers.papers])},
        "iou": {
            "disc": stacked([mask_iou(discs, paper.parts, grid) for paper in papers.papers], radii),
            "everything": stacked([mask_iou(everything, paper.parts, grid) for paper in papers.papers]),
        },
    }


def _species(papers: Papers, test: str, view: Callable[[Tensor], Tensor]) -> Scores:
    bank, labels = view(_pixels(papers.bank)), labels_of(papers.bank)
    asked = [getattr(paper, test) for paper in papers.papers]
    return stacked([species_right([bank], labels, [view(_pixels(some))], labels_of(some)) for some in asked])


def _pixels(samples: SampleList) -> Tensor:
    """uint8 (n, h, w, 3)."""
    return torch.from_numpy(np.stack([np.asarray(sample.load()) for sample in samples]))
