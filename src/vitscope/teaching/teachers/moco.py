"""MoCo-v3: find the other view of the image among the batch (Chen, Xie & He 2021).

q1, q2  = predict(project(vit(view1))), predict(project(vit(view2)))
k1, k2  = project_m(vit_m(view1)), project_m(vit_m(view2))          no gradient
loss    = contrast(q1, k2) + contrast(q2, k1)
contrast(q, k) = 2 T * cross_entropy(cosine(q, k) / T, diagonal)
vit_m, project_m <- momentum average of vit, project
"""

from __future__ import annotations

from itertools import pairwise

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, Count, Positive, Probability, UpToAll
from vitscope.teaching.distributed import JoinedBatchNorm, joined, rank
from vitscope.teaching.schedule import Progress, settle
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher, follow, follower
from vitscope.teaching.vit import ViT, summary

# Every hue is reachable: with a narrow range colour alone tells images apart, and nothing else is learned.
VIEW = Augmentation((0.4, 1.0), colour=0.8, hue=0.5, brightness=0.4, contrast=0.4, saturation=0.4, grey=0.2, blur=0.3)


@dataclass(frozen=True, config=STRICT)
class MocoRecipe:
    temperature: Positive = 0.2
    momentum: Probability = 0.99  # of the momentum encoder; rises to 1 during cool-down
    hidden: Count = 512  # width of the projector's and predictor's hidden layers
    joint: Count = 128  # width of what is compared
    sees: UpToAll = 1.0  # share of a view's patches that both encoders see; all when half cooled
    view: Augmentation = VIEW


class Moco(Teacher):
    key = "moco"
    smallest_batch = 2

    def __init__(self, vit: ViT, recipe: MocoRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe = recipe or MocoRecipe()
        self.vit = vit
        self.project = batchnorm_mlp([vit.num_features, recipe.hidden, recipe.hidden, recipe.joint])
        self.predict = batchnorm_mlp([recipe.joint, recipe.hidden, recipe.joint])
        self.momentum_vit = follower(self.vit)
        self.momentum_project = follower(self.project)

    @property
    def encoder(self) -> ViT:
        return self.vit

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        images, size = to_float(lesson.images), self.vit.patch_embed.img_size
        views = [normalise(self.recipe.view(images, size)) for _ in range(2)]
        seen = self.seen(self.recipe.sees)
        queries = [self.predict(self.project(summary(self.vit, view, seen))) for view in views]
        with torch.no_grad():
            keys = [self.momentum_project(summary(self.momentum_vit, view, seen)) for view in views]
        first, accuracy = contrast(queries[0], keys[1], self.recipe.temperature)
        second, _ = contrast(queries[1], keys[0], self.recipe.temperature)
        spread = F.normalize(queries[0].detach(), dim=1).std(0).mean() * self.recipe.joint**0.5
        return first + second, {"accuracy": accuracy, "spread": spread}

    def after_step(self, progress: Progress) -> None:
        momentum = settle(self.recipe.momentum, 1.0, progress.cooling)
        follow(self.momentum_vit, self.vit, momentum)
        follow(self.momentum_project, self.project, momentum)


def contrast(queries: Tensor, keys: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """InfoNCE of (B, J) queries against the keys of all processes; and how often the right key came first."""
    own = torch.arange(len(queries), device=queries.device) + rank() * len(queries)
    logits = F.normalize(queries, dim=1) @ F.normalize(joined(keys), dim=1).T / temperature  # (B, world * B)
    loss = 2 * temperature * F.cross_entropy(logits, own)
    return loss, (logits.argmax(1) == own).float().mean()


def batchnorm_mlp(widths: list[int]) -> nn.Sequential:
    """Linear layers with batch normalisation and ReLU between them, and a plain normalisation at the end (MoCo-v3)."""
    layers: list[nn.Module] = []
    for i, (inside, outside) in enumerate(pairwise(widths)):
        last = i == len(widths) - 2
        layers += [nn.Linear(inside, outside, bias=False), JoinedBatchNorm(outside, affine=not last)]
        if not last:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)
