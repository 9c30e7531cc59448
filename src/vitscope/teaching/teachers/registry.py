"""The six teachers by name, and how each is made ready for its images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from vitscope.core.errors import BadData, VitscopeError
from vitscope.teaching.augment import to_float
from vitscope.teaching.config import sentence
from vitscope.teaching.images import TrainingImages
from vitscope.teaching.teachers.base import Teacher
from vitscope.teaching.teachers.beit import Beit, BeitRecipe, learn_codebook
from vitscope.teaching.teachers.clip import Clip, ClipRecipe, Vocabulary
from vitscope.teaching.teachers.dino import Dino, DinoRecipe
from vitscope.teaching.teachers.mae import Mae, MaeRecipe
from vitscope.teaching.teachers.moco import Moco, MocoRecipe
from vitscope.teaching.teachers.supervised import Supervised, SupervisedRecipe
from vitscope.teaching.vit import begin_with, create_encoder

TEACHERS: dict[str, type[Teacher]] = {t.key: t for t in (Supervised, Clip, Dino, Moco, Mae, Beit)}
RECIPES: dict[str, type[Any]] = {
    "fs": SupervisedRecipe,
    "clip": ClipRecipe,
    "dino": DinoRecipe,
    "moco": MocoRecipe,
    "mae": MaeRecipe,
    "beit": BeitRecipe,
}
CODEBOOK_IMAGES = 4000  # whose patches are clustered


def recipe_for(key: str, changes: Mapping[str, Any] | None = None) -> Any:
    """The teacher's recipe with some of its fields changed."""
    if key not in RECIPES:
        raise VitscopeError(f"unknown teacher '{key}': choose one of {', '.join(RECIPES)}")
    fields = {field.name: field for field in dataclasses.fields(RECIPES[key])}
    for name in changes or {}:
        if name not in fields:
            raise VitscopeError(f"the {key} teacher has no setting '{name}': choose from {', '.join(fields)}")
    try:
        return RECIPES[key](**(changes or {}))
    except ValidationError as error:
        raise sentence(error, f"the {key} teacher's") from error


def check_lessons(key: str, images: TrainingImages, batch: int) -> None:
    """Refuse data that cannot teach this way, before any work is done."""
    teacher = TEACHERS[key]
    if teacher.needs == "labels" and images.labels is None:
        raise BadData("the supervised teacher needs labels: put the images into one subfolder per class")
    if teacher.needs == "captions" and images.captions is None:
        raise BadData(
            "the CLIP teacher needs captions: put a captions.json with {image: caption} into the image folder, "
            "or a .txt file beside each image"
        )
    if batch < teacher.smallest_batch:
        raise VitscopeError(
            f"the {key} teacher compares images within a batch: use a batch size of {teacher.smallest_batch} or more"
        )


def create_teacher(
    key: str,
    arch: str,
    options: Mapping[str, Any],
    images: TrainingImages,
    *,
    seed: int,
    recipe: Any = None,
    weights: Path | None = None,
) -> Teacher:
    """A teacher with an untaught network; all six start from the same network for the same seed.

    weights: of a model card or checkpoint of the same architecture, to start from instead.
    """
    recipe = recipe or recipe_for(key)
    vit = create_encoder(arch, options, seed, any_size=key == "dino" and recipe.small_crops > 0)
    if weights is not None:
        begin_with(vit, weights)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        if key == "fs":
            return Supervised(vit, len(images.classes), recipe)
        if key == "clip":
            assert images.captions is not None
            said = (caption for captions in images.captions for caption in captions)
            return Clip(vit, Vocabulary.of(said, recipe.vocabulary), recipe)
        if key == "beit":
            some = torch.randperm(len(images))[:CODEBOOK_IMAGES].tolist()
            codebook = learn_codebook(to_float(images.take(some)), vit.patch_embed.patch_size, recipe.words, seed)
            return Beit(vit, codebook, recipe)
        found: Teacher = {"dino": Dino, "moco": Moco, "mae": Mae}[key](vit, recipe)
        return found
