"""`vitscope menagerie`: the built-in world, as pictures and in the layouts of the official datasets."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from vitscope.data.menagerie import Amounts, World, contact_sheet, export
from vitscope.progress import shown
from vitscope.results import make_folder, write_atomically


def menagerie(
    *,
    out: Path = Path("runs/menagerie"),
    size: int = 64,
    sheet: bool = False,
    correlation: float = 0.6,
    seed: int = 0,
    train: int = Amounts.train,
    val: int = Amounts.val,
    coco: int = Amounts.coco,
    parts: int = Amounts.parts,
    individuals: int = Amounts.individuals,
    encounters: int = Amounts.encounters,
    pairs: int = Amounts.pairs,
    videos: int = Amounts.videos,
    frames: int = Amounts.frames,
) -> None:
    """Render the built-in world: sixteen species of creatures, with every annotation, deterministic for a seed.

    Writes to OUT: imagefolder/ (train, val, val-appearance-free, captions), coco/, partimagenet/, davis/, spair/ and
    individuals/ (retrieval), each in the layout of the official dataset, so that every command reads it like one. An
    amount of 0 leaves a layout out.

    Parameters
    ----------
    out
        A new folder.
    size
        Edge of the pictures in pixels, 16 to 2048.
    sheet
        Write only contact sheets (contact-sheet.png, and contact-sheet-annotated.png with masks, parts and keypoints).
    correlation
        How strongly species go with palette, pattern and habitat: 0 (appearance-free) to 1.
    seed
        Another seed is another world of individuals and scenes.
    train
        Training pictures.
    val
        Test pictures, nature-like and appearance-free each.
    coco
        Pictures with object masks.
    parts
        Pictures with part masks.
    individuals
        Individuals to be found again.
    encounters
        Pictures of each individual.
    pairs
        Pairs of pictures with corresponding keypoints.
    videos
        Videos with a mask for every frame.
    frames
        Frames of each video.
    """
    world = World(seed=seed, correlation=correlation)
    console = Console()
    if sheet:
        make_folder(out)
        for annotated, name in ((False, "contact-sheet.png"), (True, "contact-sheet-annotated.png")):
            picture = contact_sheet(world, size=max(size, 64), annotated=annotated)
            write_atomically(out / name, lambda path, picture=picture: picture.save(path))  # type: ignore[misc]
            console.print(f"wrote {out / name}", highlight=False)
        return
    amounts = Amounts(train, val, coco, parts, individuals, encounters, pairs, videos, frames)
    with shown("rendering", amounts.pictures) as advance:
        summary = export(out, world=world, size=size, amounts=amounts, progress=lambda *_: advance(1))
    for layout, count in summary.images.items():
        console.print(f"{count:>6} pictures in {layout}/", highlight=False)
    console.print(f"wrote {out}; try: vitscope attention zoo/dino --masks {out / 'coco'}", highlight=False)
