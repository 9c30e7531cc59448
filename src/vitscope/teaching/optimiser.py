"""Muon for the hidden matrices, AdamW for everything else.

Muon replaces each matrix's step by its nearest orthogonal matrix. Query, key and value projections are stored as one
matrix but are three maps, so each third is orthogonalised by itself: Muon is given views that share memory with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.teaching.teachers.base import Teacher


@dataclass(frozen=True)
class Rates:
    """Learning rates at full warmth, and weight decays (both decoupled: multiplied by the rate at each step)."""

    matrices: float = 0.02  # Muon
    others: float = 1.5e-3  # AdamW
    matrix_decay: float = 0.1
    other_decay: float = 0.05


class Optimiser:
    """Both optimisers as one."""

    def __init__(self, teacher: Teacher, rates: Rates) -> None:
        self.rates = rates
        matrices = hidden_matrices(teacher)
        taken = {id(weight) for weight, _ in matrices}
        rest = [p for p in teacher.parameters() if p.requires_grad and id(p) not in taken]
        self.parameters = [p for p in teacher.parameters() if p.requires_grad]
        self.views = [(nn.Parameter(weight.data[rows]), weight, rows) for weight, rows in matrices]
        self.muon = torch.optim.Muon(
            [view for view, _, _ in self.views], lr=rates.matrices, weight_decay=rates.matrix_decay
        )
        self.adamw = torch.optim.AdamW(
            [
                {"params": [p for p in rest if p.ndim > 1], "weight_decay": rates.other_decay},
                {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=rates.others,
            betas=(0.9, 0.98),
        )

    def step(self, factor: float) -> None:
        """One step with the learning rates times `factor`; the gradients are used up."""
        for optimiser, rate in ((self.muon, self.rates.matrices), (self.adamw, self.rates.others)):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
        for view, weight, rows in self.views:
            view.grad = None if weight.grad is None else weight.grad[rows]
        self.muon.step()
        self.adamw.step()
        for parameter in self.parameters:
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"muon": self.muon.state_dict(), "adamw": self.adamw.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.muon.load_state_dict(state["muon"])
        self.adamw.load_state_dict(state["adamw"])


def hidden_matrices(teacher: Teacher) -> list[tuple[Tensor, slice]]:
    """Weights of linear layers that are no edges, with the rows that form one map."""
    edges = {module for edge in teacher.edges() for module in edge.modules()}
    matrices: list[tuple[Tensor, slice]] = []
    for name, module in teacher.named_modules():
        if not isinstance(module, nn.Linear) or module in edges or not module.weight.requires_grad:
            continue
        maps = 3 if name.endswith(".qkv") else 1
        rows = module.out_features // maps
        matrices += [(module.weight, slice(i * rows, (i + 1) * rows)) for i in range(maps)]
    return matrices
