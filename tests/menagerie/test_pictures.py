"""Annotations are exactly right: parts tile creatures, keypoints sit on their parts, and sizes agree."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, binary_erosion, label

from vitscope.core.errors import VitscopeError
from vitscope.menagerie import PARTS, SIZE, SPECIES, Cover, World, render
from vitscope.menagerie.stance import footing

PICTURES = [render(World(correlation=0.3).scene("test", index)) for index in range(96)]


@pytest.mark.parametrize("picture", PICTURES[:32], ids=lambda p: f"{p.scene.name}-{SPECIES[p.species].name}")
def test_parts_tile_the_creature(picture: Any) -> None:
    assert picture.image.shape == (64, 64, 3)
    assert picture.image.dtype == np.uint8
    assert ((picture.parts > 0) == picture.mask).all()
    assert picture.parts.max() <= len(PARTS)
    assert set(np.unique(picture.owners)) == {0, 1}
    pieces = [picture.parts == 1 + i for i in range(len(PARTS))]
    assert (sum(piece.astype(int) for piece in pieces) == picture.mask).all()  # each pixel once


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: f"{p.scene.name}-{SPECIES[p.species].name}")
def test_visible_keypoints_lie_on_the_creature(picture: Any) -> None:
    (keypoints,) = picture.keypoints
    names = [keypoint.name for keypoint in keypoints]
    assert len(set(names)) == len(names)
    for keypoint in keypoints:
        inside = 0 <= keypoint.x < 64 and 0 <= keypoint.y < 64
        if keypoint.visible:
            assert inside
            assert picture.mask[int(keypoint.y), int(keypoint.x)]
    assert sum(keypoint.visible for keypoint in keypoints) >= len(keypoints) / 3


def test_most_keypoints_are_visible_and_a_part_is_where_it_is_said_to_be() -> None:
    eye = 1 + PARTS.index("eye")
    every = [k for p in PICTURES for k in p.keypoints[0]]
    assert np.mean([k.visible for k in every]) > 0.9
    for picture in PICTURES:
        for keypoint in picture.keypoints[0]:
            if keypoint.visible and keypoint.name.endswith("eye"):
                assert picture.parts[int(keypoint.y), int(keypoint.x)] == eye


@pytest.mark.parametrize("index", range(16))
def test_the_mask_is_where_the_creature_changes_the_image(index: int) -> None:
    scene = replace(World().scene("test", index), covers=())
    bare, full = render(replace(scene, actors=())), render(scene)
    changed = (bare.image != full.image).any(-1)
    _, ground, _ = footing(scene.actors[0])
    shadowed = np.abs(np.arange(64) + 0.5 - 64 * ground) < 64 * 0.035 + 1
    touched = binary_dilation(full.mask, np.ones((3, 3)))  # pixels at an edge mix both sides
    assert (changed & ~touched)[~shadowed].sum() <= 2  # tips of beaks and feet that are finer than a pixel
    assert changed[binary_erosion(full.mask)].mean() > 0.97


@pytest.mark.parametrize("index", range(16))
def test_eye_keypoints_are_in_the_middle_of_eyes(index: int) -> None:
    picture = render(replace(World().scene("test", index), covers=()), 256)
    eyes, _ = label(picture.parts == 1 + PARTS.index("eye"))
    for keypoint in picture.keypoints[0]:
        if keypoint.name.endswith("eye") and keypoint.visible:
            rows, columns = np.nonzero(eyes == eyes[int(keypoint.y), int(keypoint.x)])
            if min(rows.min(), columns.min(), 255 - rows.max(), 255 - columns.max()) > 0:
                assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx((keypoint.x, keypoint.y), abs=3)


def test_every_species_has_the_same_keypoints_in_every_pose() -> None:
    for kind in range(len(SPECIES)):
        names = {tuple(k.name for k in p.keypoints[0]) for p in PICTURES if p.species == kind}
        assert len(names) == 1
        assert 5 <= len(names.pop()) <= 30


def test_a_cover_hides_what_is_beneath_it_and_moves_nothing() -> None:
    scene = World().scene("test", 7)
    bare = render(replace(scene, covers=()))
    eye = next(k for k in bare.keypoints[0] if k.name == "eye")
    covered = render(replace(scene, covers=(Cover(eye.x / 64, eye.y / 64 + 0.05, 0.3, "stone"),)))
    assert (covered.mask <= bare.mask).all()
    assert covered.mask.sum() < 0.9 * bare.mask.sum()
    pairs = list(zip(bare.keypoints[0], covered.keypoints[0], strict=True))
    assert all((a.x, a.y) == (b.x, b.y) and b.visible <= a.visible for a, b in pairs)
    assert any(a.name == "eye" and a.visible and not b.visible for a, b in pairs)


def test_a_creature_outside_the_picture_is_not_seen() -> None:
    scene = World().scene("test", 3)
    gone = replace(scene, actors=(replace(scene.actors[0], place=(3.0, 3.0)),), covers=())
    picture = render(gone)
    assert not picture.mask.any()
    assert not any(keypoint.visible for keypoint in picture.keypoints[0])


@pytest.mark.parametrize("index", range(0, 16, 3))
def test_other_sizes_show_the_same_scene(index: int) -> None:
    scene = World().scene("test", index)
    small, large = render(scene, 64), render(scene, 192)
    blocks = large.mask.reshape(64, 3, 64, 3).mean((1, 3)) >= 0.5
    assert (blocks & small.mask).sum() / (blocks | small.mask).sum() > 0.93
    pooled = large.image.reshape(64, 3, 64, 3, 3).mean((1, 3))
    assert np.abs(pooled - small.image).mean() < 6
    for a, b in zip(small.keypoints[0], large.keypoints[0], strict=True):
        assert (b.x, b.y) == pytest.approx((3 * a.x, 3 * a.y))


def test_a_wide_picture_keeps_the_unit_of_height() -> None:
    scene = replace(World().scene("test", 5), aspect=1.75)
    assert render(scene, 64).image.shape == (64, 112, 3)
    assert (render(scene, 64).mask[:, :64] == render(replace(scene, aspect=1.0), 64).mask).mean() > 0.999


def test_a_mirrored_creature_is_the_mirror_image() -> None:
    scene = World().scene("test", 8)  # a cat
    actor = replace(scene.actors[0], place=(0.5, 0.5), turn=0.0)
    right, left = (render(replace(scene, actors=(replace(actor, flip=f),), covers=())) for f in (False, True))
    overlap = right.mask & left.mask[:, ::-1]
    assert overlap.sum() / (right.mask | left.mask[:, ::-1]).sum() > 0.97
    for a, b in zip(right.keypoints[0], left.keypoints[0], strict=True):
        assert b.x == pytest.approx(64 - a.x)
        assert b.y == pytest.approx(a.y)


def test_the_last_bits_of_a_libm_cannot_move_a_pixel() -> None:
    """Platforms differ in the last bit of sines and sums, about 1e-16; a thousand times as much changes nothing."""
    for index in range(48):
        scene = World().scene("test", index)
        actor = scene.actors[0]
        x, y = actor.place
        nudged = replace(
            actor,
            place=(x + 1e-13, y - 1e-13),
            turn=actor.turn + 1e-12,
            pose=tuple(p * (1 + 1e-13) for p in actor.pose),
        )
        one, other = render(scene), render(replace(scene, actors=(nudged,)))
        assert (one.image == other.image).all()
        assert (one.parts == other.parts).all()


FINGERPRINT = """
import hashlib
from vitscope.menagerie import World, render
pictures = [render(World(seed=11, correlation=0.4).scene("train", index)) for index in range(24)]
digest = hashlib.sha256(b"".join(p.image.tobytes() + p.parts.tobytes() + p.caption.encode() for p in pictures))
"""


def test_pictures_are_the_same_in_another_process() -> None:
    here: dict[str, Any] = {}
    exec(FINGERPRINT, here)
    told = subprocess.run(
        [sys.executable, "-c", FINGERPRINT + "print(digest.hexdigest())"],
        env=os.environ | {"PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == here["digest"].hexdigest()


def test_pictures_are_those_that_the_zoo_was_taught_on() -> None:
    """A contract, not a derivation: weights in the package belong to these pixels, which must not drift."""
    digest = hashlib.sha256(b"".join(render(World().scene("train", i), SIZE).image.tobytes() for i in range(32)))
    assert digest.hexdigest() == "35192ec8090920fec647125c20e188b2a46fa1d167544615eb8ad9db8ad2ea39"


@pytest.mark.parametrize("size", [0, 15, 2049])
def test_sizes_that_cannot_be_drawn_are_refused(size: int) -> None:
    with pytest.raises(VitscopeError, match="choose a size"):
        render(World().scene("test", 0), size)
