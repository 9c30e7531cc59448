"""DINO: the loss written out, the centre, the momentum teacher, and the two failures it must avoid."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch.nn import functional as F

from tests.teaching.tiny import squares
from vitscope.teaching.images import batch_at
from vitscope.teaching.optimiser import Optimiser, Rates
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.dino import Dino, DinoRecipe, agreement, entropies, koleo_loss, sinkhorn


def test_agreement_is_the_mean_over_pairs_of_different_views() -> None:
    teachers = F.softmax(torch.randn(2, 3, 5).double(), dim=2)
    students = F.log_softmax(torch.randn(4, 3, 5).double(), dim=2)
    terms = [
        -sum(float(teachers[t, b, k] * students[v, b, k]) for k in range(5))
        for t in range(2)
        for v in range(4)
        for b in range(3)
        if t != v
    ]
    assert float(agreement(teachers, students)) == pytest.approx(sum(terms) / len(terms))


def test_descriptions_are_centred_and_sharpened(any_size_vit: VisionTransformer) -> None:
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=6, teacher_temperature=0.05))
    teacher.centre.copy_(torch.linspace(-0.2, 0.2, 6))
    outputs = torch.randn(4, 6)
    exponent = ((outputs - torch.linspace(-0.2, 0.2, 6)) / 0.05).double().exp()
    torch.testing.assert_close(teacher.describe(outputs).double(), exponent / exponent.sum(1, keepdim=True))


def test_the_centre_is_the_moving_average_of_the_teachers_outputs(any_size_vit: VisionTransformer) -> None:
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=6, small_crops=0, koleo=0.0, centre_momentum=0.8))
    seen = []
    teacher.teacher_head.register_forward_hook(lambda _m, _i, output: seen.append(output.mean(0)))
    for _ in range(2):
        teacher.loss(Lesson(torch.rand(4, 3, 16, 16)))
        teacher.after_step(Schedule(warmup=0).at(0))
    torch.testing.assert_close(teacher.centre, 0.8 * 0.2 * seen[0] + 0.2 * seen[1])


def test_the_shipped_network_is_the_momentum_average_of_the_student(any_size_vit: VisionTransformer) -> None:
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=6, momentum=0.9))
    before = teacher.encoder.get_parameter("blocks.1.mlp.fc1.weight").clone()
    with torch.no_grad():
        teacher.student_vit.get_parameter("blocks.1.mlp.fc1.weight").add_(2.0)
    teacher.after_step(Schedule(warmup=0).at(0))
    torch.testing.assert_close(teacher.encoder.get_parameter("blocks.1.mlp.fc1.weight"), before + 0.2)
    teacher.loss(Lesson(torch.rand(4, 3, 16, 16)))[0].backward()
    assert all(p.grad is None for p in teacher.encoder.parameters())
    assert all(p.grad is not None for p in teacher.student_vit.parameters())


def test_the_momentum_ends_where_the_recipe_says(any_size_vit: VisionTransformer) -> None:
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=6, momentum=0.5, final_momentum=0.75))
    before = teacher.encoder.get_parameter("blocks.1.mlp.fc1.weight").clone()
    with torch.no_grad():
        teacher.student_vit.get_parameter("blocks.1.mlp.fc1.weight").add_(4.0)
    teacher.after_step(Schedule(warmup=0, total=10, cooldown=10).at(10))
    torch.testing.assert_close(teacher.encoder.get_parameter("blocks.1.mlp.fc1.weight"), before + 1.0)


def test_small_crops_are_whole_patches(any_size_vit: VisionTransformer) -> None:
    sizes = []
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=6, small_crops=3))
    teacher.student_vit.patch_embed.register_forward_hook(lambda _m, inputs, _o: sizes.append(inputs[0].shape))
    teacher.loss(Lesson(torch.rand(4, 3, 16, 16)))
    assert [tuple(size) for size in sizes] == [(8, 3, 16, 16), (12, 3, 8, 8)]


def test_sinkhorn_uses_all_prototypes_equally() -> None:
    outputs = torch.randn(64, 8) + torch.tensor([3.0] + [0.0] * 7)  # one prototype is everybody's favourite
    rows = sinkhorn(outputs, temperature=0.5, rounds=50)
    torch.testing.assert_close(rows.sum(1), torch.ones(64))
    torch.testing.assert_close(rows.sum(0), torch.full((8,), 8.0), atol=1e-3, rtol=0)


def test_koleo_is_the_log_distance_to_the_nearest_neighbour() -> None:
    features = torch.randn(5, 4).double()
    unit = features / features.norm(dim=1, keepdim=True)
    nearest = [min(float((unit[i] - unit[j]).norm()) for j in range(5) if j != i) for i in range(5)]
    assert float(koleo_loss(features)) == pytest.approx(-sum(math.log(d) for d in nearest) / 5)


def test_entropies_tell_collapse_and_uniformity() -> None:
    one = torch.zeros(1, 6, 4)
    one[..., 2] = 1
    assert {name: float(value) for name, value in entropies(one).items()} == pytest.approx(
        {"used": 0, "vague": 0}, abs=1e-6
    )
    uniform = torch.full((1, 6, 4), 0.25)
    assert {name: float(value) for name, value in entropies(uniform).items()} == pytest.approx({"used": 1, "vague": 1})


def train(vit: VisionTransformer, images: Any, recipe: Any, steps: Any) -> Any:
    """The teacher's entropies, averaged over the last ten steps of a short training."""
    teacher = Dino(vit, recipe)
    optimiser = Optimiser(teacher, Rates())
    last = []
    for step in range(steps):
        torch.manual_seed(step)
        lesson = Lesson(images.take(batch_at(step, len(images), 16, 0).tolist()))
        loss, logs = teacher.loss(lesson)
        loss.backward()
        optimiser.step(1.0)
        teacher.after_step(Schedule(warmup=0).at(step))
        last.append(logs)
    return {name: sum(float(logs[name]) for logs in last[-10:]) / 10 for name in ("used", "vague")}


@pytest.mark.parametrize("balance", ["centre", "sinkhorn"])
def test_balanced_descriptions_do_not_collapse(any_size_vit: VisionTransformer, balance: str) -> None:
    recipe = DinoRecipe(prototypes=32, small_crops=1, koleo=0.0, momentum=0.97, balance=balance)
    ends = train(any_size_vit, squares(), recipe, steps=200)
    assert ends["used"] > 0.5  # many prototypes are used,
    assert ends["used"] - ends["vague"] > 0.1  # and other ones for other images


def test_without_centring_everything_gets_the_same_description(any_size_vit: VisionTransformer) -> None:
    recipe = DinoRecipe(prototypes=32, small_crops=1, koleo=0.0, momentum=0.97, balance="none")
    assert train(any_size_vit, squares(), recipe, steps=100)["used"] < 0.05
