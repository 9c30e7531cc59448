"""BEiT: name the visual word of what is hidden (Bao et al. 2022).

    words   = tokenizer(view)                          one of K per patch, learned beforehand on the same images
    masked  = blocks of patches, about 40 % of them
    output  = vit(view with a mask token in place of each masked patch)
    loss    = cross_entropy(classifier(output), words)    over the masked patches only

The network is the plain ViT of the other teachers (absolute positions), so that only the teaching differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.teachers.codebook import nearest_words
from vitscope.teaching.teachers.masking import block_masks
from vitscope.teaching.vit import patchify, run_blocks

VIEW = Augmentation(scale=(0.6, 1.0))


@dataclass(frozen=True)
class BeitRecipe:
    words: int = 512
    masked_share: float = 0.45
    view: Augmentation = VIEW


class Beit(Teacher):
    key = "beit"
    codebook: Tensor

    def __init__(self, vit: VisionTransformer, codebook: Tensor, recipe: BeitRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe or BeitRecipe()
        self.vit = vit
        self.register_buffer("codebook", codebook)
        self.mask_token = nn.Parameter(torch.randn(1, 1, vit.embed_dim) * 0.02)
        self.classifier = nn.Linear(vit.embed_dim, len(codebook))

    @property
    def encoder(self) -> VisionTransformer:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.classifier]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        embed = self.vit.patch_embed
        view = self.recipe.view(to_float(lesson.images), embed.img_size)
        words = nearest_words(patchify(view, embed.patch_size), self.codebook)  # (B, N)
        masked = block_masks(len(view), embed.grid_size, self.recipe.masked_share).to(view.device)  # (B, N) bool
        logits = self.classifier(self.encode(normalise(view), masked)[masked])  # (M, K)
        words = words[masked]  # (M,)
        return F.cross_entropy(logits, words), {"accuracy": (logits.argmax(1) == words).float().mean()}

    def encode(self, view: Tensor, masked: Tensor) -> Tensor:
        """The encoder's patch outputs (B, N, D) when the patches in `masked` (B, N) are hidden from it."""
        patches = torch.where(masked[..., None], self.mask_token, self.vit.patch_embed(view))
        return run_blocks(self.vit, self.vit._pos_embed(patches))[:, self.vit.num_prefix_tokens :]
