"""The network that is taught: a timm ViT, with or without rotary positions, and its parts that teachers reach into."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import torch
from timm.layers.attention import AttentionRope
from timm.models._manipulate import named_apply
from timm.models.eva import Eva, EvaBlock
from timm.models.vision_transformer import VisionTransformer, get_init_weights_vit
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.core.errors import UnsupportedModel, VitscopeError
from vitscope.models.card import read_card
from vitscope.models.checkpoints import load_checkpoint
from vitscope.models.registry import build

ViT: TypeAlias = VisionTransformer | Eva
# What a block's MLP makes of its tokens is the widest thing that is written and read again at once: while it stays in a
# core's own cache, steps of DINO and MoCo-v3 took 6 and 11 % less (busy cores, once); FS and MAE gained nothing.
CACHE, MLP = 2**22, 4  # bytes, and how much wider than the tokens


def create_encoder(arch: str, options: Mapping[str, Any], seed: int, *, any_size: bool = False) -> ViT:
    """An untaught network without a classifier: the same weights for the same architecture and seed.

    any_size: accept inputs of other sizes (small crops), interpolating the position embedding.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            vit, _ = build(arch, {**options, "dynamic_img_size": any_size})
        except VitscopeError as error:
            raise UnsupportedModel(f"cannot create '{arch}': {error}; give the name of a timm ViT") from error
        if not isinstance(vit, VisionTransformer | Eva) or (vit.pos_embed is None and not rotates(vit)):
            raise UnsupportedModel(
                f"'{arch}' is not a plain ViT with a position embedding: teach a timm vit_* architecture"
            )
        if isinstance(vit, Eva) and vit.rope_mixed:
            raise UnsupportedModel(f"'{arch}' learns its rotations: teach one with axial rotary positions")
        initialise(vit)
    return vit


def begin_with(vit: ViT, weights: Path) -> None:
    """Replace the first weights by those of a model card, or of a checkpoint in any known format."""
    load_checkpoint(vit, read_card(weights).weights if weights.suffix == ".toml" else weights)


def rotates(vit: ViT) -> bool:
    """Whether attention tells positions by rotating queries and keys."""
    return isinstance(vit, Eva) and vit.rope is not None


@torch.no_grad()
def initialise(vit: ViT) -> None:
    """Xavier weights, the last matrix of every residual branch shrunk by sqrt(2 * depth), sin-cos positions.

    Without the shrinking a deep narrow network averages its tokens away before it has learned anything. The
    position embedding is learned, but begins as the 2-D sine-cosine code: neighbours can be told apart from the start.
    """
    if isinstance(vit, VisionTransformer):
        vit.init_weights("jax")
    else:
        named_apply(get_init_weights_vit("jax"), vit)
        if vit.cls_token is not None:
            nn.init.normal_(vit.cls_token, std=1e-6)
    for name, module in vit.blocks.named_modules():
        if name.endswith(("attn.proj", "mlp.fc2")) and isinstance(module, nn.Linear):
            module.weight.div_(math.sqrt(2 * len(vit.blocks)))
    if vit.pos_embed is not None:
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


