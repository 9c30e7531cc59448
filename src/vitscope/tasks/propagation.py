"""Labels carried from frame to frame by the likeness of features: every token asks its most alike tokens of the frames
before, near its own place, what they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

BLOCK = 16  # edge, in tokens, of the blocks of targets that are matched at once
FOLD = 16  # rows, at most, into which a row of similarities is folded to find its largest


def propagate(
    target: Tensor, contexts: list[Tensor], labels: list[Tensor], *, radius: int, neighbours: int, temperature: float
) -> Tensor:
    """Labels of one frame from those of others.

    target: (h, w, D) and contexts: M of (h, w, D), L2-normalised; labels: M of (h, w, C), a share of each class.
    Each target token takes the `neighbours` most alike tokens of all contexts within `radius` rows and columns of its
    own place, and the mean of their labels weighted by exp(cosine / temperature). Returns (h, w, C).

    Blocks of targets meet the window around them, never the whole frame: memory stays at BLOCK^2 * M * (BLOCK + 2 *
    radius)^2 similarities, whatever the size of the frame.
    """
    h, w, width = target.shape
    carried = torch.empty(h, w, labels[0].shape[-1], device=target.device)
    for top, bottom, above, below in _blocks(h, radius):
        for left, right, before, after in _blocks(w, radius):
            window = torch.stack([context[above:below, before:after] for context in contexts])  # (M, y, x, D)
            known = torch.stack([label[above:below, before:after] for label in labels])  # (M, y, x, C)
            queries = target[top:bottom, left:right].reshape(-1, width).float()  # (b, D)
            cosine = queries @ window.reshape(-1, width).float().T  # (b, M * y * x)
            near = _near((top, bottom, above, below), (left, right, before, after), radius).to(target.device)
            far = torch.zeros(near.shape, device=near.device).masked_fill_(~near, -torch.inf)  # (b, y * x)
            cosine = cosine.view(len(queries), len(contexts), -1).add_(far[:, None]).flatten(1)
            values, indices = _largest(cosine, min(neighbours, cosine.shape[1]))  # (b, k)
            weights = (values / temperature).softmax(-1)  # exp(cosine / temperature), summing to 1
            votes = known.reshape(-1, known.shape[-1])[indices]  # (b, k, C)
            mean = (weights.unsqueeze(-1) * votes).sum(1)
            carried[top:bottom, left:right] = mean.view(bottom - top, right - left, -1)
    return carried


def _largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row of (b, n), in no order, and where they are.

    Rows are folded first: the k largest stand in the k columns of the fold that hold the largest maxima. Selecting
    twice among few is less than half the work of once among thousands.
    """
    count = scores.shape[1]
    fold = max(size for size in range(1, FOLD + 1) if count % size == 0)
    columns = count // fold
    if columns < k:
        best = scores.topk(k, sorted=False)
        return best.values, best.indices
    column = scores.view(-1, fold, columns).amax(1).topk(k, sorted=False).indices  # (b, k)
    places = (column[..., None] + torch.arange(fold, device=scores.device) * columns).flatten(1)  # (b, k * fold)
    best = scores.gather(1, places).topk(k, sorted=False)
    return best.values, places.gather(1, best.indices)


