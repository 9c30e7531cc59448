"""Films: creatures move, bend, cross and are hidden, and keep their numbers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from vitscope.menagerie import World, film, play, render

WORLD = World(correlation=0.0)


def middle(mask: np.ndarray) -> float:
    return float(np.nonzero(mask)[1].mean())


@pytest.mark.parametrize("index", range(4))
def test_a_film_keeps_its_cast_and_its_scenery(index: int) -> None:
    scenes = film(WORLD, "val", index, frames=12)
    assert len(scenes) == 12
    assert {len(scene.actors) for scene in scenes} == {1 + index % 2}
    for k in range(1 + index % 2):
        assert len({scene.actors[k].individual for scene in scenes}) == 1
    frames = play(scenes, 48)
    assert frames[0].image.shape == (48, 84, 3)
    touched = np.any([frame.mask for frame in frames], axis=0)
    elsewhere = ~binary_dilation(touched, np.ones((3, 3)))  # pixels at an edge mix both sides
    elsewhere[round(48 * scenes[0].horizon) :] = False  # shadows move on the ground
    assert elsewhere.sum() > 48
    assert (frames[0].image[elsewhere] == frames[-1].image[elsewhere]).all()


@pytest.mark.parametrize("index", range(8))
def test_creatures_walk_and_bend(index: int) -> None:
    frames = play(film(WORLD, "val", index), 48)
    for owner in range(1, 2 + index % 2):
        way = middle(frames[-1].owners == owner) - middle(frames[0].owners == owner)
        assert abs(way) > 0.25 * 84
    poses = np.array([frame.scene.actors[0].pose for frame in frames])
    assert np.abs(np.diff(poses, axis=0)).max() < 0.6  # no jumps
    assert np.ptp(poses, axis=0).max() > 0.3


@pytest.mark.parametrize("index", [1, 3, 5, 7])
def test_two_creatures_cross(index: int) -> None:
    frames = play(film(WORLD, "val", index), 48)
    lead = [middle(frame.owners == 1) - middle(frame.owners == 2) for frame in (frames[0], frames[-1])]
    assert lead[0] * lead[1] < 0
    first, second = (frames[0].scene.actors[k].individual.species for k in (0, 1))
    assert first != second
    alone = [render(replace(f.scene, actors=f.scene.actors[:1], covers=()), 48).mask.sum() for f in frames]
    both = [(frame.owners == 1).sum() for frame in frames]
    assert min(b / a for a, b in zip(alone, both, strict=True)) < 0.9  # the one in front hides the other


def test_something_in_front_hides_a_part_in_most_films() -> None:
    hidden = []
    for index in range(6):
        scenes = film(WORLD, "val", index, frames=9)
        shares = [1 - render(s, 48).mask.sum() / render(replace(s, covers=()), 48).mask.sum() for s in scenes]
        hidden.append(max(shares))
    assert np.median(hidden) > 0.05


def test_all_species_play() -> None:
    cast = {a.individual.species for index in range(16) for a in film(WORLD, "val", index, 2)[0].actors}
    assert cast == set(range(16))
