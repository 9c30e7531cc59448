"""`vitscope teach`: teach a network on somebody's own images, and write a model card for the result."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from vitscope.core.device import choose_device
from vitscope.core.errors import VitscopeError
from vitscope.core.files import make_folder
from vitscope.data.folders import open_images
from vitscope.data.samples import SampleList
from vitscope.teaching.captions import read_captions
from vitscope.teaching.card import learning_curve, write_card
from vitscope.teaching.config import CHANGEABLE, TrainConfig
from vitscope.teaching.display import interruptible, shown
from vitscope.teaching.distributed import barrier, process_group, rank, world
from vitscope.teaching.images import ImageFiles, TrainingImages, open_training_images
from vitscope.teaching.loop import Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.optimiser import Rates
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import TEACHERS, check_lessons, create_teacher, recipe_for
from vitscope.teaching.trackers import Trackers, open_wandb
from vitscope.teaching.vit import create_encoder

HELD_OUT = 0.05  # share of labelled images that is only looked at, never taught
MOST_HELD_OUT = 500
BANK = 2000  # taught images among which neighbours are sought
POINTS = 200  # of the learning curve


@dataclass(frozen=True)
class Taught:
    """How a call of `teach` ended."""

    card: Path
    step: int
    steps: int
    interrupted: int = 0  # the signal that stopped it

    @property
    def complete(self) -> bool:
        return self.step >= self.steps


class Interrupted(KeyboardInterrupt):
    """Somebody stopped the run; checkpoint and card are written, and the same call goes on."""

    def __init__(self, taught: Taught) -> None:
        super().__init__(f"stopped at step {taught.step} of {taught.steps}")
        self.taught = taught


def teach(
    teacher: str,
    images: Path,
    arch: str = "",
    out: Path = Path("taught"),
    *,
    config: TrainConfig | Path | None = None,
    **settings: Any,
) -> Path:
    """Teach a ViT and write its model card, `OUT/model.toml`; returns the card's path.

    Called again with the same arguments it goes on from the last checkpoint, exactly as if it had never stopped; a
    checkpoint of another teacher, architecture, folder of images or setting is refused. Under `torchrun` the batch is
    divided among the processes.

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
        Folder for checkpoints, metrics (JSON lines), weights and model card.
    config:
        Settings, or a TOML file of them.
    settings:
        Fields of `TrainConfig`, before those of `config`; and of `How`.
    """
    how = How(**{name: settings.pop(name) for name in list(settings) if name in How.__dataclass_fields__})
    base = TrainConfig.read(config) if isinstance(config, Path) else config or TrainConfig()
    taught = run_teaching(teacher, images, out, base.but({**({"arch": arch} if arch else {}), **settings}), how)
    if taught.interrupted:
        raise Interrupted(taught)
    return taught.card


@dataclass(frozen=True)
class How:
    """How a run is made, which changes nothing of what is learned.

    device: cpu, cuda, mps or auto. workers: processes that decode images, when they are too many to be kept decoded.
    cache: folder where decoded images are kept between runs; inside `out` if not given.
    looks: how often k-NN accuracy of held-out images is measured (needs labels); 0 is never.
    stop_after: stop after so many CPU-minutes of this call, leaving a checkpoint and a card.
    save_every: keep a checkpoint every so many steps, beside the last one; 0 keeps none. keep: the newest so many of
    them; 0 keeps all. change: go on with other rates, decays or lengths than before; the card tells.
    wandb: project of Weights & Biases that is told how it goes; a run that is open already is told anyway.
    """

    device: str = "auto"
    workers: int = 4
    cache: Path | None = None
    looks: int = 20
    stop_after: float | None = None
    save_every: int = 0
    keep: int = 0
    change: bool = False
    wandb: str = ""

    def __post_init__(self) -> None:
        for name in ("workers", "looks", "save_every", "keep"):
            if getattr(self, name) < 0:
                raise VitscopeError(f"{name} is {getattr(self, name)}: it cannot be negative")


def run_teaching(teacher: str, images: Path, out: Path, config: TrainConfig, how: How) -> Taught:
    """Teach, from the last checkpoint if there is one, and write the card."""
    recipe = recipe_for(teacher, config.recipe)
    if not config.arch:
        raise VitscopeError("say which network to teach: --arch with the name of a timm ViT")
    if config.ema and teacher == "dino":
        raise VitscopeError("dino ships its teacher, which is a moving average already: leave ema at 0")
    make_folder(out)
    with process_group(choose_device(how.device)) as place:
        if config.batch % (world() * config.accumulate):
            raise VitscopeError(
                f"a batch of {config.batch} cannot be divided among {world()} processes and {config.accumulate} parts: "
                "use a multiple"
            )
        vision = create_encoder(config.arch, config.network, config.seed).patch_embed.img_size
        samples = open_images(images)
        taught, held = hold_out(samples, config.seed)
        lessons = prepare(teacher, taught, images, vision, how.cache or out / "cache", config.batch)
        steps = max(1, math.ceil(config.epochs * len(lessons) / config.batch))
        points = max(1, steps // POINTS)

        def card_of(run: Run, stem: str) -> Path:
            name = out.name if stem == "model" else f"{out.name} {stem}"
            about = provenance(run, samples, recipe, config)
            how_built: dict[str, Any] = {"architecture": config.arch, "options": config.network, "teaching": teacher}
            return write_card(out, stem, run.encoder, name=name, provenance=about, **how_built)

        run = Run(
            out,
            create_teacher(
                teacher, config.arch, config.network, lessons, seed=config.seed, recipe=recipe, weights=config.weights
            ),
            lessons,
            Schedule(round(config.warmup * steps), steps, min(steps, round(config.cooldown * steps))),
            Settings(
                batch=config.batch,
                seed=config.seed,
                rates=Rates(config.matrix_rate, config.rate, config.matrix_decay, config.decay),
                clip=config.clip,
                precision=config.precision,
                accumulate=config.accumulate,
                layer_decay=config.layer_decay,
                ema=config.ema,
                point_every=points,
                monitor_every=points * max(1, POINTS // how.looks) if how.looks else 0,
                workers=how.workers,
                save_every=how.save_every,
                keep=how.keep,
            ),
            # in the order in which they are compared: another seed also holds out other images
            identity={
                "teacher": teacher,
                **{f"recipe {name}": value for name, value in plain(asdict(recipe)).items()},
                **{name: value for name, value in config.told().items() if name != "recipe"},
                "data": lessons.digest,
            },
            device=place,
            monitor=watch(taught, held, vision, config.seed) if rank() == 0 and held and how.looks else None,
            on_aside=lambda run: card_of(run, f"step-{run.step}"),
        )
        run.resume(changeable=CHANGEABLE, change=how.change)
        if run.step > steps:
            raise VitscopeError(f"'{out}' is at step {run.step} already, beyond the {steps} asked for: use more epochs")
        if rank() == 0:
            if how.wandb:
                open_wandb(how.wandb, out, {"teacher": teacher, **config.told()})
            run.trackers = Trackers(out / "tensorboard", run.step)
        budget = math.inf if how.stop_after is None else run.cpu_seconds + how.stop_after * 60
        with shown(run, f"{teacher} {config.arch}"), interruptible() as interrupted:
            run.train(stop=lambda: bool(interrupted) or run.cpu_seconds >= budget)
        if run.trackers is not None:
            run.trackers.close()
        card = out / "model.toml"
        if rank() == 0:
            card = card_of(run, "model")
        barrier()
        return Taught(card, run.step, steps, interrupted[0] if interrupted and run.step < steps else 0)


def plain(value: Any) -> Any:
    """As it comes back from a checkpoint: tuples as lists."""
    return json.loads(json.dumps(value))


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


def provenance(run: Run, samples: SampleList, recipe: Any, config: TrainConfig) -> dict[str, Any]:
    """What the card says about how the weights came to be."""
    return {
        "data": samples.origin,
        "data_digest": run.images.digest,
        "recipe": asdict(recipe),
        "settings": {k: v for k, v in config.told().items() if v is not None and k not in ("options", "recipe")},
        **({"changes": run.changes} if run.changes else {}),
        "images_seen": run.step * run.settings.batch,
        "complete": run.step == run.schedule.total,
        "cpu_seconds": round(run.cpu_seconds),
        "learning_curve": learning_curve(run.curve),
    }
