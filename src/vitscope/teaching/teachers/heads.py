"""Small networks behind the encoder that are thrown away after teaching."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.distributed import JoinedBatchNorm


def batchnorm_mlp(widths: list[int]) -> nn.Sequential:
    """Linear layers with batch normalisation and ReLU between them, and a plain normalisation at the end (MoCo-v3)."""
    layers: list[nn.Module] = []
    for i, (inside, outside) in enumerate(pairwise(widths)):
        last = i == len(widths) - 2
        layers += [nn.Linear(inside, outside, bias=False), JoinedBatchNorm(outside, affine=not last)]
        if not last:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class PrototypeHead(nn.Module):
    """DINO's head: an MLP to a narrow unit vector, compared with unit prototypes."""

    def __init__(self, width: int, hidden: int, bottleneck: int, prototypes: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, bottleneck),
        )
        self.prototypes = nn.Parameter(F.normalize(torch.randn(prototypes, bottleneck), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, K): cosines in [-1, 1]."""
        return F.normalize(self.mlp(x), dim=1) @ F.normalize(self.prototypes, dim=1).T
