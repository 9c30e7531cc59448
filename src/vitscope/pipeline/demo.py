"""The built-in study: the zoo in its world, every domain and task, small enough for three minutes on two cores."""

from __future__ import annotations

import os
from pathlib import Path

from vitscope.core.files import make_folder
from vitscope.core.progress import Progress, silent
from vitscope.core.teachings import TEACHINGS
from vitscope.menagerie import Amounts, World, export
from vitscope.models.listing import listings
from vitscope.pipeline.study import Study, parse_study

TITLE = "Six teachings, one network, one world"
AMOUNTS = Amounts(
    train=640, val=256, coco=0, parts=192, individuals=40, encounters=4, pairs=144, videos=8, frames=5, conflict=0
)  # fmt: skip
ORDER = ("fs", "clip", "dino", "moco", "mae", "beit", "none")


def demo_study(out: Path, *, progress: Progress = silent) -> Study:
    """Render the world into OUT/world, if it is not there yet, and describe the study of the zoo in it."""
    world = out / "world"
    if not (world / "menagerie.json").exists():
        make_folder(out)
        with progress("rendering the world", AMOUNTS.pictures) as advance:
            export(world, world=World(), amounts=AMOUNTS, progress=lambda *_: advance(1))
    labelled = world / "labelled"
    if not labelled.exists():
        labelled.mkdir()  # learn on nature-like images, be asked about appearance-free ones: shape is what counts
        (labelled / "train").symlink_to(Path("..") / "imagefolder" / "train")
        (labelled / "val").symlink_to(Path("..") / "imagefolder" / "val-appearance-free")
    known = {listing.name: listing for listing in listings("zoo/*")}
    titles = {f"zoo/{key}": TEACHINGS[key].title for key in ORDER}
    models = [{"name": name, "title": title} for name, title in titles.items() if name in known]
    values = {
        "title": TITLE,
        "models": models,
        "out": str(out),
        "processes": os.cpu_count() or 1,
        "data": {
            "images": {"path": str(world / "imagefolder" / "val"), "title": "menagerie", "limit": AMOUNTS.val},
            "masks": {"path": str(world / "partimagenet"), "title": "menagerie parts"},
            "labelled": {"path": str(labelled), "title": "menagerie species"},
            "retrieval": {"path": str(world / "individuals"), "title": "menagerie individuals"},
            "video": {"path": str(world / "davis"), "title": "menagerie videos"},
            "keypoints": {"path": str(world / "spair"), "title": "menagerie pairs"},
            "segmentation": {"path": str(world / "partimagenet"), "title": "menagerie parts"},
        },
    }
    return parse_study(values, out.resolve(), "demo")
