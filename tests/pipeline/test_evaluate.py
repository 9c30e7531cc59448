"""A study as it runs: every image once, resumed, extended, repaired, never repeated, never mixed up."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.conftest import make_photos
from tests.pipeline.studies import describe, flip, logged, masked_photos, models, start, traced, until, written
from tests.tasks.conftest import make_davis, make_roxford, make_spair
from vitscope.api import StudyResults, evaluate, load_results, run_study
from vitscope.attention.analysis import Attention
from vitscope.cli import main
from vitscope.core.errors import VitscopeError
from vitscope.core.files import TensorFile
from vitscope.data import openers
from vitscope.features.extraction import load_features
from vitscope.pipeline.store import Store
from vitscope.pipeline.study import Study, parse_study

Finished = tuple[Path, StudyResults]
QUICK = {"features": {"cluster_seeds": 1, "projections": False}, "knn": {}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Images with masks and classes, enough for two shards."""
    root = tmp_path_factory.mktemp("data")
    photos = make_photos(root / "photos", count=72, classes=3)
    return {"images": photos, "masks": masked_photos(root / "masked"), "labelled": photos}


@pytest.fixture(scope="module")
def finished(data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Finished:
    out = tmp_path_factory.mktemp("run") / "out"
    return out, run_study(describe(out, data))


def test_every_image_goes_through_each_model_once_per_dataset(finished: Finished) -> None:
    out, results = finished
    for model in "AB":
        for dataset, count in (("photos", 72 + 72), ("masked", 12)):  # photos are two datasets: plain and labelled
            assert sum(n for m, d, n in traced(out) if (m, d) == (model, dataset)) == count
    assert all(part.complete for part in results.coverage)
    measures = {"attention_distance", "saliency_best_head", "knn_top1", "purity", "cka", "skip_over_branch"}
    assert measures <= set(results.table["measure"])


def test_a_second_run_traces_nothing_and_ends_in_the_same_results(finished: Finished, data: dict[str, Path]) -> None:
    out, results = finished
    before, files = len(traced(out)), written(out)
    again = run_study(describe(out, data))
    assert len(traced(out)) == before
    assert again.table.equals(results.table)
    assert written(out) == files
    assert load_results(out).table.equals(results.table)


def test_adding_a_model_runs_only_that_model(finished: Finished, data: dict[str, Path], tmp_path: Path) -> None:
    out = shutil.copytree(finished[0], tmp_path / "out")
    before = len(traced(out))
    results = run_study(describe(out, data, ("A", "B", "C")))
    assert {model for model, _, _ in traced(out)[before:]} == {"C"}
    assert results.table["model"].n_unique() == 3


def test_adding_an_analysis_of_the_same_images_reads_what_is_there(data: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(describe(out, {"labelled": data["labelled"]}, ("A",), analyses=["knn"]))
    before = traced(out)
    results = run_study(describe(out, {"labelled": data["labelled"]}, ("A",)))
    assert traced(out) == before
    assert "probe_top1" in set(results.table["measure"])


def test_missing_weights_are_told_before_any_work(
    data: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITSCOPE_DATA", str(tmp_path))
    study = describe(tmp_path / "out", data, models=[*models(), {"name": "moco-b16"}])
    with pytest.raises(VitscopeError, match="vit-b-300ep"):
        run_study(study)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["cut", "another network", "names"])
def test_weights_are_opened_before_the_first_model_runs(data: dict[str, Path], tmp_path: Path, damage: str) -> None:
    """The second model's file cannot be used: told before the first image of the first model is traced."""
    weights = tmp_path / "second.safetensors"
    shape = {"depth": 2, "embed_dim": 24, "num_heads": 2, "num_classes": 0}
    tensors = _tiny_weights(**(shape | ({"embed_dim": 48} if damage == "another network" else {})))
    if damage == "names":
        tensors["blocks.1.attn.kqv.weight"] = tensors.pop("blocks.1.attn.qkv.weight")
    save_file(tensors, weights)
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-1000])
    card = tmp_path / "second.toml"
    card.write_text(
        'name = "second"\nweights = "second.safetensors"\narchitecture = "vit_tiny_patch16_224"\nteaching = "other"\n'
        "[options]\ndepth = 2\nembed_dim = 24\nnum_heads = 2\n"
    )
    study = describe(tmp_path / "out", {"images": data["images"]}, models=[*models(("A",)), {"name": str(card)}])
    with pytest.raises(VitscopeError, match=r"second\.safetensors"):
        run_study(study)
    assert logged(tmp_path / "out", "traced") == 0


