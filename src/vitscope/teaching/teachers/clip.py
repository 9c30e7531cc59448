"""CLIP: tell which caption belongs to which image of the batch (Radford et al. 2021).

image   = normalise(project(vit(augment(image))))
text    = normalise(project(text_encoder(caption)))
logits  = exp(scale) * image @ text^T              exp(scale) <= 100
loss    = (cross_entropy(logits, diagonal) + cross_entropy(logits^T, diagonal)) / 2
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.distributed import joined, rank
from vitscope.teaching.schedule import Progress
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.teachers.text import TextEncoder, Vocabulary
from vitscope.teaching.vit import summary

LARGEST_SCALE = math.log(100)

VIEW = Augmentation(scale=(0.6, 1.0))


@dataclass(frozen=True)
class ClipRecipe:
    joint: int = 64  # width of the space that images and captions share
    text_width: int = 64
    text_depth: int = 2
    text_heads: int = 4
    text_length: int = 32  # tokens read of a caption, the end token included
    vocabulary: int = 8192  # most frequent words kept
    first_temperature: float = 0.07
    view: Augmentation = VIEW


class Clip(Teacher):
    key = "clip"
    needs = "captions"
    smallest_batch = 2

    def __init__(self, vit: VisionTransformer, vocabulary: Vocabulary, recipe: ClipRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe = recipe or ClipRecipe()
        self.vit = vit
        self.vocabulary = vocabulary
        self.text = TextEncoder(
            len(vocabulary), recipe.text_length, recipe.text_width, recipe.text_depth, recipe.text_heads
        )
        self.project_image = nn.Linear(vit.num_features, recipe.joint, bias=False)
        self.project_text = nn.Linear(recipe.text_width, recipe.joint, bias=False)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / recipe.first_temperature)))

    @property
    def encoder(self) -> VisionTransformer:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.project_image, self.project_text]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        assert lesson.captions is not None
        view = normalise(self.recipe.view(to_float(lesson.images), self.vit.patch_embed.img_size))
        captions = [said[int(torch.randint(len(said), ()))] for said in lesson.captions]
        tokens = self.vocabulary.encode(captions, self.recipe.text_length).to(view.device)
        image = F.normalize(self.project_image(summary(self.vit, view)), dim=1)  # (B, J)
        text = F.normalize(self.project_text(self.text(tokens)), dim=1)  # (B, J)
        loss, accuracy = contrast(image, text, self.scale.exp())
        return loss, {"accuracy": accuracy, "scale": self.scale.detach().exp()}

    @torch.no_grad()
    def after_step(self, progress: Progress) -> None:
        self.scale.clamp_(max=LARGEST_SCALE)


def contrast(image: Tensor, text: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Symmetric cross entropy of (B, J) unit vectors against those of all processes; and how often the right
    caption came first."""
    own = torch.arange(len(image), device=image.device) + rank() * len(image)
    by_image = scale * image @ joined(text).T  # (B, world * B)
    by_text = scale * text @ joined(image).T
    loss = (F.cross_entropy(by_image, own) + F.cross_entropy(by_text, own)) / 2
    return loss, (by_image.argmax(1) == own).float().mean()