def _blocks(length: int, radius: int) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of targets along one axis, and of the contexts that are near enough to any of them."""
    for start in range(0, length, BLOCK):
        end = min(start + BLOCK, length)
        yield start, end, max(start - radius, 0), min(end + radius, length)


def _near(rows: tuple[int, int, int, int], columns: tuple[int, int, int, int], radius: int) -> Tensor:
    """Which contexts of a window each target of a block may ask: bool (b, y * x)."""
    near = []
    for start, end, low, high in (rows, columns):
        near.append((torch.arange(start, end)[:, None] - torch.arange(low, high)).abs() <= radius)
    vertical, horizontal = near
    return (vertical[:, None, :, None] & horizontal[None, :, None, :]).reshape(
        len(vertical) * len(horizontal), -1
    )  # row by row, like the tokens


class LabelPropagation:
    """A video in progress, at all layers at once: frame 0 and the last few frames, with what they were taken for.

    What is kept is bounded by the number of contexts, not by the length of the video; features are kept in the type
    they come in (half precision halves the memory; similarities are computed in float32 all the same).
    """

    def __init__(
        self, features: Tensor, labels: Tensor, *, previous: int, radius: int, neighbours: int, temperature: float
    ) -> None:
        """features: (L, h, w, D) of frame 0; labels: (h, w, C) of frame 0."""
        everywhere = labels.expand(len(features), *labels.shape)
        self._first = (normalised(features), everywhere)
        self._previous: deque[tuple[Tensor, Tensor]] = deque(maxlen=previous)
        self._options = {"radius": radius, "neighbours": neighbours, "temperature": temperature}

    def step(self, features: Tensor) -> Tensor:
        """The labels of the next frame, (L, h, w, C). features: (L, h, w, D)."""
        features = normalised(features)
        frames = [self._first, *self._previous]
        labels = torch.stack(
            [
                propagate(target, [f[layer] for f, _ in frames], [c[layer] for _, c in frames], **self._options)  # type: ignore[arg-type]
                for layer, target in enumerate(features)
            ]
        )
        self._previous.append((features, labels))
        return labels


def normalised(features: Tensor) -> Tensor:
    """L2-normalised over the last axis, in the type they came in."""
    return F.normalize(features.float(), dim=-1).to(features.dtype)


def labels_on_grid(mask: Tensor, classes: int, grid: tuple[int, int]) -> Tensor:
    """`corrected`: each cell belongs to the class that covers most of it. mask: integer (H, W) -> one-hot (h, w, C).

    An object that wins no cell gets the one it covers most, so that no object vanishes.
    """
    coverage = F.adaptive_avg_pool2d(F.one_hot(mask.long(), classes).permute(2, 0, 1).float(), grid)  # (C, h, w)
    winner = coverage.argmax(0).flatten()
    for lost in set(range(1, classes)) - set(winner.tolist()):
        cell = coverage[lost].argmax()
        if coverage[lost].flatten()[cell] > 0:
            winner[cell] = lost
    return F.one_hot(winner, classes).view(*grid, classes).float()


def labels_on_grid_paper(mask: Tensor, classes: int, grid: tuple[int, int]) -> Tensor:
    """`paper`: the class of the pixel nearest to each cell's centre. mask: integer (H, W) -> one-hot (h, w, C)."""
    return F.one_hot(_nearest(mask, grid).long(), classes).float()


def _nearest(mask: Tensor, size: tuple[int, int]) -> Tensor:
    """A mask of bytes in another size, by Pillow as published: of two equally near pixels its rounding takes one, which
    decides several columns of every frame of DAVIS, and torch takes the other."""
    image = Image.fromarray(mask.cpu().numpy().astype(np.uint8))
    return torch.from_numpy(np.array(image.resize((size[1], size[0]), Image.Resampling.NEAREST)))


def strongest(shares: Tensor) -> Tensor:
    """The class with the largest share, the first of equals: (C, H, W) -> uint8 (H, W).

    Class by class, because `argmax` over the first axis of a large array is fifty times slower.
    """
    best, winner = shares[0], torch.zeros_like(shares[0], dtype=torch.uint8)
    for number, share in enumerate(shares[1:], start=1):
        winner.masked_fill_(share > best, number)
        best = torch.maximum(best, share)
    return winner


def to_mask(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """`corrected`: upsampled to the image, the strongest class of each pixel. (h, w, C) -> uint8 (H, W)."""
    shares = F.interpolate(labels.permute(2, 0, 1)[None], size=size, mode="bilinear", align_corners=False)[0]
    return strongest(shares)


def to_mask_paper(labels: Tensor, size: tuple[int, int], patch: tuple[int, int]) -> Tensor:
    """`paper`: upsampled to the network's pixels, each class stretched to 0..1, the strongest, then nearest pixels."""
    pixels = (labels.shape[0] * patch[0], labels.shape[1] * patch[1])
    shares = F.interpolate(labels.permute(2, 0, 1)[None], size=pixels, mode="bilinear", align_corners=False)[0]
    low, high = shares.amin((1, 2), keepdim=True), shares.amax((1, 2), keepdim=True)
    stretched = torch.where(high > low, (shares - low) / (high - low).clamp_min(1e-12), shares)
    return _nearest(strongest(stretched), size)
