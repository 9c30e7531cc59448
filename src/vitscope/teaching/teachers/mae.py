"""MAE: paint what is hidden (He et al. 2022).

visible = a random quarter of the patches          the encoder sees nothing else
latent  = vit(visible)
guess   = decoder(latent, a mask token for each hidden patch)
loss    = mean squared error over the hidden patches, each target patch normalised by its own mean and deviation
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic.dataclasses import dataclass
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, Count, Share, divides
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.vit import ViT, patchify, run_blocks, sincos_positions, tokens_of

VIEW = Augmentation(scale=(0.6, 1.0))


@dataclass(frozen=True, config=STRICT)
class MaeRecipe:
    hidden_share: Share = 0.75
    decoder_width: Count = 64
    decoder_depth: Count = 2
    decoder_heads: Annotated[Count, divides("decoder_width")] = 4
    view: Augmentation = VIEW


class Mae(Teacher):
    key = "mae"
    decoder_positions: Tensor

    def __init__(self, vit: ViT, recipe: MaeRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe = recipe or MaeRecipe()
        self.vit = vit
        width = recipe.decoder_width
        self.to_decoder = nn.Linear(vit.embed_dim, width)
        self.mask_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.register_buffer("decoder_positions", sincos_positions(vit.patch_embed.grid_size, width)[None])
        self.decoder = nn.Sequential(
            *[Block(width, recipe.decoder_heads, qkv_bias=True) for _ in range(recipe.decoder_depth)]
        )
        self.decoder_norm = nn.LayerNorm(width)
        patch = vit.patch_embed.patch_size
        self.to_pixels = nn.Linear(width, patch[0] * patch[1] * 3)

    @property
    def encoder(self) -> ViT:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.to_pixels]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        view = normalise(self.recipe.view(to_float(lesson.images), self.vit.patch_embed.img_size))
        order = torch.rand(len(view), self.vit.patch_embed.num_patches, device=view.device).argsort(1)  # (B, N)
        return self.repaint(view, order)

    def repaint(self, view: Tensor, order: Tensor) -> tuple[Tensor, Logs]:
        """The error over hidden patches; `order` (B, N) numbers the patches of each image, visible ones first."""
        kept = self.visible_patches
        guess = self.decode(self.encode(view, order[:, :kept]), order)  # (B, N, P)
        target = own_scale(patchify(view, self.vit.patch_embed.patch_size))  # (B, N, P)
        error = (guess - target).square().mean(2)  # (B, N)
        seen = error.detach().gather(1, order[:, :kept]).mean()
        return error.gather(1, order[:, kept:]).mean(), {"seen_error": seen}

    @property
    def visible_patches(self) -> int:
        """Number of patches that the encoder sees, at least one."""
        return max(1, int(self.vit.patch_embed.num_patches * (1 - self.recipe.hidden_share)))

    def encode(self, view: Tensor, visible: Tensor) -> Tensor:
        """The encoder's output (B, prefix + V, D) for the patches with numbers `visible` (B, V) and no others."""
        return run_blocks(self.vit, tokens_of(self.vit, self.vit.patch_embed(view)).keep(visible))

    def decode(self, latent: Tensor, order: Tensor) -> Tensor:
        """Guessed pixels (B, N, P) of all patches; `order` (B, N) lists the visible ones first."""
        latent = self.to_decoder(latent)
        prefix, patches = latent.split([self.vit.num_prefix_tokens, latent.shape[1] - self.vit.num_prefix_tokens], 1)
        masks = self.mask_token.expand(len(order), order.shape[1] - patches.shape[1], -1)
        shuffled = torch.cat([patches, masks], dim=1)  # (B, N, W) in the order of `order`
        place = order.argsort(1)[..., None].expand_as(shuffled)
        tokens = shuffled.gather(1, place) + self.decoder_positions
        tokens = self.decoder_norm(self.decoder(torch.cat([prefix, tokens], dim=1)))
        found: Tensor = self.to_pixels(tokens[:, prefix.shape[1] :])
        return found


def own_scale(patches: Tensor) -> Tensor:
    """(B, N, P) pixels, each patch with its own mean removed and divided by its own deviation."""
    centred = patches - patches.mean(2, keepdim=True)
    variance = centred.square().sum(2, keepdim=True) / (patches.shape[2] - 1)  # `var` is several times slower here
    return centred * (variance + 1e-6).rsqrt()
