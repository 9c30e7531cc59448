"""Which token is what: the one description of a model's token sequence that every measure asks."""

from __future__ import annotations

from dataclasses import dataclass

Grid = tuple[int, int]


@dataclass(frozen=True)
class TokenLayout:
    """A sequence of `prefix` special tokens followed by `grid[0] * grid[1]` spatial tokens, row by row.

    CLS is token 0 if there is one; registers and distillation tokens are prefix tokens too.

    >>> TokenLayout(grid=(14, 14)).tokens
    197
    """

    grid: Grid
    prefix: int = 1
    has_cls: bool = True

    def __post_init__(self) -> None:
        if min(self.grid) < 1 or self.prefix < int(self.has_cls):
            raise ValueError(f"impossible token layout: {self}")

    @property
    def spatial(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def tokens(self) -> int:
        return self.prefix + self.spatial

    @property
    def centre(self) -> int:
        """Index, among the spatial tokens, of the token at the centre (the lower right one of four)."""
        return (self.grid[0] // 2) * self.grid[1] + self.grid[1] // 2
