"""Pictures in bulk are the single pictures; encounters and pairs hold what they promise."""

import numpy as np

from vitscope.menagerie import SPECIES, World, encounters, pair, render, shelf


def test_a_shelf_holds_the_pictures_of_its_indices() -> None:
    world = World()
    books = shelf(world, "train", [40, 3])
    assert books.images.shape == (2, 64, 64, 3)
    assert books.labels.tolist() == [40 % 16, 3]
    assert (books.images[1] == render(world.scene("train", 3)).image).all()
    assert books.captions[0] == render(world.scene("train", 40)).caption
    assert books.individuals == ("train-00040", "train-00003")


def test_encounters_meet_each_individual_again_elsewhere() -> None:
    scenes = list(encounters(World(), "herd", individuals=3, each=4))
    ids = [scene.actors[0].individual.id for scene in scenes]
    assert ids == ["herd-00000"] * 4 + ["herd-00001"] * 4 + ["herd-00002"] * 4
    assert len({scene.actors[0].place for scene in scenes}) == 12
    assert len({scene.name for scene in scenes}) == 12


def test_pairs_join_the_visible_keypoints_of_one_species() -> None:
    for index in range(len(SPECIES)):
        both = pair(World(), "pairs", index)
        assert both.source.species == both.target.species == index
        ids = [view.scene.actors[0].individual.id for view in (both.source, both.target)]
        assert ids[0] != ids[1]
        assert all(a.name == b.name and a.visible and b.visible for a, b in both.matches)
        seen = [{k.name for k in view.keypoints[0] if k.visible} for view in (both.source, both.target)]
        assert {a.name for a, _ in both.matches} == seen[0] & seen[1]


def test_pairs_of_one_individual_show_it_twice() -> None:
    both = pair(World(), "pairs", 2, same_individual=True)
    one, other = (view.scene.actors[0] for view in (both.source, both.target))
    assert one.individual == other.individual
    assert one.pose != other.pose


def test_no_individual_is_in_two_pairs() -> None:
    ids = [
        view.scene.actors[0].individual.id
        for both in (pair(World(), "pairs", index, size=16) for index in range(40))
        for view in (both.source, both.target)
    ]
    assert len(set(ids)) == len(ids)
    assert np.array([int(name.split("-")[1]) for name in ids]).max() < 3 * 32
