"""The published measures once more, from their definitions and as plainly as they can be written.

In the order in which they were run, traps included: what divides in place divides in place. One image at a time,
square inputs, one prefix token (CLS). Masks are bool arrays in the size of their image.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms import functional as vision

Saliency = dict[tuple[str, bool], np.ndarray]  # (source, merged) -> (L, H) or (L, 1)


def pixels(image: Image.Image, size: int) -> Tensor:
    """uint8 (3, size, size): short side to `size` by a bicubic filter, centre crop."""
    resized = vision.resize(image, [size], vision.InterpolationMode.BICUBIC)
    return vision.pil_to_tensor(vision.center_crop(resized, [size, size]))


# -- masks -----------------------------------------------------------------------------------------------------------


def token_masks(masks: Sequence[np.ndarray], rows: int, columns: int, *, square: bool) -> list[np.ndarray]:
    """Weights of tokens, one array (rows, columns) of sum 1 per object that is left: bytes, bicubic, then divided."""
    found = []
    for mask in masks:
        height, width = mask.shape
        if square and height < width:
            start = int((width - height) / 2)
            mask = mask[:, start : start + height]
        elif square:
            start = int((height - width) / 2)
            mask = mask[start : start + width, :]
        small = Image.fromarray(mask.astype("uint8") * 255).resize((columns, rows), Image.Resampling.BICUBIC)
        weights = np.array(small).astype(float)
        if weights.sum() > 0:
            found.append(weights / weights.sum())
    return found


# -- saliency --------------------------------------------------------------------------------------------------------


def saliency(attention: np.ndarray, masks: Sequence[np.ndarray], mass: float = 0.6) -> Saliency | None:
    """IoU of one image. attention: (L, H, T, T), which is changed on the way; None if no object is left."""
    edge = int((attention.shape[-1] - 1) ** 0.5)
    weights = token_masks(masks, edge, edge, square=True)
    if not weights:
        return None
    truth = np.sum(weights, axis=0).flatten() > 0
    found = {}
    for source in ("cls", "spatial", "centre"):
        for merged in (False, True):
            chosen = most_attended(attention, source, merged, mass)
            both, either = (chosen & truth).sum(-1), (chosen | truth).sum(-1)
            found[source, merged] = both / either
    return found


def most_attended(attention: np.ndarray, source: str, merged: bool, mass: float) -> np.ndarray:
    """The tokens that hold `mass` of a map: bool (L, H or 1, N)."""
    edge = int((attention.shape[-1] - 1) ** 0.5)
    maps = attention[:, :, :, 1:]  # a view: CLS is no place to look at
    if source == "cls":
        maps = maps[:, :, 0]
    elif source == "spatial":
        maps = maps[:, :, 1:].sum(2)
    else:
        middle = (edge + 1) // 2  # counted from one: 7 of 14, 8 of 15
        maps = maps[:, :, 1 + (middle - 1) * edge + (middle - 1)]
    if merged:
        maps = maps.sum(1, keepdims=True)
    maps /= maps.sum(-1, keepdims=True)  # in place: heads of CLS and centre stay renormalised for the next merge
    order = maps.argsort(-1)
    ascending = np.take_along_axis(maps, order, -1)
    kept = (ascending / ascending.sum(-1, keepdims=True)).cumsum(-1) > 1 - mass
    chosen = np.zeros_like(kept)
    np.put_along_axis(chosen, order, kept, -1)
    return chosen


# -- regions ---------------------------------------------------------------------------------------------------------


def regions(tokens: np.ndarray, masks: Sequence[np.ndarray], *, square: bool) -> np.ndarray:
    """Features of the objects that are left: tokens (L, rows, columns, D) -> (objects, L, D)."""
    weights = token_masks(masks, tokens.shape[1], tokens.shape[2], square=square)
    found = [(w[None, :, :, None] * tokens).sum((1, 2)) for w in weights]
    return np.stack(found) if found else np.empty((0, tokens.shape[0], tokens.shape[-1]))


# -- keypoints -------------------------------------------------------------------------------------------------------


def padded(image: Image.Image, size: int) -> Tensor:
    """uint8 (3, size, size): the whole image, long side to `size` by LANCZOS, in the middle of black."""
    canvas = np.zeros((size, size, 3), np.uint8)
    width, height = image.size
    if height <= width:
        inner = np.asarray(image.resize((size, int(np.around(size * height / width))), Image.Resampling.LANCZOS))
        canvas[(size - len(inner)) // 2 : (size + len(inner)) // 2] = inner
    else:
        inner = np.asarray(image.resize((int(np.around(size * width / height)), size), Image.Resampling.LANCZOS))
        canvas[:, (size - inner.shape[1]) // 2 : (size + inner.shape[1]) // 2] = inner
    return torch.from_numpy(canvas).permute(2, 0, 1)


def placed(points: Tensor, width: int, height: int, size: int) -> tuple[Tensor, float]:
    """Points (K, 2), x and y, float32, where they lie in the padded input; and the one scale."""
    scale = size / max(width, height)
    moved = points * scale
    if height < width:
        moved[:, 1] += int((size - int(np.around(size * height / width))) / 2)
    elif width < height:
        moved[:, 0] += int((size - int(np.around(size * width / height))) / 2)
    return moved, scale


def right_points(
    source: Tensor,
    target: Tensor,
    sizes: tuple[tuple[int, int], tuple[int, int]],
    points: tuple[Tensor, Tensor],
    box: Sequence[float],
    size: int,
    alphas: Sequence[float] = (0.1, 0.05, 0.01),
) -> list[int]:
    """How many points of one pair at one layer are right, in pixels of the input.

    source, target: (h, w, D) tokens of the padded images; sizes: (width, height) of both; box: x1, y1, x2, y2.
    """
    asked, _ = placed(points[0], *sizes[0], size)
    truth, scale = placed(points[1], *sizes[1], size)
    large = []
    for tokens in (source, target):
        normed = F.normalize(tokens.permute(2, 0, 1)[None], dim=1)
        bigger = F.interpolate(normed, scale_factor=size / tokens.shape[0], mode="bilinear")
        large.append(bigger[0].permute(1, 2, 0).reshape(size * size, -1))
    at = size * asked[:, 1].round().long() + asked[:, 0].long()
    best = (large[0][at] @ large[1].T).argmax(-1)
    error = (torch.stack([best % size, best // size], 1) - truth).norm(dim=-1)
    threshold = max(box[3] - box[1], box[2] - box[0]) * scale
    return [int((error < alpha * threshold).sum()) for alpha in alphas]


# -- k-NN ------------------------------------------------------------------------------------------------------------


def knn(
    train: Tensor, labels: Tensor, asked: Tensor, truth: Tensor, k: int, classes: int, temperature: float = 0.07
) -> tuple[Tensor, Tensor]:
    """Right or wrong in the first and in the first five, as DINO's evaluation: bool (q,) each."""
    cosines, positions = (F.normalize(asked, dim=1) @ F.normalize(train, dim=1).T).topk(k)
    votes = (F.one_hot(labels[positions], classes) * (cosines / temperature).exp()[..., None]).sum(1)
    right = votes.sort(dim=1, descending=True, stable=True).indices == truth[:, None]
    return right[:, 0], right[:, : min(5, k)].any(1)


