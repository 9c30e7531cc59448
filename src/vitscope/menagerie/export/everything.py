"""One folder with every layout, written completely or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from vitscope.core.errors import VitscopeError
from vitscope.core.reading import user_path
from vitscope.menagerie.export.coco import write_coco, write_partimagenet
from vitscope.menagerie.export.davis import write_davis
from vitscope.menagerie.export.folders import write_conflict, write_imagefolder, write_individuals
from vitscope.menagerie.export.spair import write_spair
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World

SIZE = 56  # edge of the images in pixels: as the networks of the zoo take them
Progress = Callable[[str, int, int], None]
"""Told (layout, images written, images in all) after each image."""


@dataclass(frozen=True)
class Amounts:
    """How much of each layout; 0 leaves it out."""

    train: int = 4000  # images
    val: int = 1008  # images, of the nature-like and of the appearance-free test set each
    coco: int = 400  # images, most of them with two creatures
    parts: int = 800  # images
    individuals: int = 64
    encounters: int = 6  # images of each individual
    pairs: int = 480  # keypoint pairs
    videos: int = 12
    frames: int = 20  # of each video
    conflict: int = 480  # images with the shape of one species and the look of another

    @property
    def pictures(self) -> int:
        """All pictures that will be rendered."""
        once = self.train + 2 * self.val + self.coco + self.parts + self.conflict
        return once + self.individuals * self.encounters + 2 * self.pairs + self.videos * self.frames

    def __post_init__(self) -> None:
        for name, amount in asdict(self).items():
            if amount < 0:
                raise VitscopeError(f"the amount of {name} is {amount}: choose 0 or more")
        if self.videos and self.frames < 2:
            raise VitscopeError("a video needs two frames or more: raise the number of frames")
        if self.individuals and self.encounters < 2:
            raise VitscopeError("an individual that is met once cannot be found again: use 2 encounters or more")


@dataclass(frozen=True)
class Summary:
    """What was written: images by layout."""

    folder: Path
    images: dict[str, int]


def export(
    out: Path | str,
    *,
    world: World | None = None,
    size: int = SIZE,
    amounts: Amounts | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Write the world to a new folder `out`; videos are twice as high as the `size` of the images.

    imagefolder/{train,val,val-appearance-free}/<species>/*.png with captions.json, imagefolder/cue-conflict/<species>/
    <species>1-<other>1.png, coco/, partimagenet/, davis/, spair/, individuals/<identity>/*.png, and menagerie.json,
    which says what made them.
    """
    out = user_path(out)
    world, amounts = world or World(), amounts or Amounts()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise VitscopeError(f"{out} exists and is not an empty folder: choose another --out, nothing was overwritten")
    if not 32 <= size <= 1024:
        raise VitscopeError(f"images of {size} pixels cannot be exported: choose a size from 32 to 1024")
    try:
        images = _write_whole(out, world, size, amounts, progress or (lambda layout, done, total: None))
    except OSError as error:
        raise VitscopeError(
            f"the world cannot be written to {out}: {error.strerror}: make room and run the same command again, or "
            "choose another folder"
        ) from None
    return Summary(out, images)


def _write_whole(out: Path, world: World, size: int, amounts: Amounts, progress: Progress) -> dict[str, int]:
    """Write beside `out` and rename at the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        images = _write_all(draft, world, size, amounts, progress)
        made = {"world": asdict(world), "size": size, "amounts": asdict(amounts), "images": images}
        species = [species.name for species in SPECIES]
        (draft / "menagerie.json").write_text(json.dumps(made | {"species": species}, indent=1) + "\n")
        draft.chmod(0o755)  # temporary folders are private
        if out.exists():
            out.rmdir()
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return images


def _write_all(folder: Path, world: World, size: int, amounts: Amounts, progress: Progress) -> dict[str, int]:
    plain = World(seed=world.seed, correlation=0.0)
    layouts: dict[str, tuple[int, Callable[[Callable[[], None]], None]]] = {
        "imagefolder/train": (
            amounts.train,
            lambda tick: write_imagefolder(folder / "imagefolder/train", world, "train", amounts.train, size, tick),
        ),
        "imagefolder/val": (
            amounts.val,
            lambda tick: write_imagefolder(folder / "imagefolder/val", world, "nat", amounts.val, size, tick),
        ),
        "imagefolder/val-appearance-free": (
            amounts.val,
            lambda tick: write_imagefolder(
                folder / "imagefolder/val-appearance-free", plain, "unc", amounts.val, size, tick
            ),
        ),
        "imagefolder/cue-conflict": (
            amounts.conflict,
            lambda tick: write_conflict(folder / "imagefolder/cue-conflict", world, amounts.conflict, size, tick),
        ),
        "coco": (amounts.coco, lambda tick: write_coco(folder / "coco", world, amounts.coco, size, tick)),
        "partimagenet": (
            amounts.parts,
            lambda tick: write_partimagenet(folder / "partimagenet", world, amounts.parts, size, tick),
        ),
        "individuals": (
            amounts.individuals * amounts.encounters,
            lambda tick: write_individuals(
                folder / "individuals", world, amounts.individuals, amounts.encounters, size, tick
            ),
        ),
        "spair": (
            2 * amounts.pairs,
            lambda tick: write_spair(folder / "spair", world, amounts.pairs, size, tick),
        ),
        "davis": (
            amounts.videos * amounts.frames,
            lambda tick: write_davis(folder / "davis", world, amounts.videos, amounts.frames, 2 * size, tick),
        ),
    }
    total = sum(count for count, _ in layouts.values())
    done = 0
    for layout, (count, write) in layouts.items():
        if not count:
            continue

        def tick(layout: str = layout) -> None:
            nonlocal done
            done += 1
            progress(layout, done, total)

        write(tick)
    return {layout: count for layout, (count, _) in layouts.items() if count}
