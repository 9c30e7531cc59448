"""`vitscope tasks` from end to end, on official layouts and plain folders; and everything that can be wrong there."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from tests.tasks.conftest import classes, photo, square_at
from vitscope.cli import main
from vitscope.core.results import Results

MODEL = "random:vit_tiny_patch16_224"
FAST = ("--size", "32", "--device", "cpu")


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def run(*words: str | Path) -> None:
    main(["tasks", *(str(word) for word in words)])


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Exit status 2, and one sentence on standard error."""
    with pytest.raises(SystemExit) as stop:
        run(*words)
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return " ".join(text.split())


def test_everything_on_official_layouts(
    davis: Path, spair: Path, roxford: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes(tmp_path / "set" / "train", {"red": 6, "green": 6})
    classes(tmp_path / "set" / "val", {"red": 3, "green": 3}, seed=50)
    out = tmp_path / "out"
    data = ("--knn", tmp_path / "set", "--retrieval", roxford, "--davis", davis, "--spair", spair)
    run(MODEL, *data, "--protocol", "both", "--masks", "--out", out, "--figures", "all", *FAST)
    shown = capsys.readouterr().out
    for word in (
        "k-NN",
        "linear probe",
        "retrieval",
        "video segmentation",
        "keypoints",
        "paper protocol",
        "figures:",
        "page:",
    ):
        assert word in shown
    assert "there are no pairs of sheep" in shown
    results = Results.load(out)
    table = results.table
    assert set(table["measure"].unique()) >= {"knn_top1", "probe_top1", "retrieval_map", "video_j&f", "pck@0.1"}
    assert set(table.filter(pl.col("measure") == "video_j&f")["protocol"].unique()) == {"corrected", "paper"}
    assert table.filter(pl.col("measure") == "knn_top1")["layer"].max() == 12
    assert table["value"].is_not_nan().all()
    provenance = {entry["digest"] for entry in results.provenance}
    assert set(table["provenance"].unique()) == provenance
    for name in ("table.csv", "table.md", "table.tex", "report.html"):
        assert (out / name).stat().st_size > 0
    for name in ("tasks-table.png", "tasks-by-layer.svg", "video-pair.png", "video-late.png"):
        assert (out / "figures" / name).stat().st_size > 0
    for name in ("neighbours", "found", "keypoints"):
        assert (out / "figures" / f"{name}-1.png").stat().st_size > 0
    for protocol in ("corrected", "paper"):
        masks = out / "masks" / "untrained-vit-tiny-patch16-224" / protocol / "layer-12" / "pair"
        assert sorted(path.name for path in masks.iterdir()) == [f"{number:05}.png" for number in range(6)]


def test_plain_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    herd = classes(tmp_path / "herd", {"red": 5, "green": 5})
    video = tmp_path / "walk"
    video.mkdir()
    for number in range(3):
        Image.new("RGB", (50, 40), (40 * number, 90, 90)).save(video / f"{number}.jpg")
    Image.fromarray(square_at(10, 10, size=(50, 40)) * np.uint8(255)).save(video / "mask.png")
    photo(tmp_path / "a.jpg")
    photo(tmp_path / "b.jpg", seed=1)
    pairs = [{"source": "a.jpg", "target": "b.jpg", "source_points": [[5, 6]], "target_points": [[9, 9]]}]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    out = tmp_path / "out"
    run(
        MODEL,
        "--knn",
        herd,
        "--retrieval",
        herd,
        "--davis",
        video,
        "--spair",
        tmp_path / "pairs.json",
        "--out",
        out,
        "--figures",
        "all",
        *FAST,
    )
    shown = capsys.readouterr().out
    assert "a seeded 20% of each class was asked about" in shown
    assert "followed but could not be scored" in shown
    measures = set(pl.read_parquet(out / "results.parquet")["measure"].unique())
    assert {"knn_top1", "retrieval_map", "pck@0.1"} <= measures
    assert not any(measure.startswith("video") for measure in measures)
    assert (out / "figures" / "video-walk.png").exists()


def test_features_are_kept_and_used_again(tmp_path: Path) -> None:
    """By another task too: the probe reads what k-NN's passes left."""
    herd = classes(tmp_path / "herd", {"red": 5, "green": 5})
    out = tmp_path / "out"
    words = (MODEL, "--knn", herd, "--figures", "none", "--no-page", "--out", out, *FAST)

    def states() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (out / "states").rglob("*.safetensors")}

    run(*words, "--no-probe")
    before, one = states(), (out / "results.parquet").read_bytes()
    assert before
    assert not any(measure.startswith("probe") for measure in pl.read_parquet(out / "results.parquet")["measure"])
    run(*words)
    assert states() == before
    assert any(measure.startswith("probe") for measure in pl.read_parquet(out / "results.parquet")["measure"])
    run(*words, "--no-probe")
    assert states() == before
    assert (out / "results.parquet").read_bytes() == one


