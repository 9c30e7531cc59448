"""`vitscope look`: somebody's own photos as networks see them."""

from __future__ import annotations

import re
from pathlib import Path

from vitscope.commands.options import FigureWidth, ModelOptions
from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.say import say

MOST_PHOTOS = 16


def look(
    *photos: Path,
    model: list[str] | None = None,
    at: str | None = None,
    without_position: bool = False,
    out: Path = Path("runs/look"),
    width: FigureWidth = None,
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Your own photos as models see them, layer by layer.

    Writes mosaics to OUT: principal components of the patch tokens as colours (photos by layers for each model, models
    by layers for the first photo); with --at also what is alike to a point, in all photos, and where the point looks.

    Parameters
    ----------
    photos
        Image files; components are taken of all of them together.
    model
        A name from `vitscope models`, a timm name, random:NAME, a model card or a weights file; may be given several
        times.
    at
        A pixel of the first photo, as X,Y from its upper left corner.
    without_position
        Subtract the mean of each position over the photos first: of few photos, it takes what they all show with it.
    out
        Folder for the pictures.
    """
    from vitscope.core.files import make_folder
    from vitscope.report.look import look_at
    from vitscope.report.style import figure_width

    if not photos:
        raise VitscopeError("name at least one photo to look at")
    if len(photos) > MOST_PHOTOS:
        raise VitscopeError(f"{len(photos)} photos do not fit into one picture: name at most {MOST_PHOTOS}")
    specs = model_options.specs(model or ())
    make_folder(out)
    point = _point(at)
    with figure_width(width):
        written = look_at(specs, photos, out, at=point, without_position=without_position, device=model_options.device)
    for path in written:
        if path.suffix == ".png":
            say(f"wrote {path}")


def _point(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,7}),([0-9]{1,7})", text.strip())
    if found is None:
        raise VitscopeError(
            f"--at {shorten(text, 40)} is no point: give two whole numbers of pixels, as in --at 120,80"
        )
    return int(found[1]), int(found[2])
