"""One file to one picture: every mode and oddity of image files ends as 8-bit RGB, or as a `BadImage` with a reason.

Decisions, so that the same file always gives the same pixels:

- 16-bit values are scaled to 8 bits (v * 255 / 65535, rounded), never clipped;
- transparency is laid on white, as viewers and browsers show it;
- CMYK is converted by the plain formula, colour profiles are not applied (training pipelines do not either);
- of an animation or a multi-page file the first picture is taken;
- the EXIF orientation is applied: the picture is upright, as people see it.
"""

from __future__ import annotations

import io
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, UnidentifiedImageError

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import reason

Result = TypeVar("Result")

MIN_SIDE = 2  # pixels: a line or a single pixel shows nothing
MAX_PIXELS = 1 << 27  # 134 megapixels, 400 MB as RGB: larger files are taken for decompression bombs
MAX_BYTES = 1 << 30  # of a file: the largest picture, not compressed at all
MAX_ASPECT = 50  # resizing the short side of a thinner picture would make an enormous one

# Formats with decoders inside Pillow. EPS is left out on purpose: it would start an interpreter on the file.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF")
_SUFFIXES = "jpg jpeg jpe jfif png apng gif bmp webp tif tiff ppm pgm pbm pnm jp2 avif"
EXTENSIONS = frozenset(f".{suffix}" for suffix in _SUFFIXES.split(" "))  # in lower case

_ORIENTATION_TAG = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# Our own limit speaks for Pillow's warning, and a message on stderr for each file would hide the reasons we give.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class BadImage(BadData):
    """A picture or mask that cannot be used; `reason` is a phrase that follows the file's name."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{shorten(path)}: {reason}")
        self.path = path
        self.reason = shorten(reason, 400)

    def __reduce__(self) -> tuple[type[BadImage], tuple[Path | str, str]]:
        return type(self), (self.path, self.reason)


def decode_image(path: Path) -> Image.Image:
    """The upright RGB picture in a file. Raises BadImage, and nothing else, for whatever is wrong with it."""
    return _opened(path, to_rgb)


def decode_bytes(data: bytes, name: str, *, most_pixels: int = MAX_PIXELS) -> Image.Image:
    """The same for a file that came over a wire. name: what a BadImage calls it; most_pixels: more are refused."""

    def checked(image: Image.Image) -> Image.Image:
        if image.width * image.height > most_pixels:
            raise BadImage(name, f"has more than the limit of {most_pixels / 1e6:.0f} megapixels: shrink it first")
        return to_rgb(image)

    return _decoded(io.BytesIO(data), name, checked)


def decode_mask(path: Path) -> np.ndarray:
    """The values stored in a mask file, (H, W) uint8 or uint16: palette indices for indexed files, 0/255 for 1-bit."""
    return _opened(path, mask_values)


def image_size(path: Path) -> tuple[int, int]:
    """(height, width) of the upright picture, from the file's header alone."""
    return _opened(path, _upright_size)


def size_of_bytes(data: bytes, name: str) -> tuple[int, int]:
    """The same for a file within another one."""
    return _decoded(io.BytesIO(data), name, _upright_size)


def to_rgb(image: Image.Image) -> Image.Image:
    """Any loaded Pillow image as upright 8-bit RGB; see the decisions at the top of this file."""
    image.load()
    orientation = _orientation(image)  # before conversions, which drop it
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_to_eight_bits(np.asarray(image)))
    if image.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        image = Image.new("RGBA", rgba.size, "white")
        image.alpha_composite(rgba)
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image


def mask_values(image: Image.Image) -> np.ndarray:
    """(H, W) values of an upright mask image; a colour image is accepted only if it is grey in disguise."""
    image.load()
    orientation = _orientation(image)
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
    if image.mode == "1":
        image = image.convert("L")
    values = np.array(image)
    if values.ndim == 3:
        colours = values[..., : 1 if image.mode in ("LA", "PA") else 3]
        if (colours != colours[..., :1]).any():
            raise ValueError("a mask must be grey or indexed, and this one is a colour image")
        values = colours[..., 0]
    if values.dtype != np.uint8:
        if values.min() < 0 or values.max() > 65535 or values.dtype.kind == "f":
            raise ValueError("mask values must be whole numbers from 0 to 65535")
        values = values.astype(np.uint16)
    return values


def _to_eight_bits(values: np.ndarray) -> np.ndarray:
    """16-bit integers, or floats in [0, 1] or [0, 255], to uint8."""
    low, high = values.min(), values.max()
    if values.dtype.kind == "f":
        if not (low >= 0 and high <= 255):  # also true for NaN
            raise ValueError("floating-point values must lie in 0..1 or 0..255")
        found: np.ndarray = np.rint(values * (255 if high <= 1 else 1)).astype(np.uint8)
        return found
    if low < 0 or high > 65535:
        raise ValueError("integer values must lie in 0..65535")
    return ((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged metadata does not make the pixels unusable
        return 1


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (width, height) if _orientation(image) in (5, 6, 7, 8) else (height, width)


def check_size(width: int, height: int) -> None:
    """Raises ValueError, with the reason, for sizes that cannot be looked at."""
    if min(width, height) < MIN_SIDE:
        raise ValueError(f"{width}x{height} pixels are too few to show anything")
    if width * height > MAX_PIXELS:
        raise ValueError(
            f"{width}x{height} pixels are more than the limit of {MAX_PIXELS / 1e6:.0f} megapixels: shrink it first"
        )
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ValueError(f"{width}x{height} pixels: the long side is more than {MAX_ASPECT} times the short one")


def _formats() -> list[str]:
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]  # AVIF is missing from older Pillows


def _opened(path: Path, then: Callable[[Image.Image], Result]) -> Result:
    """`then(image)` on an opened, size-checked file, with every failure turned into a BadImage."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise BadImage(path, "does not exist") from None
    except PermissionError:
        raise BadImage(path, "cannot be read: permission denied") from None
    except Exception as error:  # a name that no file can have
        raise BadImage(path, f"cannot be decoded: {reason(error)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadImage(path, "is not a regular file")
    if status.st_size > MAX_BYTES:
        raise BadImage(path, f"has more than {MAX_BYTES >> 30} GiB: it is not an image")
    return _decoded(path, path, then)


def _decoded(source: Path | io.BytesIO, name: Path | str, then: Callable[[Image.Image], Result]) -> Result:
    try:
        with Image.open(source, formats=_formats()) as image:
            check_size(*image.size)
            return then(image)
    except BadImage:
        raise
    except FileNotFoundError:
        raise BadImage(name, "does not exist") from None
    except PermissionError:
        raise BadImage(name, "cannot be read: permission denied") from None
    except UnidentifiedImageError:
        raise BadImage(name, "is not an image of a known format") from None
    except Image.DecompressionBombError:
        raise BadImage(name, f"has more than the limit of {MAX_PIXELS / 1e6:.0f} megapixels") from None
    except MemoryError:
        raise BadImage(name, "is too large for this machine's memory") from None
    except Exception as error:  # decoders raise anything at all on damaged bytes
        raise BadImage(name, f"cannot be decoded: {reason(error)}") from None
