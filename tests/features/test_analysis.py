"""The analysis of features: what it gives, what it reuses, and what it says about bad input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

import vitscope
from tests.features.made import inside, study, tiny, write_images, write_masks
from tests.features.test_cka import plain_cka, plain_hsic
from vitscope.api import StudyResults
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.observer import Observer
from vitscope.core.results import Results
from vitscope.data import openers
from vitscope.data.folders import open_images
from vitscope.features.analysis import Features
from vitscope.features.clustering import cluster_layers
from vitscope.features.pooling import PooledStatistic
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("study") / "p", 72, classes=3)


@pytest.fixture(scope="module")
def studied(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResults, Path]:
    out = tmp_path_factory.mktemp("out")
    models = [tiny("A", seed=1, teaching="dino"), tiny("B", seed=2, teaching="mae", depth=2), without_cls("C", seed=3)]
    return study(models, images, store=out, seeds=2), out


def without_cls(name: str, seed: int) -> Backbone:
    return tiny(name, seed=seed, class_token=False, global_pool="avg")


def one(results: Results, measure: str, model: str, variant: str, layer: int, other: str | None = None) -> float:
    """The one number of a model, or of a model with another."""
    rows = results.table.filter(
        (pl.col("measure") == measure)
        & (pl.col("model") == model)
        & (pl.col("variant") == variant)
        & (pl.col("layer") == layer)
        & pl.col("other_model").eq_missing(pl.lit(other, pl.String))
    )
    assert len(rows) == 1
    return float(rows["value"][0])


def traced_tokens(backbone: Backbone, folder: Path) -> torch.Tensor:
    """(n, L, T, D) in the order of a study."""
    statistic = PooledStatistic(backbone.layout, ("tokens",))
    observe(backbone, open_images(folder).shuffled(0), [statistic])
    return statistic.result()["tokens"]


def test_every_measure_is_there_once(studied: tuple[StudyResults, Path]) -> None:
    results, _ = studied
    key = ["model", "layer", "head", "other_model", "other_layer", "measure", "variant", "protocol"]
    assert results.table.select(key).is_unique().all()
    found = set(results.table["measure"])
    clusters = {"purity", "purity_chance", "nmi", "ari"}
    pairs = {"cka", "cka_null"} | {
        f"similarity_{n}{s}" for n in ("cka", "procrustes", "rsa", "neighbours") for s in ("", "_null")
    }
    residual = {"skip_over_branch", "residual_cka", "residual_cka_null"}
    assert found == clusters | pairs | residual | {"effective_rank", "intrinsic_dimension"}
    assert results.table["value"].is_finite().all()
    purity = results.table.filter(pl.col("measure") == "purity").group_by("model").len()
    assert dict(purity.rows()) == {"A": 6, "B": 4, "C": 3}  # CLS and spatial tokens of 3 and 2 layers; C has no CLS


def test_last_layer_cka_is_that_of_the_features(studied: tuple[StudyResults, Path], images: Path) -> None:
    results, _ = studied
    a, b = (traced_tokens(tiny(seed=s, depth=d), images)[:, -1] for s, d in ((1, 3), (2, 2)))
    blocks = [slice(0, 32), slice(32, 64), slice(64, 72)]  # the last block counts by its terms
    weights = [len(range(*block.indices(72))) * (len(range(*block.indices(72))) - 3) for block in blocks]
    value = one(results, "cka", "A", "spatial", 3, "B")

    def total(x: torch.Tensor, y: torch.Tensor) -> float:
        grams = [
            [z[block, 1:].flatten(1).double() @ z[block, 1:].flatten(1).double().T for z in (x, y)] for block in blocks
        ]
        return sum(w * plain_hsic(k, m) for w, (k, m) in zip(weights, grams, strict=True))

    assert value == pytest.approx(total(a, b) / (total(a, a) * total(b, b)) ** 0.5, abs=1e-5)
    exact = one(results, "similarity_cka", "A", "cls", 3, "B")
    assert exact == pytest.approx(plain_cka(a[:, :1], b[:, :1]), abs=1e-5)


def test_clusters_are_those_of_the_features(studied: tuple[StudyResults, Path], images: Path) -> None:
    results, _ = studied
    tokens = traced_tokens(tiny(seed=1), images)
    labels = torch.tensor(open_images(images).shuffled(0).labels)
    expected = cluster_layers([tokens[:, 2, 1:].mean(1)], labels, seeds=2)
    assert one(results, "purity", "A", "spatial", 3) == pytest.approx(expected.purity.mean().item(), abs=0.03)


def test_maps_fit_together(studied: tuple[StudyResults, Path]) -> None:
    results, _ = studied
    maps = results.maps
    assert maps["A/cka.depth.spatial"].shape == (6, 6)
    assert maps["A/cka.depth.spatial.B"].shape == (6, 4)
    assert maps["A/cka.depth.spatial"].diagonal().tolist() == pytest.approx([1] * 6, abs=1e-6)
    last = maps["models/cka.last.spatial"]
    assert last.diagonal().tolist() == pytest.approx([1] * 3, abs=1e-6)
    torch.testing.assert_close(last, last.T)
    assert one(results, "cka", "B", "spatial", 2, "C") == pytest.approx(last[1, 2].item())
    assert maps["models/cka.last.cls"][2].isnan().all()  # C has no CLS
    assert maps["A/residual.attention.cls"].shape == (3, 3)


def test_pairs_have_every_pair_of_sites_once(studied: tuple[StudyResults, Path]) -> None:
    pairs = studied[0].pairs
    spatial = pairs.filter(pl.col("tokens") == "spatial")
    sites = 9 + 6 + 9
    assert len(spatial) == sites * (sites - 1) // 2
    row = spatial.filter(
        (pl.col("model_a") == "A") & (pl.col("site_a") == "norm2") & (pl.col("layer_a") == 1)
        & (pl.col("model_b") == "B") & (pl.col("site_b") == "norm1") & (pl.col("layer_b") == 2)
    )  # fmt: skip
    assert row["value"][0] == pytest.approx(studied[0].maps["A/cka.depth.spatial.B"][1, 2].item())


def test_notes_say_what_is_missing(studied: tuple[StudyResults, Path]) -> None:
    notes = "\n".join(studied[0].notes)
    assert "C has no CLS token" in notes
    assert "cls features of A, B are the same for all images before attention of layer 1" in notes


def test_results_survive_saving(studied: tuple[StudyResults, Path]) -> None:
    results, out = studied
    results.save(out)
    again = StudyResults.load(out)
    assert again.table.equals(results.table)
    assert again.pairs.equals(results.pairs)
    assert again.maps.keys() == results.maps.keys()
    assert again.notes == results.notes


def test_a_model_added_later_runs_alone(
    studied: tuple[StudyResults, Path], images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, out = studied
    ran = list[str]()
    trace = Backbone.trace

    def counted(self: Backbone, images: torch.Tensor, observers: Sequence[Observer] = ()) -> torch.Tensor:
        ran.append(self.name)
        return trace(self, images, observers)

    monkeypatch.setattr(Backbone, "trace", counted)
    models = [tiny("A", seed=1, teaching="dino"), tiny("B", seed=2, teaching="mae", depth=2), tiny("D", seed=4)]
    more = study(models, images, store=out, seeds=1)  # other settings of clusters: the same passes
    assert set(ran) == {"D"}
    assert one(more, "cka", "A", "cls", 3, "B") == one(results, "cka", "A", "cls", 3, "B")
    assert len(study([*models, without_cls("C", seed=3)], images, store=out, seeds=1).provenance) == 4
    assert set(ran) == {"D"}


def test_one_model_is_enough(images: Path) -> None:
    results = study([tiny("A")], images, limit=20, projections=True)
    assert results.maps["A/cka.depth.all"].shape == (6, 6)
    assert results.maps["A/projection.pca"].shape == (20, 2)
    assert results.maps["A/projection.tsne"].shape == (20, 2)
    assert results.provenance[0]["classes"] == ["class0", "class1", "class2"]
    assert "cka" not in set(results.table["measure"])


def test_the_published_protocol_is_another_number_under_its_own_name(images: Path) -> None:
    models = [tiny("A", seed=1), tiny("B", seed=2)]
    paper = study(models, images, protocol="paper")
    assert set(paper.table.filter(pl.col("measure").is_in(["cka", "purity", "skip_over_branch"]))["protocol"]) == {
        "paper"
    }
    tokens = []
    for model in models:
        statistic = PooledStatistic(model.layout, ("tokens",))
        observe(model, open_images(images), [statistic])  # in class order
        tokens.append(statistic.result()["tokens"][:, -1].double().flatten(1))
    sums = torch.zeros(3, dtype=torch.float64)
    for start in range(0, 72, 8):
        grams = []
        for x in tokens:
            gram = x[start : start + 8] @ x[start : start + 8].T
            gram = (gram - gram.min()) / (gram - gram.min()).max()
            grams.append(gram.fill_diagonal_(0))
        k, m = grams
        sums += torch.tensor([plain_hsic(k, m), plain_hsic(k, k), plain_hsic(m, m)])
    expected = (sums[0] / (sums[1] * sums[2]).sqrt()).item()
    assert one(paper, "cka", "A", "all", 3, "B") == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValidationError, match="'corrected' or 'paper'"):
        Features(protocol="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("dense", [False, True])
def test_regions_are_clustered(tmp_path: Path, dense: bool) -> None:
    folder = write_images(tmp_path / "images", 12)
    write_masks(tmp_path / "masks", [f"{i:04}" for i in range(10)])
    results = study([tiny("A")], folder, masks=tmp_path / "masks", dense=dense)
    rows = results.table.filter(pl.col("measure") == "purity")
    assert set(rows["variant"]) == {"regions, dense" if dense else "regions"}
    assert set(rows["n"]) == {10}
    assert "the images have no labels: nothing to compare clusters of images with" in results.notes


def test_a_folder_of_images_is_enough(images: Path) -> None:
    results = vitscope.evaluate(tiny("A"), on=images, device="cpu")
    assert {"attention_distance", "effective_rank", "purity"} <= set(results.table["measure"])
    assert set(results.table["dataset"]) == {images.name}


def test_a_missing_model_is_told_before_any_is_run(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backbone, "trace", lambda *_: pytest.fail("a model was run"))
    with pytest.raises(VitscopeError, match="nonesuch"):
        vitscope.evaluate(["random:vit_tiny_patch16_224", "nonesuch"], on=images)


# -- bad input ----------------------------------------------------------------------------------------------------


def test_fewer_than_four_images(images: Path) -> None:
    with pytest.raises(BadData, match=r"3 images are too few .* at least 4"):
        study([tiny()], images, limit=3)


def test_four_images_give_what_four_can_give(images: Path) -> None:
    results = study([tiny("A"), tiny("B", seed=1)], images, limit=4, projections=True)
    assert results.table["value"].is_finite().all()
    notes = "\n".join(results.notes)
    assert "4 for 3 classes are fewer than two per class" in notes
    assert "too few to tell how many dimensions" in notes
    assert "Mutual 10-NN takes at least 11 images, there are 4" in notes


def test_a_model_without_any_variation_gives_no_similarity(images: Path) -> None:
    dead = tiny("dead")
    for parameter in inside(dead).patch_embed.parameters():
        parameter.zero_()
    dead = Backbone("dead", dead.module, dead.preprocessing)  # a digest of its own
    dying = tiny("dying", seed=1)
    for parameter in inside(dying).patch_embed.parameters():
        parameter.zero_()
    dying = Backbone("dying", dying.module, dying.preprocessing)
    results = study([tiny("A"), dead], images, limit=12)
    assert results.maps["models/cka.last.all"][1].isnan().all()
    for name in ("cka", "procrustes", "rsa", "neighbours"):
        assert results.maps[f"models/similarity.{name}.cls"].isnan().tolist() == [[False, True], [True, True]]
    rows = results.table.filter(pl.col("other_model") == "dead")
    assert len(rows)
    assert rows["value"].is_nan().all()
    assert "all features of dead are the same for all images at every layer: there is no similarity" in results.notes
    both = study([dead, dying], images, limit=12)
    assert not any("bit-identical" in note for note in both.notes)  # that all are zero is no coincidence


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_give_no_numbers(images: Path, bad: float) -> None:
    broken = tiny("broken")
    inside(broken).blocks[1].mlp.fc2.bias[3] = bad
    with pytest.raises(BadData, match=r"layer 2.* NaN or infinite features"):
        study([broken], images, limit=8)


def test_labels_with_one_class_or_lonely_images(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 8)
    same = study([tiny()], folder, labels={f"{i:04}.png": "x" for i in range(8)})
    assert "images are not clustered: there is only one class" in same.notes
    names = dict(zip([f"{i:04}.png" for i in range(8)], "aaaabbbc", strict=True))
    lonely = study([tiny()], folder, labels=names)
    assert any(note.startswith("1 class has a single image") for note in lonely.notes)


def test_masks_without_objects(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 6, size=64)
    (tmp_path / "m").mkdir()
    for i in range(6):
        Image.fromarray(np.zeros((64, 64), np.uint8)).save(tmp_path / "m" / f"{i:04}.png")
    with pytest.raises(BadData, match=r"all masks in .* are empty"):
        study([tiny()], folder, masks=tmp_path / "m")


def test_objects_outside_every_crop_are_told(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    for i in range(5):
        noise = np.random.default_rng(i).integers(0, 256, (32, 96, 3), dtype=np.uint8)
        mask = np.zeros((32, 96), np.uint8)
        mask[:, :10] = 1
        Image.fromarray(noise).save(tmp_path / "images" / f"{i}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"{i}.png")
    results = vitscope.evaluate([tiny("A")], on=[openers.masks(tmp_path)], device="cpu")
    assert "A: 5 regions lie outside the crop and were left out" in results.notes
    assert any("no region lies inside any crop" in note for note in results.notes)


def test_models_that_could_not_read_the_same_images_are_not_compared(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 12)
    study([tiny("A", seed=1)], folder, store=tmp_path / "s")
    path = folder / "0003.png"
    status = path.stat()
    path.write_bytes(b"\0" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # the list looks the same
    with pytest.raises(BadData, match="A and B could not use the same images, 1 were read"):
        study([tiny("A", seed=1), tiny("B", seed=2)], folder, store=tmp_path / "s")


def test_the_same_weights_twice_are_noticed(images: Path) -> None:
    results = study([tiny("A"), tiny("B")], images, limit=12)
    assert "A and B are the same weights under two names" in results.notes
    assert one(results, "cka", "A", "all", 3, "B") == pytest.approx(1)
    assert study([tiny("A"), tiny("A")], images, limit=12).table["model"].unique().to_list() == ["A"]  # counts once
    with pytest.raises(VitscopeError, match="two different models are called 'A'"):
        study([tiny("A"), tiny("A", seed=1)], images, limit=12)
    with pytest.raises(VitscopeError, match="at least one model"):
        study([], images)


def test_order_and_batching_of_files_do_not_matter(images: Path) -> None:
    """The same images listed in another order give the same numbers: the study's order follows from their names."""
    samples = open_images(images)
    backwards = samples.select(reversed(range(len(samples))))
    models = [tiny("A", seed=1), tiny("B", seed=2)]
    first, second = (study(models, s) for s in (samples, backwards))
    for kind in ("cls", "spatial", "all"):
        assert one(first, "cka", "A", kind, 3, "B") == one(second, "cka", "A", kind, 3, "B")
