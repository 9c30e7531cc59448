"""Every teacher under bfloat16 autocast, as it is chosen on GPUs; and values of recipes that make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.teaching.test_loop import SMALL
from tests.teaching.tiny import ARCH, OPTIONS, ROTARY, ROTARY_ARCH, squares
from vitscope.core.errors import VitscopeError
from vitscope.teaching.loop import Run, Settings
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import TEACHERS, create_teacher, recipe_for


@pytest.mark.parametrize("arch", [(ARCH, OPTIONS), (ROTARY_ARCH, ROTARY)], ids=["plain", "rotary"])
@pytest.mark.parametrize("key", list(TEACHERS))
def test_every_teacher_makes_steps_in_bfloat16(tmp_path: Path, key: Any, arch: Any) -> None:
    images = squares()
    teacher = create_teacher(key, *arch, images, seed=0, recipe=recipe_for(key, SMALL.get(key)))
    before = {name: value.clone() for name, value in teacher.encoder.state_dict().items()}
    run = Run(tmp_path, teacher, images, Schedule(1, 3), Settings(batch=6, precision="bfloat16"), identity={})
    assert run.dtype == torch.bfloat16
    run.train()
    after = teacher.state_dict()
    assert all(value.dtype != torch.bfloat16 and value.isfinite().all() for value in after.values())
    assert any(not torch.equal(before[name], value) for name, value in teacher.encoder.state_dict().items())


@pytest.mark.parametrize(("asked", "found"), [("auto", torch.float32), ("float32", torch.float32)])
def test_a_cpu_computes_in_float32_unless_told_otherwise(tmp_path: Path, asked: str, found: Any) -> None:
    teacher = create_teacher("fs", ARCH, OPTIONS, squares(), seed=0)
    run = Run(tmp_path, teacher, squares(), Schedule(1, 1), Settings(precision=asked), identity={})
    assert run.dtype == found


@pytest.mark.parametrize(
    ("key", "changes", "message"),
    [
        ("mae", {"hidden_share": 1.5}, "the mae teacher's hidden_share is 1.5: input should be less than 1"),
        ("mae", {"decoder_depth": 0}, "decoder_depth is 0: input should be greater than or equal to 1"),
        ("dino", {"momentum": "fast"}, "momentum is 'fast': input should be a valid number"),
        (
            "dino",
            {"balance": "none at all"},
            "balance is 'none at all': input should be 'centre'",
        ),
        ("moco", {"temperature": 0}, "temperature is 0: input should be greater than 0"),
        ("moco", {"temperature": float("nan")}, "temperature is nan"),
        ("beit", {"masked_share": 0}, "masked_share is 0"),
        ("clip", {"text_length": 1}, "text_length is 1: input should be greater than or equal to 2"),
        ("clip", {"text_width": 30}, "text_heads is 4: it must divide text_width, which is 30"),
        ("mae", {"decoder_width": 30}, "decoder_heads is 4: it must divide decoder_width, which is 30"),
        ("fs", {"smoothing": -0.1}, "smoothing is -0.1"),
        ("fs", {"view": {"flip": 2}}, "view.flip is 2"),
        ("fs", {"view": {"scale": [0.9, 0.1]}}, "view.scale is .*from-to"),
    ],
)
def test_values_of_a_recipe_are_checked(key: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VitscopeError, match=message):
        recipe_for(key, changes)


def test_a_view_can_be_changed_in_words() -> None:
    assert recipe_for("fs", {"view": {"scale": [0.3, 1.0]}}).view.scale == (0.3, 1.0)
