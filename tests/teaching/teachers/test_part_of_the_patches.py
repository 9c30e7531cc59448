"""Teachers that sum an image up show a share of its patches until cool-down is half over, then all of them."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn

from tests.teaching.test_loop import SMALL
from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.registry import create_teacher, recipe_for
from vitscope.teaching.vit import ViT

PATCHES = 16


@pytest.mark.parametrize("key", ["fs", "clip", "dino", "moco"])
def test_every_network_sees_a_share_of_the_patches_until_it_is_half_cooled(key: Any) -> None:
    images = squares(8)
    recipe = recipe_for(key, {**SMALL.get(key, {}), **({"small_crops": 0} if key == "dino" else {}), "sees": 0.5})
    teacher = create_teacher(key, ARCH, OPTIONS, images, seed=0, recipe=recipe)
    lesson = next(iter(images.lessons(iter([range(8)]))))
    assert isinstance(lesson, Lesson)
    lengths: list[int] = []

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        lengths.append(inputs[0].shape[1])

    networks = [module for module in teacher.modules() if isinstance(module, ViT)]
    assert len(networks) == (2 if key in ("dino", "moco") else 1)
    for network in networks:
        network.blocks[0].register_forward_pre_hook(note)
    schedule = Schedule(warmup=0, total=10, cooldown=4)
    for step, expected in ((5, PATCHES // 2 + 1), (7, PATCHES // 2 + 1), (8, PATCHES + 1)):
        lengths.clear()
        teacher.progress = schedule.at(step)
        teacher.loss(lesson)
        assert lengths
        assert set(lengths) == {expected}
