"""FS, full supervision: name the class of the image.

view    = augment(image)
logits  = classifier(vit(view))
loss    = cross_entropy(logits, label)            with smoothed labels
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, UpToAll
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.vit import ViT, summary

VIEW = Augmentation((0.6, 1.0), colour=0.5, hue=0.5, brightness=0.3, contrast=0.3, saturation=0.3, grey=0.1)


@dataclass(frozen=True, config=STRICT)
class SupervisedRecipe:
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # share of each label that is spread over all classes
    sees: UpToAll = 1.0  # share of a view's patches; all when half cooled
    view: Augmentation = VIEW


class Supervised(Teacher):
    key = "fs"
    needs = "labels"

    def __init__(self, vit: ViT, classes: int, recipe: SupervisedRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe or SupervisedRecipe()
        self.vit = vit
        self.classifier = nn.Linear(vit.num_features, classes)
        nn.init.zeros_(self.classifier.weight)

    @property
    def encoder(self) -> ViT:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.classifier]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        assert lesson.labels is not None
        view = normalise(self.recipe.view(to_float(lesson.images), self.vit.patch_embed.img_size))
        logits = self.classifier(summary(self.vit, view, self.seen(self.recipe.sees)))  # (B, C)
        loss = F.cross_entropy(logits, lesson.labels, label_smoothing=self.recipe.smoothing)
        return loss, {"accuracy": (logits.argmax(1) == lesson.labels).float().mean()}