def _tiny_weights(**shape: Any) -> dict[str, torch.Tensor]:
    import timm

    network = timm.create_model("vit_tiny_patch16_224", **shape)
    return {name: value.contiguous() for name, value in network.state_dict().items()}


def test_broken_images_are_counted_and_named(tmp_path: Path) -> None:
    folder = make_photos(tmp_path / "photos", count=40)
    (folder / "class0" / "000.png").write_text("not an image")
    values: dict[str, Any] = {"analyses": ["attention"]}
    results = run_study(describe(tmp_path / "out", {"images": folder}, ("A",), **values))
    assert (results.coverage[0].seen, results.coverage[0].planned) == (39, 40)
    assert list(results.coverage[0].skipped) == ["class0/000.png"]
    assert list(results.skipped) == ["photos/class0/000.png"]
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(describe(tmp_path / "strict", {"images": folder}, ("A",), skip_limit=0, **values))


def test_broken_images_of_the_same_name_in_two_datasets_are_two(tmp_path: Path) -> None:
    folders = [make_photos(tmp_path / name, count=12 + i) for i, name in enumerate(("one", "two"))]
    for folder in folders:
        (folder / "class0" / "000.png").write_text("not an image")
    entries = [{"path": str(folder)} for folder in folders]
    results = run_study(describe(tmp_path / "out", {"images": entries}, ("A",), analyses=["attention"]))
    assert sorted(results.skipped) == ["one/class0/000.png", "two/class0/000.png"]
    assert sorted((part.dataset, part.seen, part.planned) for part in results.coverage) == [
        ("one", 11, 12),
        ("two", 12, 13),
    ]


def test_too_many_broken_images_over_several_shards(tmp_path: Path) -> None:
    """No shard has more than may be skipped, all of them together have."""
    folder = make_photos(tmp_path / "photos", count=130, classes=1)
    shown = openers.images(folder).shuffled
    for position in (0, 70, 128):
        shown[position].path.write_text("not an image")
    with pytest.raises(VitscopeError, match="3 images are unusable, more than the 2"):
        run_study(describe(tmp_path / "out", {"images": folder}, ("A",), analyses=["attention"], skip_limit=2))


def test_identical_models_under_two_names_raise_an_alarm(data: dict[str, Path], tmp_path: Path) -> None:
    twins = [*models(("A",)), models(("A",))[0] | {"title": "Twin"}]
    study = describe(tmp_path / "out", {"images": data["images"]}, models=twins, analyses=["attention"])
    assert any("Twin and A gave bit-identical results" in note for note in run_study(study).notes)


def test_the_same_model_given_twice_counts_once(data: dict[str, Path]) -> None:
    photos = openers.images(data["images"], limit=8)
    once, twice = (evaluate(["zoo/none"] * n, on=[photos], analyses=[Attention()]) for n in (1, 2))
    assert twice.table.equals(once.table)


def test_killed_and_resumed_it_ends_in_the_same_results(
    finished: Finished, data: dict[str, Path], tmp_path: Path
) -> None:
    """SIGKILL whenever a further line is in the log: finished shards are never repeated."""
    out = tmp_path / "killed"
    for target in (1, 3, 7):
        process = start(describe(out, data))
        until(partial(_has_lines, out, target))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    run_study(describe(out, data))
    assert written(out) == written(finished[0])
    seen = [(e["model"], e["what"]) for e in Store(out).events() if e["event"] == "traced"]
    assert len(seen) == len(set(seen))


def _has_lines(out: Path, count: int) -> bool:
    return (out / "log.jsonl").exists() and len((out / "log.jsonl").read_text().splitlines()) >= count