# -- video -----------------------------------------------------------------------------------------------------------


def followed(features: Sequence[Tensor], first: np.ndarray, patch: int) -> list[np.ndarray]:
    """Masks of the frames after the first, as DINO's evaluation: features (h, w, D) of each, labels (H, W) of frame 0.

    The whole affinity between all tokens of two frames, and everything below the fifth largest set to nothing.
    """
    rows, columns, _ = features[0].shape
    height, width = first.shape
    small = np.array(Image.fromarray(first).resize((columns, rows), Image.Resampling.NEAREST))
    y, x = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns
    near = ((y[:, None] - y).abs() <= 12) & ((x[:, None] - x).abs() <= 12)
    tokens = [F.normalize(frame.flatten(0, 1), dim=1) for frame in features]
    known = [(tokens[0], F.one_hot(torch.from_numpy(small).long().flatten(), int(first.max()) + 1).to(tokens[0].dtype))]
    masks = []
    for target in tokens[1:]:
        context = [known[0], *known[1:][-7:]]
        affinity = torch.cat([(source @ target.T / 0.1).exp() * near for source, _ in context])  # (M * N, N)
        affinity[affinity < affinity.topk(5, dim=0).values[-1]] = 0
        affinity /= affinity.sum(0, keepdim=True)
        shares = torch.cat([labels for _, labels in context]).T @ affinity  # (C, N)
        known.append((target, shares.T))
        large = F.interpolate(shares.view(1, -1, rows, columns), scale_factor=patch, mode="bilinear")[0]
        for share in large:
            if share.max() > 0:
                share -= share.min().clone()
                share /= share.max().clone()
        chosen = Image.fromarray(large.argmax(0).numpy().astype("uint8"))
        masks.append(np.array(chosen.resize((width, height), Image.Resampling.NEAREST)))
    return masks
