"""What becomes of a network while you train it: one line beside your own loop.

probe = vitscope.watch(model, "photos", every=1000)
for step, batch in enumerate(loader):
    ...
    probe.step(step)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from vitscope.attention.analysis import Attention
from vitscope.attention.kinds import KINDS
from vitscope.core.analysis import Analysis
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.files import make_folder
from vitscope.data.dataset import Dataset, ImageSet, LabelledSet
from vitscope.data.labelled import divide
from vitscope.data.openers import images as open_images
from vitscope.data.preprocessing import IMAGENET, Preprocessing
from vitscope.features.token_analysis import Tokens
from vitscope.models.backbone import Backbone
from vitscope.pipeline.evaluate import evaluate
from vitscope.tasks.knn import Knn
from vitscope.teaching.monitor import NEIGHBOURS, listed
from vitscope.teaching.trackers import Trackers

FILE = "watch.jsonl"


class Probe:
    """Made by `watch`. history: what was measured so far, a record for each time; file: the same as JSON lines.

    A record is `step` and, for each layer, `attention_distance` (mean over heads, in longer grid edges), `head_kinds`
    (how many heads of each kind), `rankme` and, with labels, `knn_top1` (the last two for `cls` and for patches).
    """

    def __init__(
        self,
        model: nn.Module,
        datasets: Sequence[Dataset],
        analyses: Sequence[Analysis],
        *,
        preprocessing: Preprocessing,
        every: int,
        out: Path,
    ) -> None:
        self.model, self.datasets, self.analyses = model, list(datasets), list(analyses)
        self.preprocessing, self.every = preprocessing, every
        self.history: list[dict[str, Any]] = []
        make_folder(out)
        self.file = out / FILE
        self.trackers = Trackers(out)

    def step(self, n: int) -> dict[str, Any] | None:
        """Call it after every step of training: measures at multiples of `every`, and does nothing at the others."""
        return self.measure(n) if n % self.every == 0 else None

    def measure(self, n: int) -> dict[str, Any]:
        """Measure now. The network, its mode and its gradients stay as they are, and so do random numbers."""
        device = next(self.model.parameters()).device
        # a copy: the backbone under examination is frozen and in evaluation mode, and this one is being trained
        backbone = Backbone("watched", deepcopy(self.model), self.preprocessing, device=device)
        state = torch.get_rng_state()
        try:
            table = evaluate(backbone, self.datasets, self.analyses, device=str(device)).table
        finally:
            torch.set_rng_state(state)
        record = {"step": n, **summary(table)}
        self.history.append(record)
        with self.file.open("a") as lines:
            lines.write(json.dumps(record) + "\n")
        self.trackers.tell(n, scalars(record))
        return record


def watch(
    model: nn.Module,
    images: Path | str | ImageSet | Tensor,
    labels: Tensor | Sequence[int] | None = None,
    every: int = 1000,
    *,
    out: Path | str = "runs/watch",
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    limit: int = 512,
) -> Probe:
    """A probe for your own training loop: call `probe.step(n)` in it.

    model: the ViT itself (timm's), not what it is wrapped in.
    images: a folder (class folders are labels), `vitscope.images(...)`, or uint8 (n, 3, h, w).
    labels: of images given as a tensor; with labels k-NN is measured, a seeded fifth of each class being asked about.
    out: folder for watch.jsonl, and TensorBoard's files where that is installed; an open run of W&B is told too.
    mean, std: what your training normalises with; what the model says of itself if not given.
    limit: at most so many images (seeded, balanced over classes).
    """
    if every < 1:
        raise VitscopeError(f"every = {every}: a network is watched every 1 or more steps")
    seen = _opened(images, labels).limit(limit)
    config = getattr(model, "pretrained_cfg", None) or {}
    preprocessing = Preprocessing(
        _input_size(model, images),
        _triple(mean if mean is not None else config.get("mean", IMAGENET[0])),
        _triple(std if std is not None else config.get("std", IMAGENET[1])),
    )
    datasets: list[Dataset] = [seen]
    analyses: list[Analysis] = [Attention(), Tokens()]
    if seen.samples.is_labelled:
        train, test = divide(seen.samples)
        datasets.append(LabelledSet(seen.title, train, test))
        analyses.append(Knn(ks=(min(NEIGHBOURS, len(train)),)))
    Backbone("watched", deepcopy(model), preprocessing)  # what it cannot observe is told before training
    return Probe(model, datasets, analyses, preprocessing=preprocessing, every=every, out=Path(out))


def _opened(images: Path | str | ImageSet | Tensor, labels: Tensor | Sequence[int] | None) -> ImageSet:
    if isinstance(images, Tensor):
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != 3 or not len(images):
            raise BadData(f"images must be uint8 (n, 3, h, w), not {images.dtype} {tuple(images.shape)}")
        known = None if labels is None else torch.as_tensor(labels)
        if known is not None and known.shape != (len(images),):
            raise BadData(f"{len(images)} images need as many labels, not {tuple(known.shape)}")
        return ImageSet("watched", listed(images.cpu(), known))
    if labels is not None:
        raise BadData("labels are for images given as a tensor: of a folder, class folders are the labels")
    return images if isinstance(images, ImageSet) else open_images(images)


def _input_size(model: nn.Module, images: object) -> tuple[int, int]:
    """What the network was made for; of a network that takes any size, that of the images, or 224."""
    if size := getattr(getattr(model, "patch_embed", None), "img_size", None):
        return int(size[0]), int(size[1])
    return (int(images.shape[2]), int(images.shape[3])) if isinstance(images, Tensor) else (224, 224)


def _triple(values: Sequence[float]) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue


def summary(table: pl.DataFrame) -> dict[str, Any]:
    """What a record holds, by layer, of a tidy table of one model."""

    def by_layer(measure: str, variant: str) -> list[float]:
        rows = table.filter((pl.col("measure") == measure) & pl.col("variant").str.starts_with(variant))
        means = rows.group_by("layer").agg(pl.col("value").mean()).sort("layer")
        return [round(value, 5) for value in means["value"]]

    def by_token(measure: str, variants: Mapping[str, str]) -> dict[str, list[float]]:
        found = {name: by_layer(measure, variant) for name, variant in variants.items()}
        return {name: values for name, values in found.items() if values}

    heads = table.filter(pl.col("measure") == "head_kind")
    kinds = heads.group_by("layer", "variant").agg(pl.col("value").sum()).sort("layer")
    record: dict[str, Any] = {
        "attention_distance": by_layer("attention_distance", "grid"),
        "head_kinds": {kind: [int(n) for n in kinds.filter(pl.col("variant") == kind)["value"]] for kind in KINDS},
        "rankme": by_token("rankme", {"cls": "cls", "patches": "spatial"}),
    }
    if scores := by_token("knn_top1", {"cls": "cls k=", "patches": "mean k="}):
        record["knn_top1"] = scores
    return record


def scalars(record: Mapping[str, Any], path: str = "vitscope") -> dict[str, float]:
    """A record as named numbers, layers from 1.

    >>> scalars({"step": 5, "rankme": {"cls": [3.5, 7.25]}})
    {'vitscope/rankme/cls/layer-01': 3.5, 'vitscope/rankme/cls/layer-02': 7.25}
    """
    found: dict[str, float] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= scalars(value, f"{path}/{name}")
        elif isinstance(value, list):
            found |= {f"{path}/{name}/layer-{layer:02}": float(number) for layer, number in enumerate(value, 1)}
    return found