def test_models_of_different_sizes_are_compared_with_a_word_of_caution(data: dict[str, Path], tmp_path: Path) -> None:
    study = describe(
        tmp_path / "out",
        {"images": data["images"]},
        models=[*models(("A",)), *models(("B",), size=48)],
        analyses=["features"],
    )
    results = run_study(study)
    assert any("A 32x32, B 48x48" in note for note in results.notes)
    assert results["cka"]["value"].is_not_nan().any()


# -- both protocols: every analysis sees its own pixels ---------------------------------------------------------


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Retrieval, keypoints and videos whose images are not square."""
    root = tmp_path_factory.mktemp("tasks")
    return {
        "retrieval": make_roxford(root / "roxford5k"),
        "keypoints": make_spair(root / "SPair-71k"),
        "video": make_davis(root / "DAVIS"),
    }


@pytest.fixture(scope="module")
def both(tasks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Two models with different mean colours, both protocols, in one store."""
    out = tmp_path_factory.mktemp("both") / "out"
    return out, run_study(describe(out, tasks, ("A", "C"), protocols=["corrected", "paper"]))


def _sorted(table: pl.DataFrame) -> pl.DataFrame:
    return table.sort(["model", "dataset", "measure", "variant", "protocol", "layer"])


@pytest.mark.parametrize("protocol", ["paper", "corrected"])
@pytest.mark.parametrize("model", ["A", "C"])
def test_each_protocol_and_model_sees_its_own_pixels(
    both: Finished, tasks: dict[str, Path], tmp_path: Path, protocol: str, model: str
) -> None:
    """Rows of one model in one protocol are those of a study of nothing else."""
    alone = run_study(describe(tmp_path / "out", tasks, (model,), protocols=[protocol]))
    together = both[1].table.filter((pl.col("model") == model) & (pl.col("protocol") == protocol))
    assert set(alone.table["measure"]) >= {"retrieval_map", "pck@0.1", "video_j&f"}
    assert _sorted(together).equals(_sorted(alone.table))
    for name, value in alone.maps.items():
        assert torch.equal(both[1].maps[name], value), name


@pytest.mark.parametrize(("analysis", "array"), [("retrieval", "retrieval_map"), ("keypoints", "pck@0.1")])
def test_the_protocols_differ_where_pixels_differ(both: Finished, analysis: str, array: str) -> None:
    """Photographs that are not square are cropped or shrunk, padded with the mean colour or black: other numbers."""
    results = both[1]
    for model in "AC":
        rows = results[array].filter(pl.col("model") == model)
        paper, corrected = (_sorted(rows.filter(pl.col("protocol") == p)) for p in ("paper", "corrected"))
        assert len(paper) == len(corrected) > 0
        if analysis == "keypoints":  # few points: compare where they were found
            names = [name for name in results.maps if name.startswith(f"{model}/keypoints.") and name[-1].isdigit()]
            assert names
            assert any(not torch.equal(results.maps[name], results.maps[f"{name}.paper"]) for name in names)
        else:
            assert not np.array_equal(paper["value"], corrected["value"])


def test_images_traced_are_counted_for_every_kind_of_data(both: Finished) -> None:
    """By hand: retrieval has 6 + 2 photographs, the pairs 4 images, the videos 2 x 6 frames in 2 x 3 tiles each; twice,
    once for each protocol. A frame of 64 x 48 becomes 80 x 64 at twice the input of 32: tiles of 2 x 2 patches."""
    out, _ = both
    for model in "AC":
        counts: dict[str, int] = {}
        for _, dataset, n in (event for event in traced(out) if event[0] == model):
            counts[dataset] = counts.get(dataset, 0) + n
        assert counts == {"ROxford5k (part)": 2 * 8, "SPair-71k": 2 * 4, "DAVIS": 2 * 72}


