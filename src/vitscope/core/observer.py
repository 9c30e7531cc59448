"""What looks on while images pass through a network."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


class Observer:
    """Sees, never writes. Only the signals in `wants` are shown; layers are 0-based. This one looks at nothing."""

    wants: frozenset[str] = frozenset()

    def attention(self, layer: int, probs: Tensor) -> None:
        """probs: (B, H, T, T), post-softmax attention from source (axis 2) to destination (axis 3)."""

    def tokens(self, layer: int, x: Tensor) -> None:
        """x: (B, T, D), the block's output before the final norm."""

    def norms(self, layer: int, part: str, x: Tensor) -> None:
        """x: (B, T, D) after norm1 (part "attention") or norm2 (part "mlp")."""

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None:
        """What the residual connection carries and what the attention or MLP branch adds, (B, T, D) each."""

    def writes(self, layer: int, mixed: Tensor, weight: Tensor) -> None:
        """mixed: (B, T, H * d), the outputs of all heads side by side; weight: (D, H * d), which writes them into the
        residual stream, layer scale included: the sum of all writes is mixed @ weight.T."""

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        """Of a network that pools by attention, once: where its query looks among the last layer's spatial tokens,
        (B, H, N), and what it makes of the image, (B, D). Other networks have nothing to show."""


@runtime_checkable
class Sweeper(Protocol):
    """An observer of attention that keeps nothing of what it is shown, and wants it early."""

    def sweep(self, layer: int, probs: Tensor, scores: Tensor | None) -> None:
        """The next few images' probs (b, H, T, T), while they are in the cache; `attention` follows with all of them.

        scores: their logarithms up to a constant per row, at most 0, where the block has them.
        """
