"""The population: balance, identity, and what the dial between species and appearance does."""

from collections import Counter

import numpy as np
import pytest

from vitscope.core.errors import VitscopeError
from vitscope.menagerie import SPECIES, World
from vitscope.menagerie.captions import NAMED, caption
from vitscope.menagerie.colours import PALETTES, PATTERNS
from vitscope.menagerie.habitats import HABITAT, HABITATS

N = 1600


def looks(world: World) -> list[tuple[int, str, str, str]]:
    scenes = [world.scene("dial", index) for index in range(N)]
    return [
        (
            s.actors[0].individual.species,
            s.actors[0].individual.palette,
            s.actors[0].individual.pattern,
            s.habitat,
        )
        for s in scenes
    ]


def test_species_take_turns() -> None:
    counts = Counter(World().individual("any", number).species for number in range(160))
    assert counts == dict.fromkeys(range(16), 10)


@pytest.mark.parametrize(("attribute", "options"), [(1, len(PALETTES)), (2, len(PATTERNS)), (3, len(HABITATS))])
@pytest.mark.parametrize("dial", [0.0, 0.6, 1.0])
def test_the_dial_is_the_chance_of_the_usual_look(dial: float, attribute: int, options: int) -> None:
    """Usual looks are chosen with the dial's probability, and otherwise by the general draw over all options."""
    usual = [(s.palettes, s.patterns, s.habitats) for s in SPECIES]
    hits, expected = [], []
    for look in looks(World(correlation=dial)):
        mine = set(usual[look[0]][attribute - 1])
        hits.append(look[attribute] in mine)
        expected.append(dial + (1 - dial) * len(mine) / options)
    assert np.mean(hits) == pytest.approx(np.mean(expected), abs=5 * 0.5 / N**0.5)


def test_without_correlation_looks_say_nothing_about_species() -> None:
    """Chi-square of species against each look stays within six standard deviations of its mean, the freedom."""
    table = looks(World(correlation=0.0))
    for attribute in (1, 2, 3):
        names = sorted({row[attribute] for row in table})
        counts = np.zeros((16, len(names)))
        for row in table:
            counts[row[0], names.index(row[attribute])] += 1
        expected = counts.sum(1, keepdims=True) * counts.sum(0) / N
        freedom = 15 * (len(names) - 1)
        assert ((counts - expected) ** 2 / expected).sum() < freedom + 6 * (2 * freedom) ** 0.5


def test_an_individual_keeps_its_looks_but_not_its_pose_and_place() -> None:
    world = World()
    who = world.individual("herd", 5)
    assert who == world.individual("herd", 5)
    one, other = (world.scene("herd", index, who).actors[0] for index in (0, 1))
    assert one.individual == other.individual == who
    assert one.pose != other.pose
    assert one.place != other.place


def test_seeds_splits_and_numbers_make_different_creatures() -> None:
    creatures = [World(seed=s).individual(p, n) for s in (0, 1) for p in ("a", "b") for n in (0, 16)]
    assert len({creature.build for creature in creatures}) == 8


def test_places_scales_and_poses_vary() -> None:
    actors = [World().scene("spread", index).actors[0] for index in range(0, N, 16)]  # all snakes
    assert np.ptp([a.place[1] for a in actors]) > 0.35
    assert max(a.size for a in actors) / min(a.size for a in actors) > 1.3
    assert 0.3 < np.mean([a.flip for a in actors]) < 0.7
    assert np.array([a.pose for a in actors]).std(0) == pytest.approx(np.full(12, 3**-0.5), abs=0.12)


def test_symmetric_species_are_never_mirrored() -> None:
    for index in range(160):
        (actor,) = World().scene("sides", index).actors
        assert not (SPECIES[actor.individual.species].symmetric and actor.flip)


def test_gatherings_bring_two_different_species_together() -> None:
    for index in range(24):
        scene = World().gathering("coco", index)
        first, second = (actor.individual.species for actor in scene.actors)
        assert first != second


def test_captions_say_only_what_is_true_and_usually_the_species() -> None:
    named = 0
    for index in range(800):
        scene = World(correlation=0.0).scene("said", index)
        words = caption(scene).split()
        who = scene.actors[0].individual
        name = SPECIES[who.species].name
        named += name in words
        others = {s.name for s in SPECIES} - {name}
        others |= {p.name for p in PALETTES} - {who.palette}
        others |= set(PATTERNS) - {who.pattern}
        assert not others & set(words)
        told = " ".join(words)
        assert all(h.phrase not in told for h in HABITATS if h is not HABITAT[scene.habitat])
    assert named / 800 == pytest.approx(NAMED, abs=5 * (0.9 * 0.1 / 800) ** 0.5)


@pytest.mark.parametrize("dial", [-0.1, 1.01, float("nan")])
def test_a_dial_out_of_range_is_refused(dial: float) -> None:
    with pytest.raises(VitscopeError, match="from 0 to 1"):
        World(correlation=dial)


def test_conflicts_show_every_pair_of_species_once_and_never_a_look_of_the_wearers_own() -> None:
    pairs = set()
    for index in range(len(SPECIES) * (len(SPECIES) - 1)):
        scene, other = World(seed=3).conflict("conflict", index)
        who = scene.actors[0].individual
        own, worn = SPECIES[who.species], SPECIES[other]
        assert who.palette in worn.palettes
        assert who.pattern in worn.patterns
        assert who.palette not in own.palettes or who.pattern not in own.patterns
        pairs.add((own.name, worn.name))
    assert len(pairs) == len(SPECIES) * (len(SPECIES) - 1)
    assert all(shape != texture for shape, texture in pairs)


def test_conflicts_are_met_anywhere() -> None:
    places = Counter(World().conflict("conflict", index)[0].habitat for index in range(960))
    assert set(places) == set(HABITAT)
    assert max(places.values()) < 2 * min(places.values())
