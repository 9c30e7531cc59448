"""Six ways to teach a Vision Transformer, and one training loop for all of them.

`teachers/` has one file per teacher that reads like the method's description; the rest is shared: augmentation, data,
optimiser, schedule, checkpoints, model cards. Imports `models` and `data` of vitscope only; but `zoo/`, the networks
that are shipped, also has an exam, which stands above all measures.
"""

from __future__ import annotations

from vitscope.teaching.teach import teach
from vitscope.teaching.teachers.base import Lesson, Teacher
from vitscope.teaching.teachers.registry import RECIPES, TEACHERS, create_teacher, recipe_for

__all__ = ["RECIPES", "TEACHERS", "Lesson", "Teacher", "create_teacher", "recipe_for", "teach"]