def test_limits_of_videos_and_queries_are_honoured(tasks: dict[str, Path], tmp_path: Path) -> None:
    limited = {kind: {"path": str(tasks[kind]), "limit": 1} for kind in ("video", "retrieval", "keypoints")}
    out = tmp_path / "out"
    results = run_study(describe(out, limited, ("A",)))
    assert set(results["video_j&f"]["variant"]) == {
        "",
        "first mask copied",
        "pair 1",
        "pair 2",
    }  # the second video is not there
    assert set(results["retrieval_map"]["n"]) == {1}
    assert set(results["pck@0.1"].filter(pl.col("variant") == "")["n"]) == {2}  # a pair of cats, a pair of dogs
    counts = {dataset: n for _, dataset, n in traced(out)}
    assert counts["DAVIS (1 videos)"] == 36
    assert sum(n for _, dataset, n in traced(out) if dataset.startswith("ROxford5k")) == 7  # 6 and one query


# -- the identity of a file --------------------------------------------------------------------------------------


def _bitmaps(root: Path, seed: int) -> Path:
    """Uncompressed images: whatever they show, files of one size."""
    generator = np.random.default_rng(seed)
    for number in range(20):
        path = root / ("red", "green")[number % 2] / f"{number:02}.bmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = generator.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((40, 32), Image.Resampling.BICUBIC).save(path)
    return root


def _command(name: str, photos: Path, out: Path) -> list[str]:
    model = ["random:vit_tiny_patch16_224", "--size", "32", "--out", str(out)]
    quiet = ["--no-page", "--figures", "none"]
    if name == "run":
        study = out.parent / "study.toml"
        lines = [f'title = "t"\nout = "{out}"', '[[models]]\nname = "random:vit_tiny_patch16_224"\nsize = 32']
        study.write_text("\n".join([*lines, f'[data.images]\npath = "{photos}"\n[data.labelled]\npath = "{photos}"\n']))
        return ["run", str(study), "--figures", "none"]
    return {
        "attention": ["attention", *model, "--images", str(photos), *quiet],
        "features": ["features", *model, "--images", str(photos), *quiet],
        "tasks": ["tasks", *model, "--knn", str(photos), "--retrieval", str(photos), *quiet],
        "extract": ["extract", *model, "--images", str(photos)],
    }[name]


@pytest.mark.parametrize("command", ["run", "attention", "features", "tasks", "extract"])
def test_images_replaced_by_others_of_the_same_size_are_others(tmp_path: Path, command: str) -> None:
    photos = _bitmaps(tmp_path / "photos", seed=1)
    sizes = {path: path.stat().st_size for path in photos.rglob("*.bmp")}

    def numbers(out: Path) -> list[float]:
        main(_command(command, photos, out))
        if command == "extract":
            return load_features(out).layer("mean", 11).whole().flatten().tolist()
        return _sorted(pl.read_parquet(out / "results.parquet"))["value"].to_list()

    old = numbers(tmp_path / "out")
    _bitmaps(photos, seed=2)
    assert {path: path.stat().st_size for path in photos.rglob("*.bmp")} == sizes
    new = numbers(tmp_path / "out")
    assert new != old
    assert new == numbers(tmp_path / "fresh")


# -- damage ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A finished study of two models, in two shards each."""
    out = tmp_path_factory.mktemp("small") / "out"
    return out, run_study(_small(out, data))


def _small(out: Path, data: dict[str, Path]) -> Study:
    return describe(out, {"images": data["images"], "labelled": data["labelled"]}, analyses=QUICK)


def _told(results: StudyResults) -> list[str]:
    return [note for note in results.notes if "damaged and made anew" in note]


@pytest.mark.parametrize("place", [0.002, 0.5, 0.999])
def test_a_changed_byte_in_every_state_is_noticed_and_repaired(
    small: Finished, data: dict[str, Path], tmp_path: Path, place: float
) -> None:
    """In the header, the middle and the end; a dozen files at once."""
    out = shutil.copytree(small[0], tmp_path / "out")
    shutil.rmtree(out / "outcomes")
    files = sorted((out / "states").rglob("*.safetensors"))
    assert len(files) > 10
    for file in files:
        flip(file, place)
    results = run_study(_small(out, data))
    assert sorted(file.relative_to(out).as_posix() for file in files) == sorted(
        note.partition("(")[2].partition(":")[0] for note in _told(results)
    )
    assert written(out) == written(small[0])


