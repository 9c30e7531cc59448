"""DINO: give a crop the description that a slowly moving teacher gives to the whole (Caron et al. 2021).

    student(view)  = softmax(head(vit(view)) / T_student)               two large crops and several small ones
    teacher(view)  = softmax((head_t(vit_t(view)) - centre) / T_teacher)     the large crops only, no gradient
    loss           = mean over pairs of different views of -sum teacher * log student
    centre        <- average of the teacher's outputs                    against collapse to one description
    vit_t, head_t <- momentum average of the student                     the network that is shipped

Two ways to balance the teacher's descriptions: the moving centre of the paper, or Sinkhorn-Knopp within the batch.
A small KoLeo term (Sablayrolles et al. 2019, as in DINOv2) pushes nearest neighbours of the batch apart.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.teaching.augment import Augmentation, normalise, to_float
from vitscope.teaching.config import STRICT, Count, NotNegative, Positive, Probability, UpToAll
from vitscope.teaching.distributed import joined, mean_over_processes, rank
from vitscope.teaching.schedule import Progress, settle
from vitscope.teaching.teachers.base import Lesson, Logs, Teacher, follow, follower
from vitscope.teaching.vit import ViT, summary

# Every hue is reachable: with a narrow range colour alone describes an image, and shape is not learned.
LARGE = Augmentation((0.4, 1.0), colour=0.8, hue=0.5, brightness=0.4, contrast=0.4, saturation=0.4, grey=0.2, blur=0.3)
SMALL = replace(LARGE, scale=(0.1, 0.4), blur=0.2)


@dataclass(frozen=True, config=STRICT)
class DinoRecipe:
    prototypes: Annotated[int, Field(ge=2)] = 512  # K, the words of a description
    hidden: Count = 256
    bottleneck: Count = 64
    student_temperature: Positive = 0.1
    teacher_temperature: Positive = 0.04
    balance: Literal["centre", "sinkhorn", "none"] = "centre"
    centre_momentum: Probability = 0.9
    momentum: Probability = 0.99  # of the teacher
    final_momentum: Probability = 1.0  # at the end of cool-down; below 1 where that is short, or it stays behind
    koleo: NotNegative = 0.1
    small_crops: Annotated[int, Field(ge=0)] = 4
    sees: UpToAll = 1.0  # share of a large crop's patches that student and teacher see; all when half cooled
    small_size: UpToAll = 0.5  # edge of the small crops, as a share of the network's input
    large: Augmentation = LARGE
    small: Augmentation = SMALL


class Dino(Teacher):
    key = "dino"
    smallest_batch = 2
    centre: Tensor

    def __init__(self, vit: ViT, recipe: DinoRecipe | None = None) -> None:
        super().__init__()
        self.recipe = recipe = recipe or DinoRecipe()
        self.student_vit = vit
        self.student_head = PrototypeHead(vit.num_features, recipe.hidden, recipe.bottleneck, recipe.prototypes)
        self.teacher_vit = follower(self.student_vit)
        self.teacher_head = follower(self.student_head)
        self.register_buffer("centre", torch.zeros(recipe.prototypes))
        self._seen: Tensor | None = None  # mean output of the teacher in this step

    @property
    def encoder(self) -> ViT:
        return self.teacher_vit

    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        recipe, images = self.recipe, to_float(lesson.images)
        large_size = self.student_vit.patch_embed.img_size
        large = [normalise(recipe.large(images, large_size)) for _ in range(2)]
        small = [normalise(recipe.small(images, self.small_size)) for _ in range(recipe.small_crops)]

        seen = self.seen(recipe.sees)
        summaries = summary(self.student_vit, torch.cat(large), seen)  # (2 B, D)
        outputs = [self.student_head(summaries)]
        if small:
            outputs.append(self.student_head(summary(self.student_vit, torch.cat(small))))
        students = torch.cat(outputs).view(2 + len(small), len(images), -1)  # (V, B, K)
        with torch.no_grad():
            outputs = self.teacher_head(summary(self.teacher_vit, torch.cat(large), seen))  # (2 B, K)
            self._seen = outputs.float().mean(0)  # the centre is float32, whatever the network computes in
            teachers = self.describe(outputs).view(2, len(images), -1)
        loss = agreement(teachers, F.log_softmax(students / recipe.student_temperature, dim=2))
        logs = {"agreement": loss.detach(), **entropies(teachers)}
        if recipe.koleo:
            koleo = koleo_loss(joined(summaries[: len(images)])) + koleo_loss(joined(summaries[len(images) :]))
            loss = loss + recipe.koleo * koleo / 2
        return loss, logs

    def describe(self, outputs: Tensor) -> Tensor:
        """The teacher's descriptions (2 B, K) of its outputs (2 B, K), balanced."""
        recipe = self.recipe
        if recipe.balance == "sinkhorn":
            return sinkhorn(outputs, recipe.teacher_temperature)
        return F.softmax((outputs - self.centre) / recipe.teacher_temperature, dim=1)

    @property
    def small_size(self) -> tuple[int, int]:
        """Size of the small crops: a whole number of patches."""
        embed = self.student_vit.patch_embed
        height, width = (
            max(1, round(edge * self.recipe.small_size / patch)) * patch
            for edge, patch in zip(embed.img_size, embed.patch_size, strict=True)
        )
        return height, width

    @torch.no_grad()
    def after_step(self, progress: Progress) -> None:
        if self.recipe.balance == "centre" and self._seen is not None:
            self.centre.lerp_(mean_over_processes(self._seen), 1 - self.recipe.centre_momentum)
        momentum = settle(self.recipe.momentum, self.recipe.final_momentum, progress.cooling)
        follow(self.teacher_vit, self.student_vit, momentum)
        follow(self.teacher_head, self.student_head, momentum)


