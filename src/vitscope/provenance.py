"""Where a number came from: everything that could change it, and one digest of it all."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import torch

from vitscope import __version__
from vitscope.data.samples import SampleList
from vitscope.device import compute_dtype
from vitscope.digest import digest_of
from vitscope.models.backbone import Backbone


def versions() -> dict[str, str]:
    """Versions of what computes."""
    packages = {name: version(name) for name in ("torch", "timm", "numpy", "pillow", "scikit-learn")}
    return {"vitscope": __version__, "python": platform.python_version(), **packages}


@dataclass(frozen=True)
class Provenance:
    """What went into one model's numbers on one list of samples."""

    model: str
    weights: str  # digest of the parameters
    weights_origin: str
    preprocessing: str  # digest
    input_size: tuple[int, int]
    samples: str  # digest of the list, in order
    samples_origin: str
    count: int
    measure: str  # what was computed, such as "attention"
    settings: dict[str, Any]  # seeds, constants
    dtype: str
    device: str
    versions: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """The identity of the numbers: all of the above but where files happened to lie."""
        return digest_of({k: v for k, v in asdict(self).items() if not k.endswith("_origin")})

    def as_dict(self) -> dict[str, Any]:
        return {"digest": self.digest, **asdict(self)}


def provenance_of(backbone: Backbone, samples: SampleList, measure: str, settings: dict[str, Any]) -> Provenance:
    return Provenance(
        model=backbone.name,
        weights=backbone.weights_digest,
        weights_origin=backbone.origin,
        preprocessing=backbone.preprocessing.digest,
        input_size=backbone.preprocessing.size,
        samples=samples.digest,
        samples_origin=samples.origin,
        count=len(samples),
        measure=measure,
        settings=settings,
        dtype=str(compute_dtype(backbone.device)).removeprefix("torch."),
        device=str(torch.device(backbone.device).type),
        versions=versions(),
    )
