"""The page with everybody: whole creatures, and annotations drawn where they are."""

import numpy as np

from vitscope.menagerie import PARTS, World, annotate, contact_sheet, render
from vitscope.menagerie.contact_sheet import PAPER, PART_COLOURS


def test_the_sheet_has_a_tile_for_every_individual() -> None:
    sheet = np.asarray(contact_sheet(individuals=2, size=32))
    paper = (sheet == PAPER).all(-1)
    tiles = 16 * 2 * 32 * 32
    assert tiles <= (~paper).sum() < tiles * 1.2  # and a little ink for names
    rows = np.flatnonzero(paper.mean(1) < 0.5)
    assert (np.diff(rows) > 1).sum() == 7  # eight rows of tiles


def test_the_annotated_sheet_shows_the_same_creatures_and_a_legend() -> None:
    plain, annotated = (contact_sheet(individuals=4, size=32, annotated=a) for a in (False, True))
    assert annotated.width == plain.width
    assert annotated.height > plain.height
    colours = set(map(tuple, np.asarray(annotated)[plain.height :].reshape(-1, 3).tolist()))
    assert set(PART_COLOURS.values()) <= colours
    assert tuple(PART_COLOURS) == PARTS


def test_annotations_are_drawn_on_the_creature_only() -> None:
    picture = render(World().scene("test", 9), 128)
    drawn = annotate(picture).astype(int)
    coloured = np.ptp(drawn, axis=-1) > 6
    box = (drawn == (52, 48, 56)).all(-1)
    assert (coloured & ~box <= picture.mask).all()
    assert coloured[picture.mask].mean() > 0.7
