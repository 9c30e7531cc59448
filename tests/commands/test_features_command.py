"""`vitscope features` as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.features.made import write_images, write_masks
from vitscope.cli import main
from vitscope.core.results import Results

MODEL = "random:vit_tiny_patch16_224"


def run(*words: object) -> None:
    main([str(word) for word in words])


def fails(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The command must exit with 2 and one sentence; returns it."""
    with pytest.raises(SystemExit) as stop:
        run(*words)
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return " ".join(text.split())


def test_the_command_writes_everything_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_images(tmp_path / "p", 16, classes=2), tmp_path / "o"
    words = ("features", MODEL, "--images", folder, "--out", out, "--size", 32, "--seeds", 1, "--limit", 12)
    run(*words, "--figures", "all")
    said = " ".join(capsys.readouterr().out.split())
    assert f"results: {out / 'results.parquet'} (and results.csv, maps.safetensors, provenance.json)" in said
    files = ["results.parquet", "results.csv", "pairs.parquet", "maps.safetensors", "provenance.json", "report.html"]
    for name in [*files, "figures/purity.png"]:
        assert (out / name).is_file()


def test_what_is_missing_or_makes_no_sense_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_images(tmp_path / "p", 6)
    words = ("--images", folder, "--out", tmp_path / "o", "--size", 32)
    assert "at least one model" in fails(capsys, "features", *words)
    assert "which images" in fails(capsys, "features", MODEL)
    assert "--seeds 0" in fails(capsys, "features", MODEL, *words, "--seeds", 0)
    assert "there are no masks" in fails(capsys, "features", MODEL, *words, "--dense")
    assert "3 images are too few to compare features: give at least 4" in fails(
        capsys, "features", MODEL, *words, "--limit", 3
    )
    assert not (tmp_path / "o").exists()


def test_other_seeds_and_other_settings_of_clusters_have_digests_of_their_own(tmp_path: Path) -> None:
    """Nothing goes through the network again for them, but what was computed must say how."""
    write_images(tmp_path / "images", 24, classes=3)
    out = tmp_path / "o"
    for name in range(3):
        write_masks(tmp_path / "masks" / f"class{name}", [f"{i:04}" for i in range(name, 24, 3)])
    words = ("--masks", tmp_path, "--out", out, "--size", 32, "--no-page", "--figures", "none")
    tables: dict[str, Any] = {}
    for seeds in (1, 5, 1):
        run("features", MODEL, *words, "--seeds", seeds)
        results = Results.load(out)
        tables.setdefault(seeds, []).append(results.table)
        with_rows = [about for about in results.provenance if about["measure"] not in ("calibration", "pictures")]
        clustered = [about["settings"] for about in with_rows if about["measure"] != "tokens"]
        assert {settings["cluster_seeds"] for settings in clustered} == {seeds}
        assert {about["digest"] for about in with_rows} == set(
            results.table.filter(pl.col("other_model").is_null())["provenance"]
        )
    assert tables[1][0].equals(tables[1][1])
    for measure in ("purity", "effective_rank"):
        digests = [
            set(tables[seeds][0].filter(pl.col("measure") == measure)["provenance"].to_list()) for seeds in (1, 5)
        ]
        assert digests[0].isdisjoint(digests[1])