def test_nothing_to_do_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name at least one model" in refused(capsys, "--knn", tmp_path)
    assert "say what to do: --knn DIR" in refused(capsys, MODEL)


def test_wrong_layouts_say_what_was_expected_and_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    photo(tmp_path / "flat" / "a.jpg")
    for option in ("--knn", "--retrieval", "--davis", "--spair"):
        text = refused(capsys, MODEL, option, tmp_path / "flat", "--out", tmp_path / "out")
        assert "expected" in text
        assert "found" in text
        assert refused(capsys, MODEL, option, tmp_path / "nowhere", "--out", tmp_path / "out")


def test_a_malicious_pickle_is_refused_and_nothing_is_run(
    roxford: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {tmp_path / 'run'}",)

    (roxford / "gnd_roxford5k.pkl").write_bytes(pickle.dumps({"imlist": [], "qimlist": [], "gnd": Trap()}))
    text = refused(capsys, MODEL, "--retrieval", roxford, "--out", tmp_path / "out")
    assert "refused, nothing in it was run" in text
    assert not (tmp_path / "run").exists()


def test_broken_videos_are_told_before_work_starts(
    davis: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> str:
        return refused(capsys, MODEL, "--davis", davis, "--out", tmp_path / "out")

    masks = davis / "Annotations/480p/pair"
    kept = (masks / "00003.png").read_bytes()
    (masks / "00003.png").unlink()
    assert "1 frames of pair have no mask, the first is 00003" in told()
    Image.fromarray(np.zeros((10, 10), np.uint8)).save(masks / "00003.png")
    assert "00003.png is 10x10 but the first frame of pair is 64x48" in told()
    (masks / "00003.png").write_bytes(kept)
    for number in range(1, 6):
        (masks / f"{number:05}.png").unlink()
        (davis / f"JPEGImages/480p/pair/{number:05}.jpg").unlink()
    assert "the video pair has 1 frame: following an object needs two or more" in told()


def test_a_pair_whose_image_is_missing_is_left_out(
    spair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (spair / "JPEGImages/dog/b.jpg").unlink()
    run(MODEL, "--spair", spair, "--out", tmp_path / "out", *FAST)
    assert "1 pairs were left out: an image is missing or unreadable" in capsys.readouterr().out


def test_classes_without_examples_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classes(tmp_path / "set" / "train", {"ant": 2, "bee": 2})
    classes(tmp_path / "set" / "val", {"ant": 1, "yak": 1})
    text = refused(capsys, MODEL, "--knn", tmp_path / "set", "--out", tmp_path / "out")
    assert "(first: yak)" in text


def test_unreadable_images_are_named_and_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    herd = classes(tmp_path / "herd", {"red": 6, "green": 6})
    (herd / "red/003.jpg").write_bytes(b"not an image")
    run(MODEL, "--knn", herd, "--no-probe", "--out", tmp_path / "out", *FAST)
    assert "skipped: herd/red/003.jpg is not an image of a known format" in capsys.readouterr().out


def test_limits(davis: Path, spair: Path, tmp_path: Path) -> None:
    run(MODEL, "--davis", davis, "--spair", spair, "--limit", "1", "--out", tmp_path / "out", *FAST)
    table = pl.read_parquet(tmp_path / "out/results.parquet")
    assert set(table.filter(pl.col("measure") == "video_j&f")["variant"].unique()) == {
        "",
        "first mask copied",
        "pair 1",
        "pair 2",
    }
    assert table.filter((pl.col("measure") == "pck@0.1") & (pl.col("variant") == ""))["n"].to_list() == [2] * 12
    assert not (tmp_path / "out/masks").exists()
