"""The study's noise baseline: attention and features of i.i.d. uniform noise in the shape of a ViT.

`noise:<arch>` normalises each source's attention to sum 1. `noise-paper:<arch>` is what was published: divided by the
mean over *sources*, so that rows sum to about T and columns to T; only for comparing numbers. Both are seeded by the
image's own bytes, so that an image always meets the same noise, in whatever batch or process.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

from vitscope.core.errors import UnsupportedModel

PARTS = ("embed_dim", "num_prefix_tokens", "cls_token", "patch_embed", "blocks")  # of a plain ViT


class NoiseAttention(nn.Module):
    def __init__(self, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.fused_attn = False
        self.attn_drop = nn.Identity()


class NoiseBlock(nn.Module):
    """Shows noise where a real block shows its attention, branches and norms; passes noise on."""

    def __init__(self, width: int, heads: int, *, published: bool) -> None:
        super().__init__()
        self.width, self.published = width, published
        self.attn = NoiseAttention(heads)
        self.norm1, self.norm2 = nn.Identity(), nn.Identity()
        self.drop_path1, self.drop_path2 = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor, generators: list[torch.Generator]) -> Tensor:
        tokens = x.shape[1]
        noise = torch.stack([torch.rand(self.attn.num_heads, tokens, tokens, generator=g) for g in generators])
        if self.published:
            attention = noise / noise.mean(dim=2, keepdim=True)
        else:
            attention = noise / noise.sum(dim=3, keepdim=True)
        self.attn.attn_drop(attention.to(x.device))
        self.norm1(x)
        x = x + self.drop_path1(self._features(x, generators) - x)
        self.norm2(x)
        found: Tensor = x + self.drop_path2(self._features(x, generators) - x)
        return found

    def _features(self, x: Tensor, generators: list[torch.Generator]) -> Tensor:
        return torch.stack([torch.rand(x.shape[1], self.width, generator=g) for g in generators]).to(x.device)


class NoiseTransformer(nn.Module):
    """Takes the place of a ViT of the same shape in a trace."""

    def __init__(self, like: nn.Module, *, published: bool, seed: int = 0) -> None:
        super().__init__()
        if missing := [part for part in PARTS if not hasattr(like, part)]:
            raise UnsupportedModel(
                f"{type(like).__name__} has no {missing[0]}: noise takes the shape of plain ViTs only"
            )
        self.embed_dim: int = like.embed_dim  # type: ignore[assignment]
        self.num_prefix_tokens: int = like.num_prefix_tokens  # type: ignore[assignment]
        self.cls_token = like.cls_token
        self.patch_embed = like.patch_embed
        self.seed = seed
        heads = getattr(getattr(like.blocks[0], "attn", None), "num_heads", None)  # type: ignore[index]
        if not isinstance(heads, int) or not hasattr(self.patch_embed, "patch_size"):
            raise UnsupportedModel(
                f"{type(like).__name__} has no heads or patches: noise takes the shape of plain ViTs"
            )
        depth = len(like.blocks)  # type: ignore[arg-type]
        self.blocks = nn.ModuleList(NoiseBlock(self.embed_dim, heads, published=published) for _ in range(depth))

    def forward_features(self, images: Tensor) -> Tensor:
        generators = [torch.Generator().manual_seed(self._seed_of(image)) for image in images]
        patch: tuple[int, int] = self.patch_embed.patch_size  # type: ignore[union-attr,assignment]
        tokens = self.num_prefix_tokens + (images.shape[2] // patch[0]) * (images.shape[3] // patch[1])
        x = torch.zeros(len(images), tokens, self.embed_dim, device=images.device)
        for block in self.blocks:
            x = block(x, generators)
        return x

    def _seed_of(self, image: Tensor) -> int:
        data = image.detach().float().cpu().contiguous().numpy().tobytes()
        return int.from_bytes(
            hashlib.blake2b(data, digest_size=7, salt=self.seed.to_bytes(8, "little")).digest(), "little"
        )