def agreement(teachers: Tensor, students: Tensor) -> Tensor:
    """Cross entropy over all pairs of different views.

    teachers: (2, B, K) probabilities of the large views; students: (V, B, K) log-probabilities, the same large views
    first.
    """
    pairs = -torch.einsum("tbk,vbk->tv", teachers, students) / teachers.shape[1]  # (2, V)
    different = ~torch.eye(*pairs.shape, dtype=torch.bool, device=pairs.device)
    return pairs[different].mean()


def sinkhorn(outputs: Tensor, temperature: float, rounds: int = 3) -> Tensor:
    """Probabilities (B, K) whose columns are used equally often over the batches of all processes."""
    batch = joined(outputs)
    q = ((batch - batch.max()) / temperature).double().exp()
    for _ in range(rounds):
        q = q / q.sum(0, keepdim=True).clamp(min=1e-300) / q.shape[1]
        q = q / q.sum(1, keepdim=True).clamp(min=1e-300) / q.shape[0]
    rows = (q * q.shape[0]).to(outputs.dtype)
    if len(batch) == len(outputs):
        return rows
    return rows[rank() * len(outputs) : (rank() + 1) * len(outputs)]


def koleo_loss(features: Tensor) -> Tensor:
    """Minus the mean log distance of (B, D) unit vectors to their nearest neighbour."""
    unit = F.normalize(features, dim=1)
    with torch.no_grad():
        similarity = unit @ unit.T
        neighbour = similarity.fill_diagonal_(-1).argmax(1)
    found: Tensor = -((unit - unit[neighbour]).norm(dim=1) + 1e-8).log().mean()
    return found


def entropies(teachers: Tensor) -> Logs:
    """Both failures at a glance, in units of log K: `used` near 0 is collapse, `vague` near 1 is uniformity."""
    flat = teachers.flatten(0, -2)
    whole = math.log(flat.shape[1])
    mean = flat.mean(0)
    return {
        "used": -(mean * mean.clamp(min=1e-12).log()).sum() / whole,
        "vague": -(flat * flat.clamp(min=1e-12).log()).sum(1).mean() / whole,
    }


class PrototypeHead(nn.Module):
    """DINO's head: an MLP to a narrow unit vector, compared with unit prototypes."""

    def __init__(self, width: int, hidden: int, bottleneck: int, prototypes: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, bottleneck),
        )
        self.prototypes = nn.Parameter(F.normalize(torch.randn(prototypes, bottleneck), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, K): cosines in [-1, 1]."""
        return F.normalize(self.mlp(x), dim=1) @ F.normalize(self.prototypes, dim=1).T
