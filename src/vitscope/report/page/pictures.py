"""Pictures that come with a study, made small enough to travel inside the page."""

from __future__ import annotations

import base64
import io
import warnings
from dataclasses import dataclass

from PIL import Image

BUDGET = 2_400_000  # bytes of all pictures
WIDEST = 1600  # pixels
LARGEST = 40_000_000  # pixels of a picture that is opened at all


@dataclass(frozen=True)
class Picture:
    name: str
    uri: str
    width: int
    height: int


def page_pictures(pictures: dict[str, bytes]) -> tuple[list[Picture], list[str]]:
    """Pictures as data URIs, and the names of those that are unreadable or no longer fit."""
    shown, left_out, spent = [], [], 0
    for name, data in pictures.items():
        small = _small(data)
        if small is None or spent + len(small[0]) > BUDGET:
            left_out.append(name)
            continue
        content, width, height = small
        spent += len(content)
        uri = f"data:image/webp;base64,{base64.b64encode(content).decode()}"
        shown.append(Picture(name, uri, width, height))
    return shown, left_out


def _small(data: bytes) -> tuple[bytes, int, int] | None:
    """The picture as WebP, at most `WIDEST` wide."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(data)) as opened:
                if opened.width * opened.height > LARGEST:
                    return None
                picture = opened.convert("RGBA" if "A" in opened.getbands() else "RGB")
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        return None
    picture.thumbnail((WIDEST, 4 * WIDEST), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="WEBP", quality=82, method=4)
    return buffer.getvalue(), picture.width, picture.height
