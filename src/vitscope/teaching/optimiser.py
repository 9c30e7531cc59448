"""Muon for the hidden matrices, AdamW for everything else.

Muon replaces each matrix's step by its nearest orthogonal matrix (Jordan et al. 2024). `torch.optim.Muon` goes from
matrix to matrix, in bfloat16. A small network has a hundred small matrices in three or four shapes; stacked by shape
they are orthogonalised together, in float32, which on a CPU is several times as fast. Query, key and value projections
are stored as one matrix but are three maps: each third is orthogonalised by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.teaching.teachers.base import Teacher

COEFFICIENTS = (3.4445, -4.775, 2.0315)  # of the quintic whose slope at zero is steepest
ROUNDS = 5
EPSILON = 1e-7


@dataclass(frozen=True)
class Rates:
    """Learning rates at full warmth, and weight decays (both decoupled: multiplied by the rate at each step)."""

    matrices: float = 0.02  # Muon
    others: float = 1.5e-3  # AdamW
    matrix_decay: float = 0.1
    other_decay: float = 0.05


class Optimiser:
    """Both optimisers as one."""

    def __init__(self, teacher: Teacher, rates: Rates, layer_decay: float = 1.0) -> None:
        self.rates = rates
        self.factors = layer_factors(teacher, layer_decay)
        self.matrices = hidden_matrices(teacher)
        taken = {id(weight) for weight, _ in self.matrices}
        rest = [p for p in teacher.parameters() if p.requires_grad and id(p) not in taken]
        self.parameters = [p for p in teacher.parameters() if p.requires_grad]
        self.muon = Muon(self.matrices, rates.matrix_decay)
        self.adamw = torch.optim.AdamW(
            [
                {
                    "params": [p for p in rest if (p.ndim > 1) is decayed and self.factors.get(id(p), 1.0) == factor],
                    "weight_decay": rates.other_decay if decayed else 0.0,
                    "factor": factor,
                }
                for factor in sorted({1.0, *self.factors.values()}, reverse=True)
                for decayed in (True, False)
            ],
            lr=rates.others,
            betas=(0.9, 0.98),
            fused=True,
        )

    def step(self, factor: float) -> None:
        """One step with the learning rates times `factor`; the gradients are used up."""
        for group in self.adamw.param_groups:
            group["lr"] = self.rates.others * factor * group["factor"]
        self.muon.step(self.rates.matrices * factor, self.factors)
        self.adamw.step()
        for parameter in self.parameters:
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"muon": self.muon.state_dict(), "adamw": self.adamw.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.muon.load_state_dict(state["muon"])
        own = [{"weight_decay": group["weight_decay"], "factor": group["factor"]} for group in self.adamw.param_groups]
        self.adamw.load_state_dict(state["adamw"])
        for group, settings in zip(self.adamw.param_groups, own, strict=True):
            group.update(settings)  # of this run, not of the one that was saved


def layer_factors(teacher: Teacher, decay: float) -> dict[int, float]:
    """Factors of the learning rate by a parameter's id: `decay` for the last block but one, its square before, ..."""
    if decay == 1:
        return {}
    depth = len(teacher.encoder.blocks)
    factors = {}
    for name, parameter in teacher.named_parameters():
        _, _, inside = name.partition("vit.")
        if inside and parameter.requires_grad and not inside.startswith(("norm.", "fc_norm.")):
            block = int(inside.split(".")[1]) if inside.startswith("blocks.") else -1
            factors[id(parameter)] = decay ** (depth - 1 - block)
    return factors


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


def orthogonalised(matrices: Tensor) -> Tensor:
    """(n, a, b), a <= b: singular values brought near one by Newton-Schulz iterations, singular vectors kept."""
    a, b, c = COEFFICIENTS
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=EPSILON)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    found: Tensor = x
    return found


class Muon:
    """Teaches matrices, given as (weight, rows): those rows of the weight are one map, and one matrix."""

    def __init__(self, matrices: Sequence[tuple[Tensor, slice]], decay: float, momentum: float = 0.95) -> None:
        self.decay, self.momentum = decay, momentum
        self.groups: dict[str, list[tuple[Tensor, slice]]] = {}
        for weight, rows in matrices:
            height, width = len(range(*rows.indices(len(weight)))), weight.shape[1]
            self.groups.setdefault(f"{height}x{width}", []).append((weight, rows))
        self.averages: dict[str, Tensor] = {}

    @torch.no_grad()
    def step(self, rate: float, factors: dict[int, float] | None = None) -> None:
        """factors: of the rate, by the id of a weight."""
        for shape, members in self.groups.items():
            gradient = torch.stack(
                [torch.zeros_like(w[rows]) if w.grad is None else w.grad[rows].float() for w, rows in members]
            )
            average = self.averages.setdefault(shape, torch.zeros_like(gradient))
            average.lerp_(gradient, 1 - self.momentum)
            step = gradient.lerp(average, self.momentum)  # Nesterov's
            tall = step.shape[1] > step.shape[2]
            step = orthogonalised(step.mT if tall else step)
            step = step.mT if tall else step
            widening = math.sqrt(max(1.0, step.shape[1] / step.shape[2]))
            for (weight, rows), its in zip(members, step.unbind(0), strict=True):
                own = rate * (factors or {}).get(id(weight), 1.0)
                weight.data[rows].mul_(1 - own * self.decay).add_(its, alpha=-own * widening)

    def state_dict(self) -> dict[str, Any]:
        return dict(self.averages)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for shape, members in self.groups.items():
            if shape in state:
                self.averages[shape] = state[shape].to(members[0][0].device)
