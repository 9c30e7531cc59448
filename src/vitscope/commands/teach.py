"""`vitscope teach`: teach a ViT on somebody's own images."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from vitscope.commands.options import whole
from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.say import say
from vitscope.teaching.config import TrainConfig
from vitscope.teaching.teach import How, Taught, run_teaching

MOST_MINUTES = 10**9

DEFAULTS = TrainConfig()


def teach(
    teacher: Literal["fs", "clip", "dino", "moco", "mae", "beit"],
    /,
    *,
    images: Path,
    out: Path,
    config: Path | None = None,
    settings: Annotated[TrainConfig, Parameter(name="*")] = DEFAULTS,
    option: list[str] | None = None,
    recipe: list[str] | None = None,
    device: str = "auto",
    workers: Annotated[int, whole(0, 256)] = 4,
    cache: Path | None = None,
    looks: Annotated[int, whole(0, 10**6)] = 20,
    stop_after: float | None = None,
    save_every: Annotated[int, whole(0, 10**12)] = 0,
    keep: Annotated[int, whole(0, 10**9)] = 0,
    change: bool = False,
    wandb: str = "",
) -> None:
    """Teach a ViT; the result is a model card that every command takes as a model.

    The same command again goes on from the last checkpoint, exactly as if it had never stopped. OUT/metrics.jsonl
    tells how it went, and OUT/tensorboard where TensorBoard is installed. With several GPUs: torchrun
    --nproc-per-node N -m vitscope.cli teach ...

    Parameters
    ----------
    teacher
        fs (class labels), clip (captions), dino, moco, mae or beit.
    images
        Folder of images. One subfolder per class gives labels; captions.json ({image: caption}) or a .txt file beside
        each image gives captions. Or a folder of tar files, as WebDataset has them: 1.jpg, 1.cls, 1.txt, 2.jpg, ...
    out
        Folder for checkpoints, metrics, weights and the model card (model.toml).
    config
        TOML file with any of the settings below (rate = 0.001, batch = 128, [options], [recipe], ...); what is said
        on the command line comes before it.
    option
        A keyword argument of the architecture as KEY=VALUE, such as patch_size=8 or depth=6; may be repeated.
    recipe
        A change of the teacher's recipe as KEY=VALUE, such as momentum=0.996; may be repeated.
    device
        cpu, cuda, mps or auto.
    workers
        Processes that decode images, when they are too many to be kept decoded.
    cache
        Folder where decoded images are kept between runs; inside OUT if not given.
    looks
        How often k-NN accuracy of held-out images is measured; needs labels; 0 is never.
    stop_after
        Stop after so many CPU-minutes, leaving a checkpoint and a card.
    save_every
        Keep a checkpoint and a model card (step-N.toml) every so many steps, beside the last one; 0 keeps none. A study
        draws such cards over steps: series = "OUT/step-*.toml".
    keep
        Of those, keep the newest so many; 0 keeps all.
    change
        Go on with other rates, decays or lengths than the checkpoint was made with; the card tells what was changed.
    wandb
        Tell this project of Weights & Biases how it goes, as a run named like OUT.
    """
    if stop_after is not None and not 0 <= stop_after <= MOST_MINUTES:
        raise VitscopeError(f"--stop-after is a number of minutes from 0 to {MOST_MINUTES:,}, not {stop_after}")
    base = TrainConfig.read(config) if config is not None else TrainConfig()
    said = {name: getattr(settings, name) for name in settings.model_fields_set}
    said["options"] = {**base.options, **pairs(option, "--option")}
    said["recipe"] = {**base.recipe, **pairs(recipe, "--recipe")}
    how = How(device, workers, cache, looks, stop_after, save_every, keep, change, wandb)
    taught = run_teaching(teacher, images, out, base.but(said), how)
    say(ending(taught, images))
    if taught.interrupted:
        sys.exit(128 + taught.interrupted)


def ending(taught: Taught, images: Path) -> str:
    """What to say at the end of a call."""
    if taught.complete:
        return f"wrote {taught.card}; try: vitscope attention {taught.card} --images {images}"
    return (
        f"stopped at step {taught.step} of {taught.steps}, not finished: the same command goes on; "
        f"{taught.card} is what the network is by now"
    )


def pairs(words: list[str] | None, flag: str) -> dict[str, Any]:
    """KEY=VALUE words as a dictionary; values are numbers, true/false, or text.

    >>> pairs(["depth=6", "qk_norm=true"], "--option")
    {'depth': 6, 'qk_norm': True}
    """
    found = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise VitscopeError(f"{flag} takes KEY=VALUE, not '{shorten(word)}'")
        try:
            found[key] = json.loads(value)
        except (ValueError, RecursionError):  # a word; or what only looks like a value
            found[key] = value
    return found
