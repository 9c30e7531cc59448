"""How good are the features by now? k-NN of held-out images at every layer, while training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor
from torch.nn import functional as F

from vitscope.teaching.augment import normalise, to_float

NEIGHBOURS = 20
TEMPERATURE = 0.07


@dataclass(frozen=True)
class LayerScores:
    """k-NN accuracy of each layer for the CLS token (None without one) and for the mean patch token."""

    cls: list[float] | None
    patch: list[float]

    @property
    def best(self) -> float:
        return max([*(self.cls or []), *self.patch])

    @property
    def last(self) -> float:
        return self.cls[-1] if self.cls else self.patch[-1]


@dataclass(frozen=True)
class Monitor:
    """Labelled images to look up (the bank), and named sets of images to ask about.

    bank: uint8 (M, 3, h, w); bank_labels: int64 (M,); tests: name -> (images (N, 3, h, w), labels (N,)).
    """

    bank: Tensor
    bank_labels: Tensor
    tests: Mapping[str, tuple[Tensor, Tensor]]

    def __call__(self, vit: VisionTransformer) -> dict[str, LayerScores]:
        bank = layer_features(vit, self.bank)  # (L, 2, M, D)
        scores = {}
        for name, (images, labels) in self.tests.items():
            queries = layer_features(vit, images)
            cls, patch = (
                [
                    round(knn_accuracy(layer_bank, self.bank_labels, layer_queries, labels), 4)
                    for layer_bank, layer_queries in zip(bank[:, kind], queries[:, kind], strict=True)
                ]
                for kind in (0, 1)
            )
            scores[name] = LayerScores(cls if vit.has_class_token else None, patch)
        return scores


@torch.no_grad()
def layer_features(vit: VisionTransformer, images: Tensor, batch: int = 256) -> Tensor:
    """(L, 2, N, D): CLS token (or the mean again) and mean patch token of each block's output."""
    was_training = vit.training
    vit.eval()
    device = next(vit.parameters()).device
    parts = []
    for chunk in images.split(batch):
        x = vit.norm_pre(vit.patch_drop(vit._pos_embed(vit.patch_embed(normalise(to_float(chunk.to(device)))))))
        features = []
        for block in vit.blocks:
            x = block(x)
            mean = x[:, vit.num_prefix_tokens :].mean(1)
            features.append(torch.stack([x[:, 0] if vit.has_class_token else mean, mean]))
        parts.append(torch.stack(features).float().cpu())
    vit.train(was_training)
    return torch.cat(parts, dim=2)


def knn_accuracy(bank: Tensor, bank_labels: Tensor, queries: Tensor, query_labels: Tensor) -> float:
    """Share of (Q, D) queries whose weighted nearest neighbours among the (M, D) bank vote for their label."""
    similarity = F.normalize(queries, dim=1) @ F.normalize(bank, dim=1).T  # (Q, M)
    weights, neighbours = similarity.topk(min(NEIGHBOURS, len(bank)), dim=1)  # (Q, k)
    classes = int(bank_labels.max()) + 1
    votes = torch.zeros(len(queries), classes)
    votes.scatter_add_(1, bank_labels[neighbours], (weights / TEMPERATURE).exp())
    return float((votes.argmax(1) == query_labels).float().mean())
