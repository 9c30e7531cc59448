"""A training step of DINO and of MAE against lightly's: views, forward, backward, optimiser and momentum teacher.

Both begin with images in memory, teach the same timm ViT with heads of the same sizes, and see as many views of the
same sizes. lightly's step is the one of its own examples, with AdamW; ours is what `vitscope teach` does, with Muon.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.timing import Row, interleaved
from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import Run, Settings
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.dino import DinoRecipe
from vitscope.teaching.teachers.mae import MaeRecipe
from vitscope.teaching.teachers.registry import create_teacher
from vitscope.teaching.vit import create_encoder

ARCH = "vit_tiny_patch16_224"
EDGE, PATCH, WIDTH, BATCH = 64, 8, 64, 64
OPTIONS: dict[str, Any] = {"img_size": EDGE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": 12, "num_heads": 4}
TARGET = 1.1
Step = Callable[[], object]


def rows(quick: bool = False) -> Iterator[Row]:
    """One thread, CPU time, taking turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pixels = np.random.default_rng(0).integers(0, 256, (8 * BATCH, 3, EDGE, EDGE), dtype=np.uint8)
    for key, peer in (("dino", lightly_dino), ("mae", lightly_mae)):
        steps: dict[str, Step] = {"ours": our_step(key, pixels), "lightly's": peer(pixels)}
        seconds = interleaved(steps, rounds=2 if quick else 10, clock=time.process_time)
        rate = {name: BATCH / spent for name, spent in seconds.items()}
        yield Row(
            f"a step of {key} over lightly's",
            rate["ours"] / rate["lightly's"],
            TARGET,
            better="larger",
            note=", ".join(f"{name} {images:.0f} images per CPU-second" for name, images in rate.items()),
        )
    torch.set_num_threads(threads)


def our_step(key: str, pixels: np.ndarray[Any, Any]) -> Step:
    images = StoredImages(pixels, digest="noise")
    teacher = create_teacher(key, ARCH, OPTIONS, images, seed=0)
    run = Run(Path("never-written"), teacher, images, Schedule(100), Settings(batch=BATCH), identity={})
    lessons = run.lessons()
    return lambda: run.learn(next(lessons))


def views_of(pixels: np.ndarray[Any, Any], transform: Any) -> Iterator[list[torch.Tensor]]:
    """lightly's views of a batch after the other, each (B, 3, h, w)."""
    from PIL import Image

    photos = [Image.fromarray(one.transpose(1, 2, 0)) for one in pixels]
    while True:
        for start in range(0, len(photos), BATCH):
            several = [transform(photo) for photo in photos[start : start + BATCH]]
            yield [torch.stack(view) for view in zip(*several, strict=True)]


def lightly_dino(pixels: np.ndarray[Any, Any]) -> Step:
    from lightly.loss import DINOLoss
    from lightly.models.modules import DINOProjectionHead
    from lightly.models.utils import deactivate_requires_grad, update_momentum
    from lightly.transforms.dino_transform import DINOTransform

    recipe = DinoRecipe()
    transform = DINOTransform(
        global_crop_size=EDGE, local_crop_size=round(EDGE * recipe.small_size), n_local_views=recipe.small_crops
    )
    student = create_encoder(ARCH, OPTIONS, 0, any_size=True)
    sizes = (WIDTH, recipe.hidden, recipe.bottleneck, recipe.prototypes)
    head, teacher_head = DINOProjectionHead(*sizes, freeze_last_layer=1), DINOProjectionHead(*sizes)
    teacher = copy.deepcopy(student)
    for module in (teacher, teacher_head):
        deactivate_requires_grad(module)
    criterion = DINOLoss(output_dim=recipe.prototypes)
    optimiser = torch.optim.AdamW([*student.parameters(), *head.parameters()], lr=1e-3)
    batches = views_of(pixels, transform)

    def step() -> None:
        update_momentum(student, teacher, m=0.99)
        update_momentum(head, teacher_head, m=0.99)
        views = next(batches)
        looked = [teacher_head(teacher(view)) for view in views[:2]]
        said = [head(student(view)) for view in views]
        criterion(looked, said, epoch=1).backward()
        head.cancel_last_layer_gradients(current_epoch=1)
        optimiser.step()
        optimiser.zero_grad()

    return step


def lightly_mae(pixels: np.ndarray[Any, Any]) -> Step:
    from lightly.models import utils
    from lightly.models.modules import MAEDecoderTIMM, MaskedVisionTransformerTIMM
    from lightly.transforms.mae_transform import MAETransform

    recipe, patches = MaeRecipe(), (EDGE // PATCH) ** 2
    encoder = MaskedVisionTransformerTIMM(vit=create_encoder(ARCH, OPTIONS, 0))
    decoder = MAEDecoderTIMM(
        num_patches=patches,
        patch_size=PATCH,
        embed_dim=WIDTH,
        decoder_embed_dim=recipe.decoder_width,
        decoder_depth=recipe.decoder_depth,
        decoder_num_heads=recipe.decoder_heads,
    )
    criterion, batches = nn.MSELoss(), views_of(pixels, MAETransform(input_size=EDGE))
    optimiser = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1.5e-4)
    masks = partial(utils.random_token_mask, (BATCH, encoder.sequence_length), mask_ratio=recipe.hidden_share)

    def step() -> None:
        (images,) = next(batches)
        keep, hidden = masks()
        seen = decoder.embed(encoder.encode(images=images, idx_keep=keep))
        tokens = utils.repeat_token(decoder.mask_token, (BATCH, encoder.sequence_length))
        tokens = utils.set_at_index(tokens, keep, seen.type_as(tokens))
        guess = decoder.predict(utils.get_at_index(decoder.decode(tokens), hidden))
        target = utils.get_at_index(utils.patchify(images, PATCH), hidden - 1)  # the class token has no pixels
        criterion(guess, target).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step
