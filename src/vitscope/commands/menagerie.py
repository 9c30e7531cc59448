"""`vitscope menagerie`: the built-in world, as images and in the layouts of the official datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitscope.commands.options import whole
from vitscope.core.files import make_folder, write_atomically
from vitscope.core.progress import shown
from vitscope.core.say import say
from vitscope.menagerie import SIZE, Amounts, World, contact_sheet, export

Amount = Annotated[int, whole(0, 10**7)]


def menagerie(
    *,
    out: Path = Path("runs/menagerie"),
    size: Annotated[int, whole(16, 2048)] = SIZE,
    sheet: bool = False,
    correlation: float = 0.6,
    seed: Annotated[int, whole(0, 2**63 - 1)] = 0,
    train: Amount = Amounts.train,
    val: Amount = Amounts.val,
    coco: Amount = Amounts.coco,
    parts: Amount = Amounts.parts,
    individuals: Amount = Amounts.individuals,
    encounters: Amount = Amounts.encounters,
    pairs: Amount = Amounts.pairs,
    videos: Amount = Amounts.videos,
    frames: Amount = Amounts.frames,
    conflict: Amount = Amounts.conflict,
) -> None:
    """Render the built-in world: sixteen species of creatures, with every annotation, deterministic for a seed.

    Writes to OUT: imagefolder/ (train, val, val-appearance-free, captions, cue-conflict), coco/, partimagenet/, davis/,
    spair/ and individuals/ (retrieval), each in the layout of the official dataset, so that every command reads it like
    one. An amount of 0 leaves a layout out.

    Parameters
    ----------
    out
        A new folder.
    size
        Edge of the images in pixels, 16 to 2048.
    sheet
        Write only contact sheets (contact-sheet.png, and contact-sheet-annotated.png with masks, parts and keypoints).
    correlation
        How strongly species go with palette, pattern and habitat: 0 (appearance-free) to 1.
    seed
        Another seed is another world of individuals and scenes.
    train
        Training images.
    val
        Test images, nature-like and appearance-free each.
    coco
        Images with object masks.
    parts
        Images with part masks.
    individuals
        Individuals to be found again.
    encounters
        Images of each individual.
    pairs
        Pairs of images with corresponding keypoints.
    videos
        Videos with a mask for every frame.
    frames
        Frames of each video.
    conflict
        Images with the shape of one species, and the palette and pattern of another.
    """
    world = World(seed=seed, correlation=correlation)
    if sheet:
        make_folder(out)
        for annotated, name in ((False, "contact-sheet.png"), (True, "contact-sheet-annotated.png")):
            picture = contact_sheet(world, size=max(size, 64), annotated=annotated)
            write_atomically(out / name, lambda path, picture=picture: picture.save(path))  # type: ignore[misc]
            say(f"wrote {out / name}")
        return
    amounts = Amounts(train, val, coco, parts, individuals, encounters, pairs, videos, frames, conflict)
    with shown("rendering", amounts.pictures) as advance:
        summary = export(out, world=world, size=size, amounts=amounts, progress=lambda *_: advance(1))
    for layout, count in summary.images.items():
        say(f"{count:>6} images in {layout}/")
    data = f"--masks {out / 'coco'}" if coco else f"--images {out / 'imagefolder'}"
    say(f"wrote {out}; try: vitscope attention zoo/dino {data}")
