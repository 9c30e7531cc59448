"""Six ways to teach a Vision Transformer, and one training loop for all of them.

One file per teacher (supervised, clip, dino, moco, mae, beit) reads like the method's description; the rest is shared:
augmentation, data, optimiser, schedule, checkpoints, model cards. Imports `models` and `data` of vitscope only; but the
zoo's driver also asks `exam/`, which stands above all measures.
"""

from __future__ import annotations

from vitscope.teaching.teach import teach
from vitscope.teaching.teacher import Lesson, Teacher
from vitscope.teaching.teachers import RECIPES, TEACHERS, create_teacher, recipe_for

__all__ = ["RECIPES", "TEACHERS", "Lesson", "Teacher", "create_teacher", "recipe_for", "teach"]
