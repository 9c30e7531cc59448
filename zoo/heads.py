"""What kinds of heads a network has by now, and how far they look: the phenomena that the zoo is taught for."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from vitscope.attention.analysis import AllAttention
from vitscope.attention.kinds import KINDS
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.samples import SampleList
from vitscope.menagerie import World, render
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe
from vitscope.teaching.vit import ViT
from zoo.exam.rendered import samples_of

PICTURES = 96
FIRM = 0.9  # stability from which an offset-local head counts


@dataclass(frozen=True)
class Heads:
    """counts: heads by kind; firm: offset-local ones of which the pictures leave no doubt, in words; distance: of each
    layer, mean over heads; nearest: the least of any head."""

    counts: Counter[str]
    firm: list[str]
    distance: list[float]
    nearest: float

    @property
    def local(self) -> float:
        """Share of heads that are not global."""
        return 1 - self.counts["global"] / self.counts.total()

    def __str__(self) -> str:
        kinds = ", ".join(f"{self.counts[kind]} {kind}" for kind in KINDS if self.counts[kind])
        firm = f"; {len(self.firm)} firm offset heads" if self.firm else ""
        layers = " ".join(f"{value:.2f}" for value in self.distance)
        return f"{kinds}{firm}; distance {layers}, nearest head {self.nearest:.2f}"


@lru_cache(maxsize=2)
def pictures(size: int, count: int = PICTURES) -> SampleList:
    return samples_of(render(World().scene("choose-heads", index), size) for index in range(count))


def heads_of(vit: ViT, count: int = PICTURES) -> Heads:
    """Look at a copy of the network."""
    size = vit.patch_embed.img_size
    preprocessing = Preprocessing((size[0], size[1]), (0.5,) * 3, (0.5,) * 3, "bicubic")
    backbone = Backbone("taught", copy.deepcopy(vit), preprocessing)
    study = AllAttention.of(backbone.shape)
    observe(backbone, pictures(size[0], count), [study])
    kinds, distance = study.kinds(), study.distance.result().grid.mean(0)  # (L, H)
    places = [(layer, head) for layer in range(backbone.depth) for head in range(backbone.heads)]
    firm = [
        f"{layer + 1}.{head + 1} {kinds.describe(layer, head).removeprefix('offset local: ')}"
        for layer, head in places
        if kinds.name(layer, head) == "offset local" and kinds.stability[layer, head] >= FIRM
    ]
    counts = Counter(kinds.name(layer, head) for layer, head in places)
    return Heads(counts, firm, [float(value) for value in distance.mean(1)], float(distance.min()))
