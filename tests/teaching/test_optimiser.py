"""The two optimisers against torch's own on separate matrices."""

from __future__ import annotations

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vitscope.teaching.optimiser import Optimiser, Rates, hidden_matrices
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.supervised import Supervised


def lesson() -> Lesson:
    return Lesson(torch.rand(6, 3, 16, 16), torch.arange(6) % 3)


def test_query_key_and_value_are_orthogonalised_by_themselves(
    vit: VisionTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)  # torch's own in float32
    teacher = Supervised(vit, classes=3)
    nn.init.normal_(teacher.classifier.weight)
    optimiser = Optimiser(teacher, Rates(matrices=0.03, matrix_decay=0.2))
    weight = vit.blocks[0].attn.qkv.weight
    parts = [nn.Parameter(part.clone()) for part in weight.detach().chunk(3)]
    reference = torch.optim.Muon(parts, lr=0.03 * 0.5, weight_decay=0.2)
    for _ in range(2):
        teacher.loss(lesson())[0].backward()
        for part, gradient in zip(parts, weight.grad.chunk(3), strict=True):
            part.grad = gradient.clone()
        reference.step()
        optimiser.step(0.5)
        torch.testing.assert_close(weight.detach(), torch.cat([part.detach() for part in parts]), rtol=0, atol=2e-5)


def test_tall_and_wide_matrices_step_as_torch_has_it(vit: VisionTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    teacher = Supervised(vit, classes=3)
    nn.init.normal_(teacher.classifier.weight)
    weights = [vit.blocks[1].mlp.fc1.weight, vit.blocks[1].mlp.fc2.weight]
    copies = [nn.Parameter(weight.detach().clone()) for weight in weights]
    reference = torch.optim.Muon(copies, lr=0.03, weight_decay=0.2)
    optimiser = Optimiser(teacher, Rates(matrices=0.03, matrix_decay=0.2))
    for _ in range(2):
        teacher.loss(lesson())[0].backward()
        for copy, weight in zip(copies, weights, strict=True):
            copy.grad = weight.grad.clone()
        reference.step()
        optimiser.step(1.0)
        for copy, weight in zip(copies, weights, strict=True):
            torch.testing.assert_close(weight.detach(), copy.detach(), rtol=0, atol=2e-5)


def test_everything_else_is_adamw_with_decay_for_matrices_only(vit: VisionTransformer) -> None:
    teacher = Supervised(vit, classes=3)
    optimiser = Optimiser(teacher, Rates(others=1e-2, other_decay=0.3))
    copies = {
        name: nn.Parameter(dict(teacher.named_parameters())[name].detach().clone())
        for name in ("classifier.weight", "vit.pos_embed", "vit.norm.bias", "vit.patch_embed.proj.weight")
    }
    reference = torch.optim.AdamW(
        [
            {"params": [p for p in copies.values() if p.ndim > 1], "weight_decay": 0.3},
            {"params": [p for p in copies.values() if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=1e-2,
        betas=(0.9, 0.98),
    )
    teacher.loss(lesson())[0].backward()
    for name, parameter in teacher.named_parameters():
        if name in copies and parameter.grad is not None:
            copies[name].grad = parameter.grad.clone()
    reference.step()
    optimiser.step(1.0)
    for name, copy in copies.items():
        torch.testing.assert_close(dict(teacher.named_parameters())[name], copy)


def test_every_parameter_is_taught_once(vit: VisionTransformer) -> None:
    teacher = Supervised(vit, classes=3)
    optimiser = Optimiser(teacher, Rates())
    matrices = sum(weight[rows].numel() for weight, rows in optimiser.matrices)
    others = sum(p.numel() for group in optimiser.adamw.param_groups for p in group["params"])
    assert matrices + others == sum(p.numel() for p in teacher.parameters())
    shapes = sorted({(rows.stop - rows.start, weight.shape[1]) for weight, rows in hidden_matrices(teacher)})
    assert shapes == [(16, 16), (16, 64), (64, 16)]  # q, k, v and proj; fc2; fc1