# -- the way through the network ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """What enters the blocks.

    x: (B, T, D), prefix tokens first, absolute positions added.
    rope: rotations of the patch tokens, sines and cosines (N, R) or (B, 1, N, R); None where nothing is rotated.
    """

    x: Tensor
    prefix: int
    rope: Tensor | None = None

    def keep(self, patches: Tensor) -> Tokens:
        """The prefix tokens and the patches with numbers (B, V), which keep their positions."""
        index = patches[..., None]  # (B, V, 1)
        kept = self.x[:, self.prefix :].gather(1, index.expand(-1, -1, self.x.shape[2]))
        rope = self.rope
        if rope is not None:
            rope = rope.expand(len(patches), -1, -1).gather(1, index.expand(-1, -1, rope.shape[-1]))[:, None]
        return Tokens(torch.cat([self.x[:, : self.prefix], kept], dim=1), self.prefix, rope)

    def parts(self) -> list[Tokens]:
        """The same, as many images at a time as a CPU's cache likes; all at once elsewhere."""
        images, count, width = self.x.shape
        fitting = max(1, CACHE // (MLP * count * width * self.x.element_size()))
        parts = -(-images // fitting) if self.x.device.type == "cpu" else 1
        if parts == 1:
            return [self]
        own = self.rope is not None and self.rope.ndim == 4  # each image has its own positions
        ropes = self.rope.chunk(parts) if own and self.rope is not None else [self.rope] * parts
        return [Tokens(x, self.prefix, rope) for x, rope in zip(self.x.chunk(parts), ropes, strict=False)]


def tokens_of(vit: ViT, patches: Tensor) -> Tokens:
    """The input of the blocks, of the output of `patch_embed`."""
    if isinstance(vit, Eva):
        x, rope = vit._pos_embed(patches)
        return Tokens(x, vit.num_prefix_tokens, rope)
    return Tokens(vit.patch_drop(vit._pos_embed(patches)), vit.num_prefix_tokens)


def blockwise(vit: ViT, tokens: Tokens) -> Iterator[Tensor]:
    """The output (B, T, D) of each block, before the final norm."""
    x = vit.norm_pre(tokens.x)
    if tokens.rope is None:
        for block in vit.blocks:
            x = block(x)
            yield x
        return
    turns = turns_of(tokens)
    for block in vit.blocks:
        x = rotary_block(block, x, turns) if is_plain(block) else block(x, rope=tokens.rope)
        yield x


def run_blocks(vit: ViT, tokens: Tokens) -> Tensor:
    """(B, T, D) normalised output of the last block."""
    outputs = []
    for part in tokens.parts():
        *_, last = blockwise(vit, part)
        outputs.append(last)
    found: Tensor = vit.norm(torch.cat(outputs) if len(outputs) > 1 else outputs[0])
    return found


def summary(vit: ViT, images: Tensor, kept: float = 1.0) -> Tensor:
    """(B, 3, h, w) -> (B, D): what the network says about the whole image (CLS token, or its own pooling).

    kept: share of the patches that it sees, another random choice for each image.
    """
    tokens = tokens_of(vit, vit.patch_embed(images))
    count = tokens.x.shape[1] - tokens.prefix
    if kept < 1:
        order = torch.rand(len(images), count, device=images.device).argsort(1)
        tokens = tokens.keep(order[:, : max(1, round(kept * count))])
    return vit.forward_head(run_blocks(vit, tokens), pre_logits=True)


def patchify(images: Tensor, patch: tuple[int, int]) -> Tensor:
    """(B, C, h, w) -> (B, N, p_h * p_w * C): the pixels of each patch, channels last, patches row by row."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch[0], width // patch[1]
    blocks = images.reshape(batch, channels, rows, patch[0], columns, patch[1])
    return blocks.permute(0, 2, 4, 3, 5, 1).reshape(batch, rows * columns, -1)


# -- rotary attention in few operations -----------------------------------------------------------------------------
# timm rotates with two products, a shuffle and a concatenation for queries and keys each: a quarter of a small
# network's step. Neighbouring channels are real and imaginary parts, so that one complex product turns everything.


def turns_of(tokens: Tokens) -> Tensor:
    """complex (1 or B, T, 3, 1, R / 4): how far queries and keys are turned; prefix tokens and values are not."""
    assert tokens.rope is not None
    rope = tokens.rope.squeeze(1) if tokens.rope.ndim == 4 else tokens.rope[None]  # (1 or B, N, R)
    sine, cosine = (F.pad(half, (0, 0, tokens.prefix, 0)) for half in rope[..., ::2].chunk(2, -1))  # each stands twice
    cosine[:, : tokens.prefix] = 1
    turn = torch.complex(cosine, sine)  # (1 or B, T, R / 4)
    return torch.stack([turn, turn, torch.ones_like(turn)], dim=2)[:, :, :, None]


def is_plain(block: nn.Module) -> TypeGuard[EvaBlock]:
    """Whether `rotary_block` computes what this block does."""
    attention = getattr(block, "attn", None)
    return (
        isinstance(block, EvaBlock)
        and isinstance(attention, AttentionRope)
        and attention.qkv is not None
        and attention.gate is None
        and not attention.rotate_half
        and block.gamma_1 is None
        and block.gamma_2 is None
        and isinstance(block.drop_path1, nn.Identity)
        and attention.attn_drop.p == 0
        and all(isinstance(norm, nn.Identity) for norm in (attention.q_norm, attention.k_norm, attention.norm))
    )


def rotary_block(block: EvaBlock, x: Tensor, turns: Tensor) -> Tensor:
    """The block's output (B, T, D) for tokens (B, T, D)."""
    attention, (batch, tokens, width) = block.attn, x.shape
    qkv = attention.qkv(block.norm1(x)).view(batch, tokens, 3, attention.num_heads, -1, 2)
    turned = torch.view_as_real(torch.view_as_complex(qkv.float()) * turns).flatten(4).to(qkv.dtype)
    q, k, v = (part.transpose(1, 2) for part in turned.unbind(2))  # (B, H, T, d)
    seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
    x = x + attention.proj(seen)
    found: Tensor = x + block.mlp(block.norm2(x))
    return found
