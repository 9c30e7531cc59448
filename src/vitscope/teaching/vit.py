"""The network that is taught: any timm VisionTransformer, its first weights, and its parts that teachers reach into."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import timm
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from vitscope.errors import UnsupportedModel


def create_encoder(arch: str, options: Mapping[str, Any], seed: int, *, any_size: bool = False) -> VisionTransformer:
    """An untaught network without a classifier: the same weights for the same architecture and seed.

    any_size: accept inputs of other sizes (small crops), interpolating the position embedding.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            vit = timm.create_model(arch, **{**options, "num_classes": 0}, dynamic_img_size=any_size)
        except (RuntimeError, TypeError) as error:
            raise UnsupportedModel(f"cannot create '{arch}': {error}; give the name of a timm ViT") from error
        if not isinstance(vit, VisionTransformer) or vit.pos_embed is None:
            raise UnsupportedModel(
                f"'{arch}' is not a plain ViT with a position embedding: teach a timm vit_* architecture"
            )
        initialise(vit)
    return vit


@torch.no_grad()
def initialise(vit: VisionTransformer) -> None:
    """Xavier weights, the last matrix of every residual branch shrunk by sqrt(2 * depth), sin-cos positions.

    Without the shrinking a deep narrow network averages its tokens away before it has learned anything. The
    position embedding is learned, but begins as the 2-D sine-cosine code: neighbours can be told apart from the start.
    """
    vit.init_weights("jax")
    for name, module in vit.blocks.named_modules():
        if name.endswith(("attn.proj", "mlp.fc2")) and isinstance(module, nn.Linear):
            module.weight.div_(math.sqrt(2 * len(vit.blocks)))
    assert vit.pos_embed is not None
    positions = sincos_positions(vit.patch_embed.grid_size, vit.embed_dim)
    prefix = vit.pos_embed.shape[1] - len(positions)
    vit.pos_embed.zero_()
    vit.pos_embed[0, prefix:] = positions


def sincos_positions(grid: tuple[int, int], width: int) -> Tensor:
    """(h * w, width): half of the channels tell the row, half the column, as sines and cosines."""
    quarter = width // 4
    frequencies = 10_000 ** -(torch.arange(quarter, dtype=torch.float64) / quarter)
    rows, columns = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    parts = []
    for place in (columns, rows):
        angle = place.reshape(-1, 1) * frequencies
        parts += [angle.sin(), angle.cos()]
    code = torch.cat(parts, 1)
    return nn.functional.pad(code, (0, width - code.shape[1])).float()


def summary(vit: VisionTransformer, images: Tensor) -> Tensor:
    """(B, 3, h, w) -> (B, D): what the network says about the whole image (CLS token, or its own pooling)."""
    return vit.forward_head(vit.forward_features(images), pre_logits=True)


def with_positions(vit: VisionTransformer, patches: Tensor) -> tuple[Tensor, Tensor]:
    """Split the input of the blocks: prefix tokens (B, P, D) and patch tokens (B, N, D), positions added."""
    tokens = vit._pos_embed(patches)
    return tokens[:, : vit.num_prefix_tokens], tokens[:, vit.num_prefix_tokens :]


def run_blocks(vit: VisionTransformer, tokens: Tensor) -> Tensor:
    """(B, T, D) tokens with positions -> (B, T, D) normalised output of the last block."""
    return vit.norm(vit.blocks(vit.norm_pre(vit.patch_drop(tokens))))


def patchify(images: Tensor, patch: tuple[int, int]) -> Tensor:
    """(B, C, h, w) -> (B, N, p_h * p_w * C): the pixels of each patch, channels last, patches row by row."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch[0], width // patch[1]
    blocks = images.reshape(batch, channels, rows, patch[0], columns, patch[1])
    return blocks.permute(0, 2, 4, 3, 5, 1).reshape(batch, rows * columns, -1)
