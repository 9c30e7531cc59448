"""Features with known properties, and tiny networks, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import vitscope
from tests.conftest import make_batch
from vitscope.api import StudyResults
from vitscope.core.statistic import Statistic
from vitscope.data import openers
from vitscope.data.dataset import ImageSet, MaskSet
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.samples import SampleList
from vitscope.features.analysis import Features
from vitscope.features.objects import Objects
from vitscope.models.backbone import Backbone
from vitscope.models.registry import build
from vitscope.models.spec import Named


def tiny(name: str = "tiny", *, seed: int = 0, teaching: str = "none", depth: int = 3, **options: Any) -> Backbone:
    """A network of a few thousand parameters that takes 32 x 32 images: 4 x 4 tokens, width 24."""
    torch.manual_seed(seed)
    shape = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": depth, "num_heads": 3}
    module, _ = build("vit_tiny_patch16_224", shape | options)
    for parameter in module.parameters():  # the usual small initialisation hardly tells images apart
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return Backbone(name, module, Preprocessing(size=(32, 32)), teaching)


def inside(backbone: Backbone) -> Any:
    """The network itself, for looking at its parts."""
    return backbone.module


def blobs(n: int, width: int, classes: int, spread: float = 0.3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Gaussian clusters around random unit vectors, and the class of each point."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.nn.functional.normalize(torch.randn(classes, width, generator=generator), dim=1)
    labels = torch.arange(n) % classes
    noise = torch.randn(n, width, generator=generator) * spread / width**0.5
    return centres[labels] + noise, labels


def write_images(folder: Path, count: int, *, classes: int = 0, size: int = 32, seed: int = 0) -> Path:
    """Smooth random images; in class folders, whose images share a tint, if there are classes."""
    generator = np.random.default_rng(seed)
    tints = generator.integers(40, 216, (max(classes, 1), 3))
    for i in range(count):
        where = folder / f"class{i % classes}" if classes else folder
        where.mkdir(parents=True, exist_ok=True)
        noise = generator.integers(-40, 41, (4, 4, 3))
        coarse = (tints[i % max(classes, 1)] + noise).clip(0, 255).astype(np.uint8)
        Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).save(where / f"{i:04}.png")
    return folder


def write_masks(folder: Path, names: Sequence[str], size: int = 32) -> Path:
    """One object per image, in category 1 or 2 by turns."""
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        mask = np.zeros((size, size), np.uint8)
        mask[8:24, 8:24] = 1 + i % 2
        Image.fromarray(mask).save(folder / f"{name}.png")
    return folder


def study(
    models: Sequence[Named],
    images: Path | SampleList,
    *,
    seeds: int = 1,
    projections: bool = False,
    protocol: Literal["corrected", "paper"] = "corrected",
    dense: bool = False,
    store: Path | None = None,
    **opening: Any,
) -> StudyResults:
    """The features of models on some images, and clusters of their regions if there are masks (among `opening`)."""
    given = openers.images(images, **opening)
    datasets = [ImageSet(given.title, given.samples, given.seed)] + ([given] if isinstance(given, MaskSet) else [])
    analyses = [
        Features(protocol=protocol, cluster_seeds=seeds, projections=projections),
        Objects(protocol=protocol, cluster_seeds=seeds, dense=dense),
    ]
    return vitscope.evaluate(models, datasets, analyses, store=store, device="cpu")


def show_tokens(statistic: Statistic, layers: Iterable[Tensor], indices: Sequence[int]) -> None:
    """One batch's block outputs. layers: (n, T, D) each, of all images."""
    statistic.begin(make_batch(indices))
    for layer, x in enumerate(layers):
        statistic.tokens(layer, x[list(indices)])
    statistic.end()


def check_order_free(
    make: Callable[[], Statistic],
    show: Callable[[Statistic, range], None],
    flatten: Callable[[Any], dict[str, Tensor]],
    cuts: Sequence[int],
) -> None:
    """Shards that end at `cuts`, saved, read and merged in any order, give what one pass gives; twice is an error."""
    whole = make()
    for start, stop in pairwise(cuts):
        show(whole, range(start, stop))
    expected = flatten(whole.result())
    parts = []
    for start, stop in pairwise(cuts):
        part, again = make(), make()
        show(part, range(start, stop))
        again.load_state(part.state())
        parts.append(again)
    for order in (range(len(parts)), reversed(range(len(parts)))):
        merged = make()
        for i in order:
            merged.merge(parts[i])
        found = flatten(merged.result())
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-9, equal_nan=True)
    with pytest.raises(ValueError, match="both states"):
        whole.merge(parts[0])
