"""Pairs of images matched as the images come by, each once, in whatever order."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.preprocessing import Placement
from vitscope.tasks.matching import best_matches, sample


class PairMatcher:
    """Pairs are matched as soon as both of their images have come by; what no open pair needs any more is let go.

    Of a source only the features of its points are kept, so that memory holds the targets of the category in progress.
    """

    def __init__(
        self,
        dataset: KeypointSet,
        size: tuple[int, int],
        *,
        whole_pixels: bool = False,
        renormalise: bool = True,
        match_padding: bool = False,
    ) -> None:
        """size: (height, width) of the padded images. The rest are the ways of the `paper` protocol."""
        self.dataset, self.size = dataset, size
        self.whole_pixels, self.renormalise, self.match_padding = whole_pixels, renormalise, match_padding
        self.as_source: dict[int, list[int]] = defaultdict(list)
        self.as_target: dict[int, set[int]] = defaultdict(set)
        for number, pair in enumerate(dataset.pairs):
            self.as_source[pair.source].append(number)
            self.as_target[pair.target].add(number)
        self.asked: dict[int, Tensor] = {}  # pair -> features of its source points (L, K, D)
        self.maps: dict[int, Tensor] = {}
        self.predicted: dict[int, Tensor] = {}

    def add(self, image: int, maps: Tensor) -> None:
        """maps: (L, h, w, D), float32, of the padded image of this image."""
        ready = []
        if self.as_target[image]:
            self.maps[image] = maps
            ready += [number for number in self.as_target[image] if number in self.asked]
        place = Placement.of(self.dataset.sizes[image], self.size)
        for number in self.as_source[image]:
            pair = self.dataset.pairs[number]
            self.asked[number] = self._features(pair, maps, place)
            ready += [number] if pair.target in self.maps else []
        for number in dict.fromkeys(ready):
            self._match(number)

    def _features(self, pair: KeypointPair, maps: Tensor, place: Placement) -> Tensor:
        if self.whole_pixels:  # in float32, as published: it decides where a product is just below a whole number
            x, y = place.to_input_paper(torch.tensor(pair.source_points, dtype=torch.float32)).double().unbind(-1)
            x, y = x.trunc(), y.round()
        else:
            x, y = place.to_input(torch.tensor(pair.source_points, dtype=torch.float64)).unbind(-1)
        if not self.renormalise:
            maps = F.normalize(maps, dim=-1)
        cell_y, cell_x = (self.size[0] / maps.shape[1], self.size[1] / maps.shape[2])
        return sample(maps, _cells(y, cell_y), _cells(x, cell_x))

    def _match(self, number: int) -> None:
        pair = self.dataset.pairs[number]
        maps = self.maps[pair.target]
        place = Placement.of(self.dataset.sizes[pair.target], self.size)
        top, bottom, left, right = (0, self.size[0], 0, self.size[1]) if self.match_padding else place.inside
        rows, columns = torch.arange(top, bottom).double(), torch.arange(left, right).double()
        cell_y, cell_x = (self.size[0] / maps.shape[1], self.size[1] / maps.shape[2])
        best = best_matches(
            self.asked.pop(number),
            maps,
            _cells(rows, cell_y),
            _cells(columns, cell_x),
            renormalise=self.renormalise,
        ).cpu()
        pixels = torch.stack([columns[best[..., 1]], rows[best[..., 0]]], -1)  # (L, K, 2): x, y
        self.predicted[number] = place.to_image_paper(pixels) if self.whole_pixels else place.to_image(pixels)
        self.as_target[pair.target].discard(number)
        if not self.as_target[pair.target]:
            del self.maps[pair.target]


def _cells(pixels: Tensor, cell: float) -> Tensor:
    """Pixel positions in units of cells: the centre of the first cell, (cell - 1) / 2 pixels in, is 0."""
    return (pixels + 0.5) / cell - 0.5
