"""Captions for CLIP: a vocabulary of words, and a small transformer that reads them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from timm.models.vision_transformer import Block
from torch import Tensor, nn

PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<end>")


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
        return self.norm(x[torch.arange(len(x), device=x.device), end])
