"""A study as it runs: one pass, resumed after a kill, extended, never repeated, never mixed up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from tests.conftest import make_photos
from vitscope.cli import main
from vitscope.errors import VitscopeError
from vitscope.results import Results
from vitscope.study.file import parse_study
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import make_plan
from vitscope.study.run import run_study


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pictures with masks and classes, enough for two shards."""
    root = tmp_path_factory.mktemp("data")
    make_photos(root / "masked" / "images", count=12, classes=1)
    for photo in sorted((root / "masked" / "images").rglob("*.png")):
        where = root / "masked" / "masks" / photo.relative_to(root / "masked" / "images")
        where.parent.mkdir(parents=True, exist_ok=True)
        mask = np.zeros((48, 60), np.uint8)
        mask[10:40, 15:45] = 255
        Image.fromarray(mask).save(where)
    make_photos(root / "photos", count=72, classes=3)
    return root


def describe(data, out, *, models=("A", "B"), **settings):
    seeds = {
        "A": "random:vit_tiny_patch16_224",
        "B": "random:vit_tiny_patch16_224.augreg_in21k",
        "C": "random:deit_tiny_patch16_224",
    }
    values = {
        "title": "test",
        "models": [{"name": seeds[m], "title": m, "size": 32} for m in models],
        "data": {
            "images": {"path": str(data / "photos")},
            "masks": {"path": str(data / "masked")},
            "labelled": {"path": str(data / "photos")},
        },
        "out": str(out),
    } | settings
    return parse_study(values, data)


def traced(out):
    return [(e["model"], e["role"], e["pictures"]) for e in StudyFolder(out, "test").events() if e["event"] == "traced"]


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return out, run_study(describe(data, out))


def test_every_picture_goes_through_each_model_once_per_dataset(finished):
    out, outcome = finished
    for model in "AB":
        seen = {
            role: sum(n for m, r, n in traced(out) if (m, r) == (model, role))
            for role in ("images", "masks", "labelled")
        }
        assert seen == {"images": 72, "masks": 12, "labelled": 72}
    assert all(part.complete for part in outcome.coverage)
    measures = {"attention_distance", "saliency_best_head", "knn_top1", "purity", "cka", "skip_over_branch"}
    assert measures <= set(outcome.results.table["measure"])


def test_a_second_run_traces_nothing_and_ends_in_the_same_results(finished, data):
    out, outcome = finished
    before = len(traced(out))
    again = run_study(describe(data, out))
    assert len(traced(out)) == before
    assert again.results.table.equals(outcome.results.table)
    assert Results.load(out).table.equals(outcome.results.table)


def test_adding_a_model_runs_only_that_model(finished, data):
    out, _ = finished
    before = len(traced(out))
    outcome = run_study(describe(data, out, models=("A", "B", "C")))
    assert {model for model, _, _ in traced(out)[before:]} == {"C"}
    assert outcome.results.table["model"].n_unique() == 3


def test_what_changes_the_numbers_changes_the_job(data, tmp_path):
    first = {job.digest for job in make_plan(describe(data, tmp_path)).jobs}
    assert first == {job.digest for job in make_plan(describe(data, tmp_path / "elsewhere")).jobs}
    assert not first & {job.digest for job in make_plan(describe(data, tmp_path, seed=1)).jobs}
    photo = min((data / "photos").rglob("*.png"))
    original = photo.read_bytes()
    try:
        Image.new("RGB", (64, 64), "red").save(photo)
        changed = {job.digest for job in make_plan(describe(data, tmp_path)).jobs}
        assert len(first & changed) == 2  # the masks' pictures are others: their two jobs stand
    finally:
        photo.write_bytes(original)


def test_another_study_is_not_mixed_in(finished, data):
    out, _ = finished
    with pytest.raises(VitscopeError, match="holds another study"):
        run_study(describe(data, out, title="other"))


