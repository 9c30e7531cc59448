"""What is exported comes back through the loaders of the official layouts, exactly."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from vitscope.cli import main
from vitscope.core.errors import VitscopeError
from vitscope.data.coco import open_coco
from vitscope.data.conflict import open_conflict
from vitscope.data.davis import open_davis
from vitscope.data.folders import open_images
from vitscope.data.individuals import open_individuals
from vitscope.data.partimagenet import open_partimagenet
from vitscope.data.spair import open_spair
from vitscope.menagerie import PARTS, SPECIES, Amounts, World, export, film, pair, render

AMOUNTS = Amounts(
    train=32, val=16, coco=8, parts=16, individuals=4, encounters=3, pairs=16, videos=2, frames=4, conflict=32
)
WORLD = World(seed=2)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    told = []
    folder = tmp_path_factory.mktemp("world") / "menagerie"
    summary = export(folder, world=WORLD, size=64, amounts=AMOUNTS, progress=lambda *step: told.append(step))
    assert summary.folder == folder
    assert sum(summary.images.values()) == len(told) == told[-1][1] == told[-1][2]
    assert [p.name for p in folder.parent.iterdir()] == ["menagerie"]  # the draft is gone
    return folder


def test_image_folders_hold_the_rendered_pixels_and_captions(exported: Path) -> None:
    samples = open_images(exported / "imagefolder/train")
    assert len(samples) == 32
    assert set(samples.classes) == {species.name for species in SPECIES}
    captions = json.loads((exported / "imagefolder/train/captions.json").read_text())
    picture = render(WORLD.scene("train", 19))
    assert (np.asarray(Image.open(exported / "imagefolder/train/spider/000019.png")) == picture.image).all()
    assert captions["spider/000019.png"] == picture.caption
    plain = render(World(seed=2, correlation=0.0).scene("unc", 3)).image
    free = exported / "imagefolder/val-appearance-free/spider/000003.png"
    assert (np.asarray(Image.open(free)) == plain).all()


def test_conflicts_have_the_shape_of_one_species_and_the_look_of_another(exported: Path) -> None:
    found = open_conflict(exported / "imagefolder")
    assert len(found.test) == 32
    assert not found.notes
    for sample, texture in zip(found.test, found.textures, strict=True):
        shape = found.train.classes[sample.label or 0]
        assert sample.path.name == f"{shape}1-{found.train.classes[texture]}1.png"
    scene, other = WORLD.conflict("conflict", 17)
    name = f"{SPECIES[1].name}/{SPECIES[1].name}1-{SPECIES[other].name}1.png"
    written = np.asarray(Image.open(exported / "imagefolder/cue-conflict" / name))
    assert (written == render(scene).image).all()


def test_coco_masks_and_boxes_are_those_of_the_pictures(exported: Path) -> None:
    source = exported / "coco/annotations/instances_val2017.json"
    samples = open_coco(source, exported / "coco/val2017")
    assert samples.categories == tuple(species.name for species in SPECIES)
    assert len(samples) == 8
    oracle = COCO(str(source))
    for number in range(8):
        scene = WORLD.scene("coco", number) if number % 4 == 3 else WORLD.gathering("coco", number)
        picture = render(scene)
        regions = oracle.loadAnns(oracle.getAnnIds(number + 1))
        assert [r["category_id"] - 1 for r in regions] == [a.individual.species for a in scene.actors]
        for owner, (region, mine) in enumerate(zip(regions, samples[number].annotations, strict=True), start=1):
            mask = picture.owners == owner
            assert (oracle.annToMask(region) == mask).all()
            assert (mine.decode() == mask).all()
            x, y, w, h = region["bbox"]
            assert mask[y : y + h, x : x + w].sum() == mask.sum() == region["area"]
            assert mask[y].any()
            assert mask[y + h - 1].any()
            assert mask[:, x].any()
            assert mask[:, x + w - 1].any()
        jpeg = np.asarray(Image.open(samples[number].path), np.int16)
        assert np.abs(jpeg - picture.image).mean() < 3


def test_partimagenet_parts_tile_the_creature(exported: Path) -> None:
    samples = open_partimagenet(exported / "partimagenet")
    assert samples.categories == PARTS
    assert set(samples.classes) == {species.name for species in SPECIES}
    for sample in samples:
        picture = render(WORLD.scene("parts", int(sample.path.stem.split("_")[1])))
        for annotation in sample.annotations:
            assert (annotation.decode() == (picture.parts == 1 + annotation.category)).all()
        union = np.sum([annotation.decode() for annotation in sample.annotations], axis=0)
        assert (union == picture.mask).all()


def test_davis_masks_hold_the_instances(exported: Path) -> None:
    videos = open_davis(exported / "davis")
    assert [sequence.objects for sequence in videos.sequences] == [1, 2]
    for index, sequence in enumerate(videos.sequences):
        assert sequence.is_evaluable
        assert len(sequence) == 4
        for number, scene in enumerate(film(WORLD, "film", index, 4)):
            labels = sequence.labels(number)
            assert labels is not None
            assert np.array_equal(labels, render(scene, 128).owners)
    first = next((exported / "davis/Annotations/480p").rglob("00000.png"))
    with Image.open(first) as mask:
        assert mask.mode == "P"


def test_spair_points_lie_on_the_creatures(exported: Path) -> None:
    pairs = open_spair(exported / "spair")
    assert len(pairs.pairs) == 16
    assert not pairs.notes
    for record in pairs.pairs:
        both = pair(WORLD, "pairs", int(record.id.split("-")[0]) - 1)
        masks = (both.source.mask, both.target.mask)
        for mask, points in zip(masks, (record.source_points, record.target_points), strict=True):
            assert all(mask[int(y), int(x)] for x, y in points)
        assert len(record.source_points) == len(both.matches)
        x1, y1, x2, y2 = map(int, record.target_box)
        assert masks[1][y1 : y2 + 1, x1 : x2 + 1].sum() == masks[1].sum()
    image = json.loads(next((exported / "spair/ImageAnnotation/cat").iterdir()).read_text())
    assert list(image["kps"]) == [str(slot) for slot in range(30)]


def test_individuals_are_queries_for_each_other(exported: Path) -> None:
    retrieval = open_individuals(exported / "individuals")
    assert len(retrieval.database) == len(retrieval.queries) == 12
    assert {len(query.easy) for query in retrieval.queries} == {2}


def test_what_exists_is_not_overwritten(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="nothing was overwritten"):
        export(exported)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(VitscopeError, match="nothing was overwritten"):
        export(tmp_path)


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def stop(layout: str, done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(tmp_path / "out", amounts=AMOUNTS, progress=stop)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(VitscopeError, match="choose another folder"):
        export(tmp_path / "file" / "out", amounts=AMOUNTS)


def test_layouts_of_amount_zero_are_left_out_and_an_empty_folder_is_used(tmp_path: Path) -> None:
    some = Amounts(train=16, val=0, coco=0, parts=0, individuals=0, pairs=0, videos=0, conflict=0)
    summary = export(tmp_path, amounts=some, size=32)
    assert summary.images == {"imagefolder/train": 16}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["imagefolder", "menagerie.json"]
    made = json.loads((tmp_path / "menagerie.json").read_text())
    assert made["world"] == {"seed": 0, "correlation": 0.6}


@pytest.mark.parametrize("wrong", [{"train": -1}, {"videos": 1, "frames": 1}, {"individuals": 2, "encounters": 1}])
def test_amounts_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(VitscopeError):
        Amounts(**wrong)


def test_a_size_that_is_too_small_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="choose a size"):
        export(tmp_path / "out", size=8)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("coco", [0, 4])
def test_the_command_ends_with_a_line_that_can_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], coco: int
) -> None:
    few = "--train 16 --val 16 --parts 0 --individuals 0 --pairs 0 --videos 0 --conflict 0"
    main(["menagerie", "--out", str(tmp_path / "world"), "--coco", str(coco), *few.split()])
    last = capsys.readouterr().out.replace("\n", " ").split()[-1]
    assert Path(last).is_dir()
