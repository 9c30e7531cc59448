"""What the networks of the zoo have in common, and what each is taught: architecture, images, courses."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vitscope.digest import digest_of
from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import Point, Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import create_teacher, recipe_for
from vitscope.teaching.zoo.world import monitor, rendered

ROOT = Path("runs/zoo")  # checkpoints and rendered images
ARCHITECTURE = "vit_tiny_patch16_224"
OPTIONS: dict[str, Any] = {"img_size": 64, "patch_size": 8, "embed_dim": 64, "depth": 12, "num_heads": 4}
SIZE = 64
IMAGES = 60_000  # rendered pictures, the same for all
SEED = 0
WARMUP = 300  # steps
LOOK_EVERY = 32_000  # images between looks at the features


@dataclass(frozen=True)
class Course:
    """How one network of the zoo is taught."""

    images: int  # seen on the plateau before the network is done
    cooldown: float = 0.25  # seen after it while the learning rate falls, as a share of those
    batch: int = 64
    changes: dict[str, Any] = field(default_factory=dict)  # of the teacher's recipe


# A creature fills a part of the picture, and small crops often miss it. With two of them DINO
# stood at .20 k-NN on UNC from 64k images on; without, all else equal, it was there at 26k and went on.
LARGE_CROPS_ONLY = {"small_crops": 0, "momentum": 0.98, "final_momentum": 0.99}

# The smaller the decoder, the more the encoder has to do. PCK and part purity of one seed, before cool-down: two blocks
# as wide as the encoder .135 and .22 (234k images), one of them .170 and .24 (92k), one of half the width .187 and .27
# (96k).
SMALL_DECODER = {"decoder_depth": 1, "decoder_width": 32}

COURSES: dict[str, Course] = {
    "fs": Course(112_832),
    "clip": Course(241_152),
    "dino": Course(196_992, 0.35, changes=LARGE_CROPS_ONLY),
    "moco": Course(203_200),
    "mae": Course(246_336, changes=SMALL_DECODER),
    "beit": Course(121_280),
}


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether this process alone holds the lock; the system releases it when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def classroom(root: Path) -> tuple[StoredImages, Monitor]:
    """The images of the zoo, rendered if they are not there yet, and the test sets."""
    folder = root / "world"
    with locked(folder / "lock", wait=True):
        images = rendered(folder, "train", IMAGES, SIZE)
        return images, monitor(folder, images, SIZE)


def open_run(
    folder: Path,
    key: str,
    images: StoredImages,
    schedule: Schedule,
    *,
    watch: Monitor | None = None,
    on_point: Callable[[Point], None] | None = None,
) -> Run:
    """The run of one network, at its start."""
    course = COURSES[key]
    recipe = recipe_for(key, course.changes)
    points = max(1, 6400 // course.batch)  # steps between points of the learning curve
    return Run(
        folder,
        create_teacher(key, ARCHITECTURE, OPTIONS, images, seed=SEED, recipe=recipe),
        images,
        schedule,
        Settings(
            batch=course.batch,
            seed=SEED,
            point_every=points,
            monitor_every=points * max(1, LOOK_EVERY // (points * course.batch)),
        ),
        identity={
            "teacher": key,
            "architecture": ARCHITECTURE,
            "options": OPTIONS,
            "data": images.digest,
            "recipe": digest_of([asdict(recipe), course.batch, SEED]),
        },
        monitor=watch,
        on_point=on_point,
    )
