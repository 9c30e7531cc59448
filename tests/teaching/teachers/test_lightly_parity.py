"""DINO's loss, centre, Sinkhorn and KoLeo against lightly's."""

from __future__ import annotations

import pytest
import torch
from lightly.loss import DINOLoss, KoLeoLoss
from lightly.loss.swav_loss import sinkhorn as lightly_sinkhorn
from timm.models.vision_transformer import VisionTransformer
from torch.nn import functional as F

from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.dino import Dino, DinoRecipe, agreement, koleo_loss, sinkhorn

VIEWS, BATCH, WORDS = 5, 6, 9


def test_agreement_with_a_moving_centre(any_size_vit: VisionTransformer) -> None:
    """Several steps, so that the centre that one leaves is used by the next."""
    recipe = DinoRecipe(prototypes=WORDS, teacher_temperature=0.06, student_temperature=0.2, centre_momentum=0.7)
    teacher = Dino(any_size_vit, recipe)
    oracle = DINOLoss(WORDS, teacher_temp=0.06, student_temp=0.2, center_momentum=0.7)
    for step in range(4):
        looked = 0.1 * torch.randn(2, BATCH, WORDS) + torch.linspace(0, 0.3, WORDS)
        said = 0.2 * torch.randn(VIEWS, BATCH, WORDS)
        words = teacher.describe(looked.flatten(0, 1)).view_as(looked)
        mine = agreement(words, F.log_softmax(said / recipe.student_temperature, dim=2))
        torch.testing.assert_close(mine, oracle(list(looked), list(said)))
        teacher._seen = looked.flatten(0, 1).mean(0)
        teacher.after_step(Schedule(warmup=0).at(step))
        torch.testing.assert_close(teacher.centre, oracle.center.flatten())


def test_one_lesson_of_the_teacher_with_small_crops(any_size_vit: VisionTransformer) -> None:
    """The whole loss of a lesson, from what its own heads put out."""
    teacher = Dino(any_size_vit, DinoRecipe(prototypes=WORDS, small_crops=2, koleo=0.0))
    with torch.no_grad():
        teacher.centre.normal_(std=0.1)
    outputs: dict[str, list[torch.Tensor]] = {"student": [], "teacher": []}
    for who, head in (("student", teacher.student_head), ("teacher", teacher.teacher_head)):
        head.register_forward_hook(lambda _m, _i, out, who=who: outputs[who].append(out.detach()))
    loss, _ = teacher.loss(Lesson(torch.rand(BATCH, 3, 16, 16)))
    oracle = DINOLoss(WORDS, teacher_temp=0.04, student_temp=0.1)
    oracle.center = teacher.centre.view(1, 1, -1).clone()
    views = {who: torch.cat(parts).split(BATCH) for who, parts in outputs.items()}
    assert [len(views["student"]), len(views["teacher"])] == [4, 2]
    torch.testing.assert_close(loss.detach(), oracle(list(views["teacher"]), list(views["student"])))


@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_sinkhorn(rounds: int) -> None:
    outputs = 0.3 * torch.randn(24, 8)
    torch.testing.assert_close(sinkhorn(outputs, 0.1, rounds), lightly_sinkhorn(outputs, rounds, 0.1))


def test_koleo() -> None:
    features = torch.randn(12, 7)
    torch.testing.assert_close(koleo_loss(features), KoLeoLoss()(features), rtol=1e-5, atol=1e-5)
