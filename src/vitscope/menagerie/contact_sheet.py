"""Everybody on one page: a row for each species, and the same page with all annotations drawn over it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vitscope.menagerie.pictures import Picture, render
from vitscope.menagerie.sketch import PARTS
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
PAPER = (250, 248, 243)
INK = (52, 48, 56)
PART_COLOURS: dict[str, tuple[int, int, int]] = {  # Okabe and Ito's colours: told apart by everybody
    "body": (0, 114, 178),
    "head": (230, 159, 0),
    "leg": (0, 158, 115),
    "tail": (204, 121, 167),
    "ear": (213, 94, 0),
    "wing": (86, 180, 233),
    "eye": (240, 228, 66),
    "mouth": (150, 60, 160),
}


def contact_sheet(
    world: World | None = None, *, individuals: int = 8, size: int = 128, annotated: bool = False
) -> Image.Image:
    """Species by individuals, two species to a row; annotated: parts in colours, keypoints and boxes over them."""
    world = world or World()
    gap, margin, label = max(2, size // 24), size // 3, round(size * 0.3)
    half = (len(SPECIES) + 1) // 2
    column = individuals * (size + gap) - gap
    width = 2 * column + 3 * margin
    line = size + gap + label
    legend = label * 2 if annotated else 0
    sheet = Image.new("RGB", (width, margin + half * line + legend + margin // 2), PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=max(9, round(size * 0.17)))
    for kind, species in enumerate(SPECIES):
        left = margin + (kind // half) * (column + margin)
        top = margin // 2 + (kind % half) * line
        draw.text((left + 1, top + label * 0.82), species.name, INK, font, anchor="ls")
        for place, picture in zip(range(individuals), _portraits(world, kind, size), strict=False):
            tile = Image.fromarray(annotate(picture) if annotated else picture.image)
            sheet.paste(tile, (left + place * (size + gap), top + label))
    if annotated:
        _legend(sheet, font, margin, sheet.height - legend, label)
    return sheet


def annotate(picture: Picture) -> NDArray[np.uint8]:
    """The image in grey with its parts in colours, keypoints as dots (hollow if hidden) and a box."""
    grey = picture.image.mean(-1, keepdims=True) * 0.6 + 90
    colours = np.array([(0, 0, 0), *(PART_COLOURS[part] for part in PARTS)])[picture.parts]
    tinted = np.where(picture.mask[..., None], 0.35 * grey + 0.65 * colours, grey)
    tile = Image.fromarray(np.clip(tinted, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(tile)
    radius = max(1.0, tile.height / 60)
    for owner, keypoints in enumerate(picture.keypoints, start=1):
        rows, columns = np.nonzero(picture.owners == owner)
        if len(rows):
            corners = (columns.min(), rows.min(), columns.max(), rows.max())
            draw.rectangle([float(c) for c in corners], outline=INK)
        for keypoint in keypoints:
            x, y = keypoint.x - 0.5, keypoint.y - 0.5  # pixel centres are whole numbers for the pen
            dot = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse(dot, fill=(255, 255, 255) if keypoint.visible else None, outline=(0, 0, 0))
    return np.asarray(tile)


def _portraits(world: World, kind: int, size: int) -> Iterator[Picture]:
    """Pictures of a species in which the whole creature is in view."""
    index = kind
    while True:
        picture = render(world.scene("portrait", index), size)
        mask = picture.mask
        if not (mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any()):
            yield picture
        index += len(SPECIES)


def _legend(sheet: Image.Image, font: Font, left: int, top: float, height: int) -> None:
    """What the colours and dots mean, in as many lines as the page needs."""
    draw = ImageDraw.Draw(sheet)
    dots: list[tuple[str, tuple[int, int, int] | None]] = list(PART_COLOURS.items())
    x: float = left
    for word, fill in [*dots, ("keypoint", (255, 255, 255)), ("hidden keypoint", None)]:
        length = height * 0.65 + draw.textlength(word, font)
        if x + length > sheet.width - left / 2:
            x, top = left, top + height
        inset = 0.0 if word in PART_COLOURS else height * 0.1
        corners = (
            x + inset,
            top + height * 0.3 + inset,
            x + height * 0.5 - inset,
            top + height * 0.8 - inset,
        )
        draw.ellipse(corners, fill, outline=None if word in PART_COLOURS else (0, 0, 0))
        draw.text((x + height * 0.65, top + height * 0.55), word, INK, font, anchor="lm")
        x += length + height * 0.45
