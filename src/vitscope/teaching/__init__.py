"""Six ways to teach a Vision Transformer, and one training loop for all of them.

`teachers/` has one file per teacher that reads like the method's description; the rest is shared: augmentation, data,
optimiser, schedule, checkpoints, model cards. Imports `models` and `data` of vitscope only.
"""

from __future__ import annotations

from vitscope import _torchvision as _torchvision  # must come before anything imports timm

# isort: split
from vitscope.teaching.config import TrainConfig
from vitscope.teaching.teach import Interrupted, teach
from vitscope.teaching.teachers.base import Lesson, Teacher
from vitscope.teaching.teachers.registry import RECIPES, TEACHERS, create_teacher, recipe_for

__all__ = [
    "RECIPES",
    "TEACHERS",
    "Interrupted",
    "Lesson",
    "Teacher",
    "TrainConfig",
    "create_teacher",
    "recipe_for",
    "teach",
]
