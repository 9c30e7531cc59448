"""CLIP: tell which caption belongs to which image of the batch (Radford et al. 2021).

image   = normalise(project(vit(augment(image))))
text    = normalise(project(text_encoder(caption)))
logits  = exp(scale) * image @ text^T              exp(scale) <= 100
loss    = (cross_entropy(logits, diagonal) + cross_entropy(logits^T, diagonal)) / 2
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from timm.models.vision_transformer import Block
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, Count, Positive, UpToAll, divides
from vitscope.teaching.distributed import joined, rank
from vitscope.teaching.schedule import Progress
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.vit import ViT, summary

LARGEST_SCALE = math.log(100)
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<end>")

VIEW = Augmentation(scale=(0.6, 1.0))


@dataclass(frozen=True, config=STRICT)
class ClipRecipe:
    joint: Count = 64  # width of the space that images and captions share
    text_width: Count = 64
    text_depth: Count = 2
    text_heads: Annotated[Count, divides("text_width")] = 4
    text_length: Annotated[int, Field(ge=2)] = 32  # tokens read of a caption, the end token included
    vocabulary: Count = 8192  # most frequent words kept
    first_temperature: Positive = 0.07
    sees: UpToAll = 1.0  # share of an image's patches, as in FLIP (Li et al. 2023); all when half cooled
    view: Augmentation = VIEW


class Clip(Teacher):
    key = "clip"
    needs = "captions"
    smallest_batch = 2

    def __init__(self, vit: ViT, vocabulary: Vocabulary, recipe: ClipRecipe | None = None) -> None:
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
    def encoder(self) -> ViT:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.project_image, self.project_text]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        assert lesson.captions is not None
        view = normalise(self.recipe.view(to_float(lesson.images), self.vit.patch_embed.img_size))
        captions = [said[int(torch.randint(len(said), ()))] for said in lesson.captions]
        tokens = self.vocabulary.encode(captions, self.recipe.text_length).to(view.device)
        image = F.normalize(self.project_image(summary(self.vit, view, self.seen(self.recipe.sees))), dim=1)  # (B, J)
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


# -- captions: a vocabulary of words, and a small transformer that reads them ------------------------------------


def words(caption: str) -> list[str]:
    """Lower-case words and numbers; everything else separates.

    >>> words("A red fox, seen at night.")
    ['a', 'red', 'fox', 'seen', 'at', 'night']
    """
    return re.findall(r"[^\W_]+", caption.lower())


class Vocabulary:
    """The most frequent words of the captions, in a fixed order."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.index = {word: i for i, word in enumerate((*SPECIAL, *self.words))}

    @classmethod
    def of(cls, captions: Iterable[str], size: int) -> Vocabulary:
        counts = Counter(word for caption in captions for word in words(caption))
        return cls([word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]])

    def __len__(self) -> int:
        return len(self.index)

    def encode(self, captions: Sequence[str], length: int) -> Tensor:
        """int64 (B, length): words, one end token, padding; long captions lose their tail."""
        tokens = torch.full((len(captions), length), PAD)
        for row, caption in zip(tokens, captions, strict=True):
            line = [self.index.get(word, UNKNOWN) for word in words(caption)][: length - 1]
            row[: len(line) + 1] = torch.tensor([*line, END])
        return tokens


class TextEncoder(nn.Module):
    """A pre-norm transformer over words; the end token's output stands for the caption."""

    def __init__(self, vocabulary: int, length: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.positions, std=0.01)
        self.blocks = nn.Sequential(*[Block(width, heads, qkv_bias=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 (B, T) -> (B, D)."""
        tokens = tokens[:, : int((tokens != PAD).sum(1).max())]  # what is padding everywhere need not be read
        visible = (tokens != PAD)[:, None, None, :]  # (B, 1, 1, T): nobody looks at padding
        x = self.words(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, attn_mask=visible)
        end = (tokens == END).int().argmax(1)
        found: Tensor = self.norm(x[torch.arange(len(x), device=x.device), end])
        return found
