"""`vitscope teach`: teach a ViT on somebody's own images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from vitscope.errors import VitscopeError
from vitscope.teaching.teach import teach as run


def teach(
    teacher: Literal["fs", "clip", "dino", "moco", "mae", "beit"],
    /,
    *,
    images: Path,
    arch: str,
    out: Path,
    size: int | None = None,
    option: list[str] | None = None,
    recipe: list[str] | None = None,
    epochs: float = 100,
    batch: int = 64,
    warmup: float = 0.05,
    cooldown: float = 0.5,
    matrix_rate: float = 0.02,
    rate: float = 1.5e-3,
    matrix_decay: float = 0.1,
    decay: float = 0.05,
    clip: float = 3.0,
    seed: int = 0,
    device: str = "auto",
    workers: int = 4,
    cache: Path | None = None,
    looks: int = 20,
    stop_after: float | None = None,
) -> None:
    """Teach a ViT from scratch; the result is a model card that every command takes as a model.

    The same command again goes on from the last checkpoint, exactly as if it had never stopped. With several GPUs:
    torchrun --nproc-per-node N -m vitscope.cli teach ...

    Parameters
    ----------
    teacher
        fs (class labels), clip (captions), dino, moco, mae or beit.
    images
        Folder of images. One subfolder per class gives labels; captions.json ({image: caption}) or a .txt file beside
        each image gives captions.
    arch
        Name of a timm ViT, such as vit_small_patch16_224.
    out
        Folder for checkpoints, weights and the model card (model.toml).
    size
        Edge of the network's input in pixels; the architecture's own if not given.
    option
        A keyword argument of the architecture as KEY=VALUE, such as patch_size=8 or depth=6; may be repeated.
    recipe
        A change of the teacher's recipe as KEY=VALUE, such as momentum=0.996; may be repeated.
    epochs
        How often each image is seen.
    batch
        Images per step, over all processes.
    warmup
        Share of the steps in which the learning rate rises.
    cooldown
        Share of the steps in which it falls; 1 is a cosine over the entire run.
    matrix_rate
        Learning rate of the hidden matrices (Muon).
    rate
        Learning rate of everything else (AdamW).
    matrix_decay
        Weight decay of the hidden matrices.
    decay
        Weight decay of everything else that has two or more dimensions.
    clip
        Largest norm of the gradient; longer ones are shortened.
    seed
        Decides first weights, order of images and augmentation.
    device
        cpu, cuda, mps or auto.
    workers
        Processes that decode images, when they are too many to be kept decoded.
    cache
        Folder where decoded images are kept between runs; inside OUT if not given.
    looks
        How often k-NN accuracy of held-out images is measured; needs labels.
    stop_after
        Stop after so many CPU-minutes, leaving a checkpoint and a card.
    """
    card = run(
        teacher,
        images,
        arch,
        out,
        size=size,
        options=pairs(option, "--option"),
        settings=pairs(recipe, "--recipe"),
        epochs=epochs,
        batch=batch,
        warmup=warmup,
        cooldown=cooldown,
        matrix_rate=matrix_rate,
        rate=rate,
        matrix_decay=matrix_decay,
        decay=decay,
        clip=clip,
        seed=seed,
        device=device,
        workers=workers,
        cache=cache,
        looks=looks,
        stop_after=stop_after,
    )
    Console().print(f"wrote {card}; try: vitscope attention {card} --images {images}", highlight=False, soft_wrap=True)


def pairs(words: list[str] | None, flag: str) -> dict[str, Any]:
    """KEY=VALUE words as a dictionary; values are numbers, true/false, or text.

    >>> pairs(["depth=6", "qk_norm=true"], "--option")
    {'depth': 6, 'qk_norm': True}
    """
    found = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise VitscopeError(f"{flag} takes KEY=VALUE, not '{word}'")
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found
