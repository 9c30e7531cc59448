"""Every kind of image file ends as the right 8-bit RGB pixels, or as a BadImage with a reason."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from vitscope.data.decode import BadImage, decode_image, decode_mask, image_size


def pixels(path: Path) -> np.ndarray:
    image = decode_image(path)
    assert image.mode == "RGB"
    return np.asarray(image)


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    eight_bit = np.arange(256, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(eight_bit * 257).save(tmp_path / "a.png")  # 257 = 65535 / 255
    assert np.array_equal(pixels(tmp_path / "a.png"), np.repeat(eight_bit[..., None], 3, axis=2))


def test_sixteen_bit_tiff_is_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 32768, np.uint16)).save(tmp_path / "a.tif")
    assert (pixels(tmp_path / "a.tif") == 128).all()  # 32768 * 255 / 65535 = 127.502


@pytest.mark.parametrize(("value", "shown"), [(0.5, 128), (1.0, 255), (200.0, 200)])
def test_floating_point_tiff(tmp_path: Path, value: float, shown: int) -> None:
    Image.fromarray(np.full((4, 4), value, np.float32)).save(tmp_path / "a.tif")
    assert (pixels(tmp_path / "a.tif") == shown).all()


@pytest.mark.parametrize("value", [-1.0, 1e6, float("nan"), float("inf")])
def test_floating_point_out_of_range_is_refused(tmp_path: Path, value: float) -> None:
    Image.fromarray(np.full((4, 4), value, np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(BadImage, match=r"0\.\.255"):
        decode_image(tmp_path / "a.tif")


def test_cmyk(tmp_path: Path) -> None:
    Image.new("CMYK", (16, 16), (255, 0, 0, 0)).save(tmp_path / "cyan.jpg", quality=100)
    assert np.abs(pixels(tmp_path / "cyan.jpg").astype(int) - [0, 255, 255]).max() <= 2


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (255, 0, 0, 51)).save(tmp_path / "rgba.png")  # 51 / 255 = 0.2 red, 0.8 white
    assert pixels(tmp_path / "rgba.png")[0, 0].tolist() == [255, 204, 204]
    Image.new("LA", (4, 4), (0, 0)).save(tmp_path / "la.png")
    assert (pixels(tmp_path / "la.png") == 255).all()


def test_palette_with_transparent_index(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "p.png", transparency=0)
    got = pixels(tmp_path / "p.png")
    assert got[0, 1].tolist() == [200, 100, 50]
    assert got[0, 0].tolist() == [255, 255, 255]


def test_animation_gives_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")]
    for name in ("a.gif", "a.webp", "a.png", "a.tif"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], duration=100, lossless=True)
        assert pixels(tmp_path / name)[0, 0].tolist() == [255, 0, 0], name


def test_orientation_six_is_turned_upright(tmp_path: Path) -> None:
    stored = np.zeros((8, 16, 3), np.uint8)
    stored[:, :8] = 255  # the camera was turned: the stored left side is the top of the scene
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(stored).save(tmp_path / "a.png", exif=exif)
    got = pixels(tmp_path / "a.png")
    assert got.shape == (16, 8, 3)
    assert (got[:8] == 255).all()
    assert (got[8:] == 0).all()
    assert image_size(tmp_path / "a.png") == (16, 8)


@pytest.mark.parametrize("orientation", range(9))
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_every_orientation_agrees_with_pillow(tmp_path: Path, orientation: int, suffix: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{suffix}"
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8))
    image.save(path, exif=exif)
    with Image.open(path) as opened:
        expected = ImageOps.exif_transpose(opened)
    assert np.array_equal(pixels(path), np.asarray(expected))


def test_grey_one_bit_and_jpeg_2000(tmp_path: Path) -> None:
    Image.new("L", (4, 4), 77).save(tmp_path / "l.jpg")
    assert (pixels(tmp_path / "l.jpg") == 77).all()
    Image.new("1", (4, 4), 1).save(tmp_path / "b.png")
    assert (pixels(tmp_path / "b.png") == 255).all()
    Image.new("RGB", (8, 8), (9, 8, 7)).save(tmp_path / "c.jp2")
    assert (pixels(tmp_path / "c.jp2") == [9, 8, 7]).all()


def test_truncated_jpeg(photo: Callable[..., Path], tmp_path: Path) -> None:
    whole = photo("a.jpg", (200, 200)).read_bytes()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadImage, match="truncated"):
        decode_image(tmp_path / "half.jpg")


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (30, 1)])
def test_a_line_or_a_point_is_refused(photo: Callable[..., Path], size: tuple[int, int]) -> None:
    with pytest.raises(BadImage, match="too few"):
        decode_image(photo("dot.png", size))


def test_a_thread_of_pixels_is_refused(photo: Callable[..., Path]) -> None:
    with pytest.raises(BadImage, match="50 times"):
        decode_image(photo("thin.png", (2, 101)))
    assert decode_image(photo("ok.png", (2, 100))).size == (2, 100)


def png_of_claimed_size(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [12_000, 60_000])  # 144 and 3,600 megapixels: below and above Pillow's own limit
def test_decompression_bomb(tmp_path: Path, side: int) -> None:
    (tmp_path / "bomb.png").write_bytes(png_of_claimed_size(side, side))
    with pytest.raises(BadImage, match="134 megapixels"):
        decode_image(tmp_path / "bomb.png")


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "script.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")  # must not be run
    for name in ("text.jpg", "empty.jpg", "script.png"):
        with pytest.raises(BadImage, match="known format"):
            decode_image(tmp_path / name)
    with pytest.raises(BadImage, match="does not exist"):
        decode_image(tmp_path / "nowhere.jpg")
    with pytest.raises(BadImage, match="regular file"):
        decode_image(tmp_path)
    os.mkfifo(tmp_path / "pipe.jpg")  # opening it would wait for ever
    with pytest.raises(BadImage, match="regular file"):
        decode_image(tmp_path / "pipe.jpg")


def test_permission_denied(photo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = photo("a.png")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(BadImage, match="permission denied"):
        decode_image(path)


def test_reason_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(BadImage("a.jpg", "is broken")))
    assert (str(error), error.reason) == ("a.jpg: is broken", "is broken")


def encoded(kind: str) -> bytes:
    pixels = np.random.default_rng(1).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(pixels).save(buffer, kind, **({} if kind in ("GIF", "BMP") else {"exif": exif}))
    return buffer.getvalue()


GOOD = {kind: encoded(kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP")}


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remarks on damaged metadata
@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(sorted(GOOD)),
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8),
    cut=st.integers(0, 10_000),
)
def test_damaged_bytes_never_do_worse_than_bad_image(
    tmp_path_factory: pytest.TempPathFactory, kind: str, edits: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(GOOD[kind][: max(cut % (2 * len(GOOD[kind])), 1)])
    for position, value in edits:
        data[position % len(data)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.bin"
    path.write_bytes(data)
    with contextlib.suppress(BadImage):  # and nothing else
        assert decode_image(path).mode == "RGB"


def test_mask_values_are_indices_not_colours(tmp_path: Path) -> None:
    indices = np.array([[0, 1, 2], [255, 1, 0]], np.uint8)
    image = Image.fromarray(indices)
    image.putpalette([i for colour in range(256) for i in (colour, 0, 255 - colour)])
    image.save(tmp_path / "p.png")
    assert np.array_equal(decode_mask(tmp_path / "p.png"), indices)
    Image.fromarray(indices > 0).save(tmp_path / "one_bit.png")
    assert np.array_equal(decode_mask(tmp_path / "one_bit.png"), (indices > 0) * 255)
    Image.fromarray(np.repeat(indices[..., None], 3, axis=2)).save(tmp_path / "grey_rgb.png")
    assert np.array_equal(decode_mask(tmp_path / "grey_rgb.png"), indices)
    wide = indices.astype(np.uint16) * 200
    Image.fromarray(wide).save(tmp_path / "wide.png")
    assert np.array_equal(decode_mask(tmp_path / "wide.png"), wide)


def test_colour_mask_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "a.png")
    with pytest.raises(BadImage, match="grey or indexed"):
        decode_mask(tmp_path / "a.png")
