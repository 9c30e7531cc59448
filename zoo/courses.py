"""What the networks of the zoo have in common, and what each is taught: architecture, images, courses."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import Point, Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import create_teacher, recipe_for
from zoo.world import monitor, rendered

ROOT = Path("runs/zoo2")  # checkpoints and rendered images
# A plain pre-norm ViT with CLS, learned absolute positions and axial rotary ones: timm's Eva class, without its gates.
# 14 x 14 patches are the layout of the paper's ViT-B/16. Rotations of 1.57 down to 0.33 radians per patch.
ARCHITECTURE = "eva02_tiny_patch14_224"
OPTIONS: dict[str, Any] = {
    "img_size": 56,
    "patch_size": 4,
    "embed_dim": 64,
    "depth": 12,
    "num_heads": 4,
    "mlp_ratio": 4.0,
    "swiglu_mlp": False,
    "attn_type": "rope",
    "global_pool": "token",
    "ref_feat_shape": 22,
    "rope_temperature": 8.0,
}
SIZE = 56
IMAGES = 96_000  # rendered pictures, the same for all
SEED = 0
WARMUP = 300  # steps
LOOK_EVERY = 64_000  # images between looks at the features
MOMENTS = (1 / 32, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the plateau: what the network was then is kept, as a model card


@dataclass(frozen=True)
class Course:
    """How one network of the zoo is taught."""

    images: int  # seen on the plateau before the network is done
    cooldown: float = 0.2  # seen after it while the learning rate falls, as a share of those
    batch: int = 32
    changes: dict[str, Any] = field(default_factory=dict)  # of the teacher's recipe
    teacher: str = ""  # whose course it is; the network's own name if not given
    seed: int = SEED

    @property
    def steps(self) -> int:
        return self.images // self.batch

    @property
    def moments(self) -> list[int]:
        """Steps after which the network is kept."""
        return [max(1, round(self.steps * share)) for share in MOMENTS]


# A creature fills a part of the picture, and small crops often miss it. With two of them DINO
# stood at .20 k-NN on UNC from 64k images on; without, all else equal, it was there at 26k and went on.
LARGE_CROPS_ONLY = {"small_crops": 0, "momentum": 0.98, "final_momentum": 0.99}

# Where an image is summed up, a part of its patches will do, at a part of the cost (FLIP, Li et al. 2023); all of them
# are shown at the end of cool-down. With positions that rotate, heads lose nothing by it: MAE's local ones come about
# in a quarter of the patches. A third are as many as an image of 8 x 8 patches has in all.
HALF, THIRD = {"sees": 0.5}, {"sees": 1 / 3}

# The smaller the decoder, the more the encoder has to do. PCK and part purity of one seed, before cool-down: two blocks
# as wide as the encoder .135 and .22 (234k images), one of them .170 and .24 (92k), one of half the width .187 and .27
# (96k).
SMALL_DECODER = {"decoder_depth": 1, "decoder_width": 32}

# With labels k-NN on UNC is .93 after 64,000 images, when captions have reached .48 and contrast .29: labels need less.
COURSES: dict[str, Course] = {
    "fs": Course(80_000, changes=HALF),
    "clip": Course(304_000, 0.12, batch=64, changes=THIRD),
    "dino": Course(160_000, changes=LARGE_CROPS_ONLY | THIRD),
    "moco": Course(176_000, batch=64, changes=THIRD),
    "mae": Course(176_000, changes=SMALL_DECODER),
    "beit": Course(64_000),
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
    options: Mapping[str, Any] | None = None,
    watch: Monitor | None = None,
    on_point: Callable[[Point], None] | None = None,
) -> Run:
    """The run of one network, at its start. options: of another architecture than the zoo's."""
    options = dict(OPTIONS if options is None else options)
    course = COURSES[key]
    teacher = course.teacher or key
    recipe = recipe_for(teacher, course.changes)
    points = max(1, 6400 // course.batch)  # steps between points of the learning curve
    return Run(
        folder,
        create_teacher(teacher, ARCHITECTURE, options, images, seed=course.seed, recipe=recipe),
        images,
        schedule,
        Settings(
            batch=course.batch,
            seed=course.seed,
            point_every=points,
            monitor_every=points * max(1, LOOK_EVERY // (points * course.batch)),
        ),
        identity={
            "teacher": teacher,
            "architecture": ARCHITECTURE,
            "options": options,
            "data": images.digest,
            "batch": course.batch,
            "seed": course.seed,
            "recipe": course.changes,
        },
        monitor=watch,
        on_point=on_point,
    )