def test_a_damaged_state_of_finished_work_is_noticed_by_whoever_reads_it(
    small: Finished, data: dict[str, Path], tmp_path: Path
) -> None:
    """A further model is compared with those that are done: their states are read again."""
    out = shutil.copytree(small[0], tmp_path / "out")
    for file in (out / "states").rglob("*.safetensors"):
        flip(file, 0.9)
    photos = {"images": data["images"], "labelled": data["labelled"]}
    results = run_study(describe(out, photos, ("A", "B", "C"), analyses=QUICK))
    assert _told(results)
    fresh = tmp_path / "fresh"
    run_study(describe(fresh, photos, ("A", "B", "C"), analyses=QUICK))
    assert written(out) == written(fresh)


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied"])
def test_damaged_outcomes_are_noticed_and_repaired(
    small: Finished, data: dict[str, Path], tmp_path: Path, damage: str
) -> None:
    out = shutil.copytree(small[0], tmp_path / "out")
    files = sorted((out / "outcomes").glob("*.safetensors"))
    assert len(files) == 5  # features and k-NN of two models, and their comparison
    for file in files:
        if damage == "flipped":
            flip(file)
        else:
            file.write_bytes(file.read_bytes()[:-7] if damage == "cut" else b"")
    before = len(traced(out))
    results = run_study(_small(out, data))
    assert len(_told(results)) == len(files)
    assert len(traced(out)) == before  # the states are sound: nothing is traced
    assert written(out) == written(small[0])


def _swap(first: Path, second: Path) -> None:
    a, b = first.read_bytes(), second.read_bytes()
    assert a != b
    first.write_bytes(b)
    second.write_bytes(a)


def test_shards_in_each_others_place_are_noticed(small: Finished, data: dict[str, Path], tmp_path: Path) -> None:
    out = shutil.copytree(small[0], tmp_path / "out")
    alike: dict[tuple[str, int], list[Path]] = {}
    for file in sorted((out / "states").rglob("*.safetensors")):
        found = TensorFile(file)
        alike.setdefault((found.about["about"]["statistic"], len(found["indices"])), []).append(file)
    pairs = [files for files in alike.values() if len(files) == 2]  # the same shard of the two models
    assert len(pairs) > 4
    for first, second in pairs:
        _swap(first, second)
    shutil.rmtree(out / "outcomes")
    results = run_study(_small(out, data))
    assert len(_told(results)) == 2 * len(pairs)
    assert all("it lies in the place of another" in note for note in _told(results))
    assert written(out) == written(small[0])


def test_outcomes_in_each_others_place_are_noticed(small: Finished, data: dict[str, Path], tmp_path: Path) -> None:
    out = shutil.copytree(small[0], tmp_path / "out")
    _swap(*sorted((out / "outcomes").glob("*.safetensors"))[:2])
    results = run_study(_small(out, data))
    assert len(_told(results)) == 2
    assert written(out) == written(small[0])


@pytest.mark.parametrize("name", ["results.parquet", "maps.safetensors", "provenance.json"])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.9])
def test_damaged_results_are_told_and_made_anew(
    small: Finished, data: dict[str, Path], tmp_path: Path, name: str, place: float
) -> None:
    out = shutil.copytree(small[0], tmp_path / "out")
    flip(out / name, place)
    with pytest.raises(VitscopeError, match=r"is damaged .*: run again to make it anew"):
        load_results(out)
    results = run_study(_small(out, data))
    assert written(out) == written(small[0])
    assert load_results(out).table.equals(results.table)


