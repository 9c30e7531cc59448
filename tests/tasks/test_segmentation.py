"""Segmentation against scikit-learn's classifiers and confusion matrix, and on patches whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from torch.nn import functional as F

import vitscope
from vitscope.core.errors import BadData
from vitscope.data.batches import BatchAnnotations
from vitscope.data.segmentation import VOC, SegmentationSet, open_segmentation
from vitscope.tasks.labelled_patches import Patches, patch_classes, pixel_classes, some_of_each
from vitscope.tasks.segmentation import SegmentationScores, answer_by_neighbours, answer_linearly, evaluate

CLASSES, CELL = 4, 16  # pixels of a patch


def made(count: int, seed: int, spread: float = 0.7) -> tuple[Tensor, Tensor]:
    """Features around a centre for each class, and the classes."""
    centres = torch.randn(CLASSES, 12, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(0, CLASSES, (count,), generator=generator)
    return centres[classes] + spread * torch.randn(count, 12, generator=generator), classes


def patches(count: int, seed: int, images: int) -> Patches:
    """Each with all of its pixels of one class but one, which is void."""
    features, classes = made(count, seed)
    counts = F.one_hot(classes, CLASSES) * (CELL - 1)
    return Patches(torch.arange(count) * images // count, classes, counts, [features, torch.zeros_like(features)])


def test_neighbours_vote_as_scikit_learn_lets_them() -> None:
    (known, labels), (asked, _) = made(400, 0, 1.5), made(300, 1, 1.5)
    unit = [F.normalize(x, dim=1).double().numpy() for x in (known, asked)]
    theirs = KNeighborsClassifier(30, weights=lambda d: np.exp((1 - d**2 / 2) / 0.07)).fit(unit[0], labels)
    ours = answer_by_neighbours(known, labels, asked, CLASSES)
    assert (ours.numpy() == theirs.predict(unit[1])).mean() > 0.995


def test_the_linear_classifier_is_scikit_learns() -> None:
    (known, labels), (asked, _) = made(400, 0, 1.5), made(300, 1, 1.5)
    mean, spread = known.mean(0), known.std(0)
    theirs = LogisticRegression(C=1 / (400 * 1e-3), max_iter=2000).fit(((known - mean) / spread).numpy(), labels)
    ours = answer_linearly(known, labels, asked, CLASSES)
    assert (ours.numpy() == theirs.predict(((asked - mean) / spread).numpy())).mean() > 0.99


@pytest.mark.parametrize("method", ["knn", "linear"])
def test_scores_are_those_of_a_confusion_matrix(method: str) -> None:
    known, asked = patches(400, 0, 8), patches(300, 1, 6)
    scores = evaluate(known, asked, CLASSES, methods=(method,))[method]
    labels = known.classes
    answer = answer_by_neighbours if method == "knn" else answer_linearly
    told = answer(known.layers[0], labels, asked.layers[0], CLASSES)
    truth = asked.classes.repeat_interleave(CELL - 1)
    table = confusion_matrix(truth, told.repeat_interleave(CELL - 1), labels=range(CLASSES))
    iou = np.diag(table) / (table.sum(0) + table.sum(1) - np.diag(table))
    np.testing.assert_allclose(scores.iou()[0].numpy(), iou)
    value, (low, high) = scores.miou()
    assert value[0].item() == pytest.approx(iou.mean())
    assert low[0] <= value[0] <= high[0]
    assert scores.accuracy()[0][0].item() == pytest.approx(np.diag(table).sum() / table.sum())


def test_a_class_that_nobody_shows_has_no_part_in_the_mean() -> None:
    right = torch.tensor([[[4.0, 0.0, 0.0]]]).double()
    told = torch.tensor([[[4.0, 2.0, 2.0]]]).double()
    true = torch.tensor([[4.0, 4.0, 0.0]]).double()  # class 2 is told though nobody shows it
    assert SegmentationScores(right, told, true).miou()[0].tolist() == [0.5]


def test_the_interval_of_the_mean_covers_other_images() -> None:
    """Images that share nothing but their odds: told and true classes agree in three of four pixels."""
    generator = torch.Generator().manual_seed(0)

    def draw(images: int) -> SegmentationScores:
        true = torch.randint(0, 3, (images, 40), generator=generator)
        told = torch.where(torch.rand(images, 40, generator=generator) < 0.75, true, (true + 1) % 3)

        def pixels(x: Tensor) -> Tensor:
            return F.one_hot(x, 3).double().sum(1)

        right = (F.one_hot(true, 3) * F.one_hot(told, 3)).double().sum(1)
        return SegmentationScores(right.unsqueeze(1), pixels(told).unsqueeze(1), pixels(true))

    truth = draw(20000).miou()[0].item()
    assert truth == pytest.approx(0.75 / 1.25, abs=0.005)  # right / (told + true - right), alike for all classes
    ends = [draw(30).miou()[1].flatten().tolist() for _ in range(100)]
    assert 88 <= sum(low <= truth <= high for low, high in ends) <= 99


def test_the_smallest_region_that_holds_a_pixel_has_it() -> None:
    coverage = torch.zeros(3, 4, 4, dtype=torch.uint8)
    coverage[0, :2] = 255  # a body
    coverage[1, 0, 0] = 255  # an eye in it, though it comes later
    coverage[2, 3] = 255  # void
    coverage[0, 2] = 100  # less than a half
    found = pixel_classes(BatchAnnotations(torch.tensor([0, 1, -1]), coverage, torch.empty(0)), background=True)
    assert found.tolist() == [[2, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [-1, -1, -1, -1]]
    assert patch_classes(found, (2, 2), 3).tolist() == [1, 1, 0, 0]
    without = pixel_classes(BatchAnnotations(torch.tensor([0, 1, -1]), coverage, torch.empty(0)), background=False)
    assert patch_classes(without, (2, 2), 2).tolist() == [0, 0, -1, -1]


def test_kept_patches_are_even_over_classes() -> None:
    classes = torch.tensor([0] * 50 + [1] * 3 + [2] * 10 + [-1] * 20)
    kept = some_of_each(classes, 12, image=5)
    assert classes[kept].bincount().tolist() == [5, 3, 4]
    assert torch.equal(kept, some_of_each(classes, 12, image=5))
    assert not torch.equal(kept, some_of_each(classes, 12, image=6))
    assert len(some_of_each(classes, 1000, image=5)) == 63  # void ones never


def save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array.astype(np.uint8)).save(path)


def labels_of(number: int) -> np.ndarray:
    values = np.zeros((32, 48), np.uint8)
    values[:16, :24] = 1 + number % 3
    values[16:, 24:] = 20
    return values


def voc(root: Path) -> Path:
    for number in range(6):
        save(root / f"JPEGImages/{number}.jpg", np.full((32, 48, 3), 40 * number))
        values = labels_of(number)
        values[0] = 255
        save(root / f"SegmentationClass/{number}.png", values)
    for split, names in (("train", range(4)), ("val", range(4, 6))):
        file = root / f"ImageSets/Segmentation/{split}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(map(str, names)))
    return root


def ade(root: Path) -> Path:
    for number, split in enumerate(("training", "training", "training", "validation")):
        save(root / f"images/{split}/{number}.jpg", np.full((32, 48, 3), 40 * number))
        save(root / f"annotations/{split}/{number}.png", labels_of(number))
    return root


def test_pascal_voc(tmp_path: Path) -> None:
    found = vitscope.open_dataset(voc(tmp_path / "VOC2012"))
    assert isinstance(found, SegmentationSet)
    assert (len(found.train), len(found.test), found.title) == (4, 2, "VOC2012")
    assert found.classes == ("background", *VOC)
    assert [a.category for a in found.train[1].annotations] == [1, 19, -1]  # the last is void


def test_ade20k(tmp_path: Path) -> None:
    found = vitscope.segmentation(ade(tmp_path / "ADE"))
    assert (len(found.train), len(found.test), len(found.classes)) == (3, 1, 20)
    assert not found.background
    assert [a.category for a in found.train[2].annotations] == [2, 19]
    (tmp_path / "ADE/objectInfo150.txt").write_text("Idx\tRatio\tTrain\tVal\tName\n" + "".join(
        f"{i}\t0\t0\t0\tthing{i}, stuff\n" for i in range(1, 151)
    ))  # fmt: skip
    assert vitscope.segmentation(tmp_path / "ADE").classes[19] == "thing20"


def test_a_mask_folder_is_divided(tmp_path: Path) -> None:
    for number in range(10):
        save(tmp_path / f"images/{number}.png", np.full((32, 48, 3), 20 * number))
        save(tmp_path / f"masks/{number}.png", labels_of(number))
    found = open_segmentation(tmp_path)
    assert (len(found.train), len(found.test)) == (8, 2)
    assert found.classes == ("background", "1", "2", "3", "20")
    assert not {s.id for s in found.train} & {s.id for s in found.test}
    assert "seeded 20%" in found.notes[0]


@pytest.mark.parametrize("problem", ["no lists", "a stranger's path", "another value", "nothing"])
def test_what_is_wrong_is_told(tmp_path: Path, problem: str) -> None:
    root = voc(tmp_path / "VOC")
    if problem == "no lists":
        (root / "ImageSets/Segmentation/train.txt").unlink()
    elif problem == "a stranger's path":
        (root / "ImageSets/Segmentation/train.txt").write_text("../../etc/passwd")
    elif problem == "another value":
        save(root / "SegmentationClass/1.png", np.full((32, 48), 77))
    else:
        root = tmp_path / "empty"
        root.mkdir()
    words = {"no lists": "train.txt", "a stranger's path": "without a folder", "another value": "value 77"}
    with pytest.raises(BadData, match=words.get(problem, "or VOC")):
        vitscope.segmentation(root)


def test_every_layer_from_python_with_an_interval(tmp_path: Path) -> None:
    results = vitscope.evaluate(
        "random:vit_tiny_patch16_224",
        on=vitscope.segmentation(ade(tmp_path / "ADE")),
        analyses=[vitscope.Segmentation()],
    )
    rows = results["segmentation_miou"]
    assert sorted(rows["layer"].unique()) == list(range(1, 13))
    assert set(rows["variant"]) == {"knn", "linear"}
    assert rows["value"].is_between(0, 1).all()
    assert results.best_layers().columns[0].task.key == "segmentation"