def test_a_folder_that_holds_something_else(data, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(VitscopeError, match="not empty"):
        run_study(describe(data, tmp_path))


def test_two_runs_at_once_are_refused(data, tmp_path):
    study = describe(data, tmp_path / "out")
    with StudyFolder(study.out, study.title).locked(), pytest.raises(VitscopeError, match="another run is working"):
        run_study(study)


def test_missing_weights_are_told_before_any_work(data, tmp_path, monkeypatch):
    monkeypatch.setenv("VITSCOPE_WEIGHTS", str(tmp_path))
    values = describe(data, tmp_path / "out").model_dump(mode="json")
    values["models"].append({"name": "moco-b16"})
    with pytest.raises(VitscopeError, match="vit-b-300ep"):
        run_study(parse_study(values, data))
    assert not (tmp_path / "out").exists()


def test_broken_pictures_are_counted_and_named(data, tmp_path):
    folder = make_photos(tmp_path / "photos", count=40)
    (folder / "class0" / "000.png").write_text("not a picture")
    values = {
        "title": "broken",
        "models": [{"name": "random:vit_tiny_patch16_224", "size": 32}],
        "data": {"images": {"path": str(folder)}},
        "analyses": ["attention"],
        "out": str(tmp_path / "out"),
    }
    outcome = run_study(parse_study(values, tmp_path))
    assert outcome.coverage[0].seen == 39
    assert outcome.coverage[0].planned == 40
    assert list(outcome.coverage[0].skipped) == ["class0/000.png"]
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(parse_study(values | {"skip_limit": 0, "out": str(tmp_path / "strict")}, tmp_path))


def test_identical_models_under_two_names_raise_an_alarm(data, tmp_path):
    values = describe(data, tmp_path / "out", models=("A",), analyses=["attention"]).model_dump(mode="json")
    values["models"].append(values["models"][0] | {"title": "Twin"})
    outcome = run_study(parse_study(values, data))
    assert any("Twin and A gave bit-identical results" in note for note in outcome.results.notes)


def test_killed_and_resumed_it_ends_in_the_same_results(finished, data, tmp_path):
    """SIGKILL whenever a further line is in the log: finished jobs are never repeated, half-done ones go on."""
    out = tmp_path / "killed"
    code = (
        "import json, sys; from pathlib import Path; from vitscope.study.file import parse_study;"
        "from vitscope.study.run import run_study; import torch; torch.set_num_threads(1);"
        "run_study(parse_study(json.loads(sys.argv[1]), Path('.')))"
    )
    values = json.dumps(describe(data, out).model_dump(mode="json"))
    log = out / "log.jsonl"
    for target in (1, 3, 7):
        process = subprocess.Popen([sys.executable, "-c", code, values], env=os.environ | {"OMP_NUM_THREADS": "1"})
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and len(log.read_text().splitlines()) >= target:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        process.wait(timeout=60)
    outcome = run_study(describe(data, out))
    expected = finished[1].results.table
    keys = ["model", "dataset", "layer", "head", "measure", "variant", "protocol"]
    both = outcome.results.table.join(expected, on=keys, nulls_equal=True)
    assert len(both) == len(expected) == len(outcome.results.table)
    assert np.allclose(both["value"], both["value_right"], rtol=1e-6, atol=1e-9, equal_nan=True)
    assert all(n <= 72 for _, _, n in traced(out))


def test_dry_run_writes_nothing(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        'title = "t"\nout = "out"\n[[models]]\nname = "random:vit_tiny_patch16_224"\n'
        f'[data.images]\npath = "{data}/photos"\n'
    )
    main(["run", "s.toml", "--dry-run"])
    text = capsys.readouterr().out
    assert "1 of 1 jobs to do" in text
    assert "72" in text
    assert not (tmp_path / "out").exists()


def test_models_of_different_sizes_are_compared_with_a_word_of_caution(data, tmp_path):
    values = describe(data, tmp_path / "out", analyses=["features"]).model_dump(mode="json")
    values["models"][1]["size"] = 48
    outcome = run_study(parse_study(values, data))
    assert any("A 32x32, B 48x48" in note for note in outcome.results.notes)
    pairs = outcome.results.table.filter(outcome.results.table["measure"] == "cka")
    assert pairs["value"].is_not_nan().any()