def test_damaged_features_are_told_and_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `extract` wrote is what was asked for: the remedy that reading it tells must work."""
    photos, out = make_photos(tmp_path / "photos", count=12), tmp_path / "out"
    main(_command("extract", photos, out))
    expected = load_features(out).layer("cls", 11).whole()
    (file,) = (out / "states").rglob("*.safetensors")
    flip(file, 0.5)
    with pytest.raises(VitscopeError, match="run again to make it anew"):
        [load_features(out).layer(kind, layer).whole() for kind in ("cls", "mean") for layer in range(12)]
    capsys.readouterr()
    main(_command("extract", photos, out))
    assert "damaged and made anew" in " ".join(capsys.readouterr().out.split())
    assert torch.equal(load_features(out).layer("cls", 11).whole(), expected)


def test_a_damaged_mark_does_not_lose_a_store(small: Finished, data: dict[str, Path], tmp_path: Path) -> None:
    out = shutil.copytree(small[0], tmp_path / "out")
    flip(out / "store.json", 0.2)
    before = len(traced(out))
    flip(out / "store.json", 0.2)
    flip(out / "store.json", 0.6)
    results = run_study(_small(out, data))
    assert len(traced(out)) == before
    assert any("store.json" in note for note in _told(results))
    assert written(out) == written(small[0])


def test_a_file_that_is_damaged_again_and_again_is_told(
    small: Finished, data: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken disk: whatever is written comes back changed."""
    out = shutil.copytree(small[0], tmp_path / "out")
    write = Store.write_outcome

    def broken(self: Store, digest: str, outcome: Any) -> None:
        write(self, digest, outcome)
        flip(self.outcome_path(digest))

    monkeypatch.setattr(Store, "write_outcome", broken)
    shutil.rmtree(out / "outcomes")
    with pytest.raises(VitscopeError, match=r"damaged again and again .* check the disk"):
        run_study(_small(out, data))


# -- what is asked of one dataset of several ---------------------------------------------------------------------


def test_several_datasets_of_a_kind_stand_beside_each_other(tmp_path: Path) -> None:
    """Two of retrieval and two of labelled images, one pair with the same title."""
    herds = [make_photos(tmp_path / name / "herd", count=count, classes=3) for name, count in (("a", 9), ("b", 12))]
    entries: Sequence[dict[str, Any]] = [{"path": str(herd)} for herd in herds]
    data = {"retrieval": entries, "labelled": [entries[0] | {"title": "first"}, entries[1] | {"title": "second"}]}
    results = run_study(describe(tmp_path / "out", data, ("A",)))
    assert {(part.kind, part.dataset) for part in results.coverage} == {
        ("retrieval", "herd"), ("retrieval", "herd (2)"), ("labelled", "first"), ("labelled", "second"),
    }  # fmt: skip
    assert set(results["retrieval_map"]["dataset"]) == {"herd", "herd (2)"}
    alone = run_study(describe(tmp_path / "alone", {"retrieval": herds[1]}, ("A",)))
    mine = results["retrieval_map"].filter(pl.col("dataset") == "herd (2)")
    assert mine["value"].to_list() == alone["retrieval_map"]["value"].to_list()
    assert {name.partition("@")[2] for name in results.maps if "retrieval.first" in name} == {"", "herd (2)"}


def test_an_interrupted_run_leaves_a_store_that_goes_on(data: dict[str, Path], tmp_path: Path) -> None:
    """What `evaluate` raises on its way leaves the lock free and the finished shards there."""

    class Stop(Exception):
        pass

    class Progress:
        def __init__(self, title: str, total: int) -> None:
            self.seen = 0

        def __enter__(self) -> Any:
            return self.count

        def __exit__(self, *_: object) -> None: ...

        def count(self, n: int, doing: str = "") -> None:
            self.seen += n
            if self.seen > 70:
                raise Stop

    study = describe(tmp_path / "out", {"images": data["images"]}, ("A",), analyses=["attention"])
    with pytest.raises(Stop):
        run_study(study, progress=Progress)
    assert [n for _, _, n in traced(study.out)] == [64]
    began = time.monotonic()
    run_study(study)
    assert [n for _, _, n in traced(study.out)] == [64, 8]
    assert time.monotonic() - began < 60


def test_settings_show_names_and_not_places(data: dict[str, Path], tmp_path: Path) -> None:
    values = {
        "title": "t",
        "models": models(("A",)),
        "data": {"images": {"path": str(data["images"])}},
        "analyses": ["attention"],
        "out": str(tmp_path / "out"),
    }
    results = run_study(parse_study(values, tmp_path))
    assert str(tmp_path) not in json.dumps(results.settings)
    assert results.settings["data"]["images"] == [{"path": "photos", "imagenet50": False}]
