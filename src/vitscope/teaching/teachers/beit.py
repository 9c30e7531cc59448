"""BEiT: name the visual word of what is hidden (Bao et al. 2022).

    words   = tokenizer(view)                          one of K per patch, learned beforehand on the same images
    masked  = blocks of patches, about 40 % of them
    output  = vit(view with a mask token in place of each masked patch)
    loss    = cross_entropy(classifier(output), words)    over the masked patches only

The network is the plain ViT of the other teachers (no relative position bias), so that only the teaching differs.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from pydantic.dataclasses import dataclass
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.core.errors import BadData
from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, Count, Share
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher
from vitscope.teaching.vit import ViT, patchify, run_blocks, tokens_of

VIEW = Augmentation(scale=(0.6, 1.0))
SMALLEST_BLOCK = 16 / 196  # of the grid
ASPECT = 0.3  # blocks are between 0.3 and 1/0.3 times as tall as wide
TRIES = 10


@dataclass(frozen=True, config=STRICT)
class BeitRecipe:
    words: Count = 512
    masked_share: Share = 0.45
    view: Augmentation = VIEW


class Beit(Teacher):
    key = "beit"
    codebook: Tensor

    def __init__(self, vit: ViT, codebook: Tensor, recipe: BeitRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe or BeitRecipe()
        self.vit = vit
        self.register_buffer("codebook", codebook)
        self.mask_token = nn.Parameter(torch.randn(1, 1, vit.embed_dim) * 0.02)
        self.classifier = nn.Linear(vit.embed_dim, len(codebook))

    @property
    def encoder(self) -> ViT:
        return self.vit

    def edges(self) -> list[nn.Module]:
        return [self.classifier]

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        embed = self.vit.patch_embed
        view = self.recipe.view(to_float(lesson.images), embed.img_size)
        words = nearest_words(patchify(view, embed.patch_size), self.codebook)  # (B, N)
        masked = block_masks(len(view), embed.grid_size, self.recipe.masked_share).to(view.device)  # (B, N) bool
        logits = self.classifier(self.encode(normalise(view), masked)[masked])  # (M, K)
        words = words[masked]  # (M,)
        return F.cross_entropy(logits, words), {"accuracy": (logits.argmax(1) == words).float().mean()}

    def encode(self, view: Tensor, masked: Tensor) -> Tensor:
        """The encoder's patch outputs (B, N, D) when the patches in `masked` (B, N) are hidden from it."""
        patches = torch.where(masked[..., None], self.mask_token, self.vit.patch_embed(view))
        return run_blocks(self.vit, tokens_of(self.vit, patches))[:, self.vit.num_prefix_tokens :]


# -- visual words: patches of the training images, clustered -----------------------------------------------------


def learn_codebook(images: Tensor, patch: tuple[int, int], words: int, seed: int) -> Tensor:
    """(words, P): centres of k-means over the patches of float images (M, 3, h, w) in [0, 1]."""
    patches = patchify(images, patch).flatten(0, 1)
    if len(patches.unique(dim=0)) < words:
        raise BadData(f"the images have fewer than {words} different patches: use more images or a smaller codebook")
    kmeans = MiniBatchKMeans(words, random_state=seed, batch_size=4096, n_init=1, max_iter=30, reassignment_ratio=0)
    kmeans.fit(patches.numpy().astype(np.float32))
    return torch.from_numpy(kmeans.cluster_centers_.astype(np.float32))


def nearest_words(patches: Tensor, codebook: Tensor) -> Tensor:
    """(B, N, P) patches -> (B, N) number of the nearest of the (words, P) centres."""
    distance = codebook.square().sum(1) - 2 * patches @ codebook.T  # |c|^2 - 2 x.c; |x|^2 is the same for all
    return distance.argmin(2)


# -- masks made of rectangles ------------------------------------------------------------------------------------


def block_masks(batch: int, grid: tuple[int, int], share: float) -> Tensor:
    """bool (B, h * w): rectangles of random size, shape and place until `share` of each grid is covered.

    Seeded from torch's generator. No block brings a mask above its share by more than it has left, so every image has
    at most round(share * h * w) masked patches, and at least one.
    """
    random = np.random.default_rng(int(torch.randint(2**62, ())))
    wanted = max(1, round(share * grid[0] * grid[1]))
    smallest = max(1, round(SMALLEST_BLOCK * grid[0] * grid[1]))
    masks = np.zeros((batch, *grid), dtype=bool)
    for mask in masks:
        while (left := wanted - mask.sum()) > 0 and add_block(mask, left, smallest, random):
            pass
    return torch.from_numpy(masks.reshape(batch, -1))


def add_block(mask: np.ndarray, left: int, smallest: int, random: np.random.Generator) -> bool:
    """Hide one more rectangle with at most `left` new patches; False when none was found."""
    height, width = mask.shape
    for _ in range(TRIES):
        area = random.uniform(min(smallest, left), max(smallest, left))
        aspect = math.exp(random.uniform(math.log(ASPECT), -math.log(ASPECT)))
        tall, wide = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if not (1 <= tall <= height and 1 <= wide <= width):
            continue
        top, side = random.integers(height - tall + 1), random.integers(width - wide + 1)
        block = mask[top : top + tall, side : side + wide]
        if 0 < (~block).sum() <= left:
            block[:] = True
            return True
    return not mask.any()
