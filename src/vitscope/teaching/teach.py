"""`vitscope teach`: teach a network on somebody's own images, and write a model card for the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vitscope.data.folders import open_images
from vitscope.data.samples import SampleList
from vitscope.device import choose_device
from vitscope.digest import digest_of
from vitscope.errors import VitscopeError
from vitscope.teaching.captions import read_captions
from vitscope.teaching.card import learning_curve, write_card
from vitscope.teaching.display import interruptible, shown
from vitscope.teaching.distributed import barrier, process_group, rank, world
from vitscope.teaching.images import ImageFiles, TrainingImages, open_training_images
from vitscope.teaching.loop import Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.optimiser import Rates
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import TEACHERS, check_lessons, create_teacher, recipe_for
from vitscope.teaching.vit import create_encoder

HELD_OUT = 0.05  # share of labelled images that is only looked at, never taught
MOST_HELD_OUT = 500
BANK = 2000  # taught images among which neighbours are sought
POINTS = 200  # of the learning curve


def teach(
    teacher: str,
    images: Path,
    arch: str,
    out: Path,
    *,
    size: int | None = None,
    options: Mapping[str, Any] | None = None,
    epochs: float = 100,
    batch: int = 64,
    warmup: float = 0.05,
    cooldown: float = 0.5,
    matrix_rate: float = 0.02,
    rate: float = 1.5e-3,
    matrix_decay: float = 0.1,
    decay: float = 0.05,
    clip: float = 3.0,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: int = 4,
    cache: Path | None = None,
    looks: int = 20,
    stop_after: float | None = None,
) -> Path:
    """Teach a ViT from scratch and write its model card, `OUT/model.toml`.

    Called again with the same arguments it goes on from the last checkpoint, exactly as if it had never stopped; a
    checkpoint of another teacher, architecture or folder of images is refused. Under `torchrun` the batch is divided
    among the processes.

    Parameters
    ----------
    teacher:
        fs (labels), clip (captions), dino, moco, mae or beit.
    images:
        Folder of images. One subfolder per class gives labels; `captions.json` ({image: caption}) or a .txt file
        beside each image gives captions.
    arch:
        Name of a timm ViT, such as vit_small_patch16_224.
    out:
        Folder for checkpoints, weights and model card.
    size:
        Edge of the network's input in pixels; the architecture's own if not given.
    options:
        Further keyword arguments of the architecture, such as patch_size, depth, embed_dim, num_heads.
    epochs:
        How often each image is seen.
    batch:
        Images per step, over all processes.
    warmup:
        Share of the steps in which the learning rate rises.
    cooldown:
        Share of the steps in which it falls; 1 is a cosine over the entire run, less keeps a plateau before it.
    matrix_rate:
        Learning rate of the hidden matrices (Muon).
    rate:
        Learning rate of everything else (AdamW).
    matrix_decay:
        Weight decay of the hidden matrices.
    decay:
        Weight decay of everything else that has two or more dimensions.
    clip:
        Largest norm of the gradient; longer ones are shortened.
    settings:
        Changes of the teacher's recipe, such as {"momentum": 0.996}; see the recipe in its file.
    seed:
        Decides first weights, order of images and augmentation.
    device:
        cpu, cuda, mps or auto.
    workers:
        Processes that decode images, when they are too many to be kept decoded.
    cache:
        Folder where decoded images are kept between runs; inside `out` if not given.
    looks:
        How often k-NN accuracy of held-out images is measured; needs labels.
    stop_after:
        Stop after so many CPU-minutes of this call, leaving a checkpoint and a card.

    Returns the path of the model card.
    """
    recipe = recipe_for(teacher, settings)
    if batch < 1 or epochs <= 0:
        raise VitscopeError("batch and epochs must be positive")
    options = {**(options or {}), **({} if size is None else {"img_size": size})}
    with process_group(choose_device(device)) as place:
        if batch % world():
            raise VitscopeError(f"a batch of {batch} cannot be divided among {world()} processes: use a multiple")
        vision = create_encoder(arch, options, seed).patch_embed.img_size
        samples = open_images(images)
        taught, held = hold_out(samples, seed)
        lessons = prepare(teacher, taught, images, vision, cache or out / "cache", batch)
        steps = max(1, math.ceil(epochs * len(lessons) / batch))
        run = Run(
            out,
            create_teacher(teacher, arch, options, lessons, seed=seed, recipe=recipe),
            lessons,
            Schedule(round(warmup * steps), steps, min(steps, round(cooldown * steps))),
            Settings(
                batch=batch,
                seed=seed,
                rates=Rates(matrix_rate, rate, matrix_decay, decay),
                clip=clip,
                point_every=max(1, steps // POINTS),
                monitor_every=max(1, steps // POINTS) * max(1, POINTS // max(1, looks)),
                workers=workers,
            ),
            identity={
                "teacher": teacher,
                "architecture": arch,
                "options": dict(options),
                "data": lessons.digest,
                "recipe": digest_of([asdict(recipe), batch, seed]),
            },
            device=place,
            monitor=watch(taught, held, vision, seed) if rank() == 0 and held is not None else None,
        )
        run.resume()
        budget = math.inf if stop_after is None else run.cpu_seconds + stop_after * 60
        with shown(run, f"{teacher} {arch}"), interruptible() as interrupted:
            run.train(stop=lambda: bool(interrupted) or run.cpu_seconds >= budget)
        card = out / "model.toml"
        if rank() == 0:
            card = write_card(
                out,
                "model",
                run.teacher.encoder,
                name=out.name,
                architecture=arch,
                options=options,
                teaching=teacher,
                provenance=provenance(run, samples, recipe),
            )
        barrier()
        return card


def hold_out(samples: SampleList, seed: int) -> tuple[SampleList, SampleList | None]:
    """Taught and held-out images: a few of each class where there are labels and enough images, else none."""
    count = min(MOST_HELD_OUT, int(HELD_OUT * len(samples)))
    if not samples.is_labelled or count < 1:
        return samples, None
    held = samples.limit(count, seed)
    ids = {sample.id for sample in held}
    return samples.select(i for i, sample in enumerate(samples) if sample.id not in ids), held


def prepare(
    teacher: str, samples: SampleList, folder: Path, size: tuple[int, int], cache: Path, batch: int
) -> TrainingImages:
    """The images, with captions if this teacher reads them; refused when they cannot teach this way."""
    captions = read_captions(folder, samples) if TEACHERS[teacher].needs == "captions" else None
    lessons = None
    if rank() == 0:  # one process decodes into the cache, the others find it
        lessons = open_training_images(samples, size, captions=captions, cache=cache)
    barrier()
    lessons = lessons or open_training_images(samples, size, captions=captions, cache=cache)
    check_lessons(teacher, lessons, batch)
    return lessons


def watch(taught: SampleList, held: SampleList, size: tuple[int, int], seed: int) -> Monitor:
    """k-NN of the held-out images among some of the taught ones."""
    bank = taught.limit(BANK, seed)

    def pixels(samples: SampleList) -> torch.Tensor:
        return ImageFiles(samples, size, digest="").take(range(len(samples)))

    def labels(samples: SampleList) -> torch.Tensor:
        return torch.tensor([-1 if label is None else label for label in samples.labels])

    return Monitor(pixels(bank), labels(bank), {"held_out": (pixels(held), labels(held))})


def provenance(run: Run, samples: SampleList, recipe: Any) -> dict[str, Any]:
    """What the card says about how the weights came to be."""
    return {
        "data": samples.origin,
        "data_digest": run.images.digest,
        "recipe": asdict(recipe),
        "seed": run.settings.seed,
        "batch": run.settings.batch,
        "optimiser": asdict(run.settings.rates),
        "images_seen": run.step * run.settings.batch,
        "complete": run.step == run.schedule.total,
        "cpu_seconds": round(run.cpu_seconds),
        "learning_curve": learning_curve(run.curve),
    }
