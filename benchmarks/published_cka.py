"""The published torch_cka package on stored features: what the bench races and the oracle tests compare with."""

from __future__ import annotations

import contextlib
import io
import warnings

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torch_cka import CKA


class Stored(nn.Module):
    """Shows stored features, layer by layer, to whoever listens. layers: (n, T, D) each; called with row numbers."""

    def __init__(self, layers: list[Tensor]) -> None:
        super().__init__()
        self.stored = layers
        self.layers = nn.ModuleList(nn.Identity() for _ in layers)

    def forward(self, rows: Tensor) -> None:
        for module, features in zip(self.layers, self.stored, strict=True):
            module(features[rows] if len(rows) < len(features) else features)  # a whole list is not copied


def published(first: list[Tensor], second: list[Tensor], block: int) -> Tensor:
    """(layers, layers) of torch_cka, in batches of `block`."""
    loader = DataLoader([(torch.tensor(i),) for i in range(len(first[0]))], batch_size=block)  # type: ignore[arg-type,var-annotated]
    names = [[f"layers.{i}" for i in range(len(side))] for side in (first, second)]
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        both = CKA(Stored(first), Stored(second), "first", "second", model1_layers=names[0], model2_layers=names[1])
        both.compare(loader)
    matrix: Tensor = both.export()["CKA"]
    return matrix
