"""What becomes of single tokens: their norms, how alike they are, how much of them is position, how fine they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.features.blocks import BlockStatistic
from vitscope.features.pooling import DTYPES
from vitscope.models.layout import Grid, TokenLayout

FAINTEST = 1e-3  # added to amplitudes before the logarithm, in units of white noise of the same power: 0 has no log
NORMAL = 1.959964  # of the 95 % interval


def highest_wave(grid: Grid) -> Tensor:
    """The finest wave that a grid can hold, at frequency (h // 2, w // 2): cosine and sine, (2, N).

    On even edges it is a chessboard of +1 and -1, and the sine is 0.

    >>> highest_wave((2, 2))[0].tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    h, w = grid
    turns = torch.arange(h).unsqueeze(1) * (h // 2) / h + torch.arange(w) * (w // 2) / w
    # multiples of a half turn are taken exactly: a sine of 1e-7 would be an amplitude where there is none
    phase = 2 * math.pi * (turns.double() % 1)
    both = torch.stack([phase.cos(), phase.sin()]).flatten(1)
    return both.where(both.abs() > 1e-12, 0.0)


def high_over_low(patches: Tensor, grid: Grid) -> Tensor:
    """Log amplitude at the highest frequency minus that at frequency zero, mean over channels (2202.06709).

    patches: (..., N, D) -> (...). Falls as tokens become alike; 0 on average for white noise on an even grid, and
    log(0.001 / sqrt(N)) or so where all tokens are the same.
    """
    waves = highest_wave(grid).to(patches)
    real, imaginary = (torch.einsum("n,...nd->...d", wave, patches) for wave in waves)
    power = patches.square().sum((-1, -2)) / patches.shape[-1]  # of a channel of white noise, at any frequency
    return _log_ratio(real, imaginary, patches.sum(-2), power)


def _log_ratio(real: Tensor, imaginary: Tensor, total: Tensor, power: Tensor) -> Tensor:
    """real, imaginary, total: (..., D) amplitudes; power: (...), their mean square if all frequencies were alike."""
    faintest = FAINTEST * power.sqrt().unsqueeze(-1).clamp_min(torch.finfo(power.dtype).tiny)
    high = torch.hypot(real, imaginary)
    return ((high + faintest).log() - (total.abs() + faintest).log()).mean(-1)


@dataclass(frozen=True)
class TokenRows:
    """Per image: (n, L) each, `norm` (n, L, T). `shared` and `shared_mean` are NaN for an image that is alone."""

    norm: Tensor
    cls_patch: Tensor | None  # mean cosine of CLS with the patch tokens
    patch_patch: Tensor  # mean cosine of two patch tokens
    high_over_low: Tensor
    power: Tensor  # mean squared norm of patch tokens
    shared: Tensor  # mean inner product of a patch token with the token at its place in another image
    mean_power: Tensor  # squared norm of the mean patch token
    shared_mean: Tensor  # inner product of the mean patch token with that of another image


def position_share(power: Tensor, shared: Tensor, shared_mean: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Var over p of (mean over images of x[p]) / total variance of x[p]; with a 95 % interval. (n, L) each -> (L,).

    What images share is told by products of different images, E <x_i[p], x_j[p]>: unlike the square of a mean over n
    images, it has no 1/n of noise in it. shared_mean: the same of the mean token, which is no position's.
    The interval is linearised; an image is in both factors of its products, so their deviations count twice.
    """
    ours = ~shared.isnan().any(1)
    power, shared, shared_mean = (x[ours].double() for x in (power, shared, shared_mean))
    n = len(power)
    empty = torch.full(power.shape[1:], torch.nan, dtype=torch.float64)
    if n < 2:
        return empty, empty, empty
    position = shared.mean(0) - shared_mean.mean(0)
    total = power.mean(0) - shared_mean.mean(0)
    there = total > 1e-6 * power.mean(0)  # below is rounding: tokens that are all the same have no variance
    total = total.where(there, torch.nan)
    share = position / total
    pull = 2 * (shared - shared_mean) - share * (power - 2 * shared_mean)
    reach = NORMAL * (pull / total).std(0) / math.sqrt(n)
    return share.clamp(0, 1), (share - reach).clamp(0, 1), (share + reach).clamp(0, 1)


def likeness_without_position(
    power: Tensor, shared: Tensor, mean_power: Tensor, shared_mean: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """How alike two patch tokens of an image are once the mean over images of each position is taken away.

    E <x[p] - m[p], x[q] - m[q]> / E |x[p] - m[p]|^2 over images and p != q, with a 95 % interval: (n, L) each -> (L,).
    m is never estimated: E <m[p], m[q]> is told by products of different images, as in `position_share`, and so is the
    interval linearised. count: patch tokens of an image. 0: patches say nothing of their image but where they are and
    what is there; 1: all say the same of it.
    """
    ours = ~shared.isnan().any(1)
    power, shared, mean_power, shared_mean = (x[ours].double() for x in (power, shared, mean_power, shared_mean))
    n = len(power)
    empty = torch.full(power.shape[1:], torch.nan, dtype=torch.float64)
    if n < 2 or count < 2:
        return empty, empty, empty
    within, across = ((count * mean - own) / (count - 1) for mean, own in ((mean_power, power), (shared_mean, shared)))
    rest = power.mean(0) - shared.mean(0)
    rest = rest.where(rest > 1e-6 * power.mean(0), torch.nan)  # below is rounding: position is all there is
    alike = (within.mean(0) - across.mean(0)) / rest
    pull = within - 2 * across - alike * (power - 2 * shared)
    reach = NORMAL * (pull / rest).std(0) / math.sqrt(n)
    return alike.clamp(-1, 1), (alike - reach).clamp(-1, 1), (alike + reach).clamp(-1, 1)


class TokenStatistic(BlockStatistic):
    """Norms, cosines, frequency and what images share at each position: rows per image, from one product a layer.

    Products of different images are those of one block; block: images in it. dtype: of the norms kept.
    """

    name = "tokens"
    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, dtype: str = "float32") -> None:
        super().__init__(layout, depth, block=block)
        self.dtype = DTYPES[dtype]
        self._waves = highest_wave(layout.grid).float()
        self._pending: dict[str, list[Tensor]] = {}

    def tokens(self, layer: int, x: Tensor) -> None:
        x = x.float()
        prefix, count = self.layout.prefix, self.layout.spatial
        patches = x[:, prefix:]  # (B, N, D)
        squares = torch.linalg.vecdot(x, x)  # (B, T)
        norm = squares.sqrt()
        inverse = torch.where(norm > 0, 1 / norm, 0.0)
        self._waves = self._waves.to(x.device)
        weights = x.new_empty(len(x), 4, count)
        weights[:, 0] = inverse[:, prefix:]
        weights[:, 1] = 1 / count
        weights[:, 2:] = self._waves
        units, mean, real, imaginary = torch.matmul(weights, patches).unbind(1)  # (B, D) each
        upright = (inverse[:, prefix:] > 0).sum(1)
        pairs = max(count * (count - 1), 1)
        note = self._note
        note("norm", norm)
        note("patch_patch", (torch.linalg.vecdot(units, units) - upright) / pairs)
        if self.layout.has_cls:
            note("cls_patch", torch.linalg.vecdot(x[:, 0], units) * inverse[:, 0] / count)
        note("power", power := squares[:, prefix:].mean(1))
        note("high_over_low", _log_ratio(real, imaginary, mean * count, power * count / x.shape[-1]))
        note("mean_power", mean_power := torch.linalg.vecdot(mean, mean))
        shared, shared_mean = x.new_full((2, len(x)), torch.nan)
        for block in self.blocks:
            rows, others = block.rows, len(block.places) - 1
            if others:
                alike = torch.linalg.vecdot(patches[rows], patches[rows].sum(0)).mean(1)
                shared[rows] = (alike - power[rows]) / others
                alike = mean[rows] @ mean[rows].sum(0)
                shared_mean[rows] = (alike - mean_power[rows]) / others
        note("shared", shared)
        note("shared_mean", shared_mean)

    def _note(self, name: str, value: Tensor) -> None:
        self._pending.setdefault(name, []).append(value)

    def end(self) -> None:
        for name, layers in self._pending.items():
            self.put(name, torch.stack(layers, dim=1).to(self.dtype if name == "norm" else torch.float32))
        self._pending.clear()
        super().end()

    def result(self) -> TokenRows:
        rows = {name: self.rows_of(name).double() for name in TokenRows.__dataclass_fields__ if self.has_rows(name)}
        return TokenRows(**({"cls_patch": None} | rows))  # type: ignore[arg-type]


class PatchSample(BlockStatistic):
    """Some patch tokens of every layer, for their spectrum: `each` of every image, of the first images of the list.

    Which tokens follows from the image's position in the list. result(): (m, L, D).
    """

    name = "patch_sample"
    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int, *, images: int, each: int) -> None:
        super().__init__(layout, depth, block=1)
        self.images, self.each = images, min(each, layout.spatial)
        self._pending: list[Tensor] = []

    def tokens(self, layer: int, x: Tensor) -> None:
        kept = (self.batch.indices < self.images).nonzero().flatten()
        if len(kept):
            patches = x[kept.to(x.device), self.layout.prefix :]
            where = sampled_places(self.batch.indices[kept], self.layout.spatial, self.each).to(x.device)
            self._pending.append(patches.gather(1, where.unsqueeze(-1).expand(-1, -1, x.shape[-1])).float())

    def end(self) -> None:
        if self._pending:
            self.put("number", self.batch.indices[self.batch.indices < self.images])
            self.put("tokens", torch.stack(self._pending, dim=2))  # (b, each, L, D)
            self._pending.clear()
        super().end()

    def result(self) -> Tensor:
        if not self.has_rows("number"):
            return torch.empty(0, self.depth, 0)
        return self.joined("tokens")[self.joined("number").argsort()].flatten(0, 1)


def sampled_places(images: Tensor, count: int, each: int) -> Tensor:
    """Which patches of images are kept: (m,) positions in a list -> (m, each), distinct, other ones for other images.

    >>> sampled_places(torch.tensor([0, 1]), count=9, each=3).tolist()
    [[0, 3, 6], [8, 2, 5]]
    """
    start = (images * 7919) % count  # a prime larger than any grid: neighbours in the list start far apart
    return (start.unsqueeze(1) + torch.arange(each) * count // each) % count
