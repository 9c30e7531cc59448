"""`vitscope attention` as a user meets it: real images, broken images, wrong words, a full disk."""

from __future__ import annotations

import errno
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import vitscope
from tests.conftest import make_photos
from vitscope.cli import main
from vitscope.core.results import SCHEMA, Results
from vitscope.data.dataset import ImageSet

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


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small models on twelve images with masks."""
    root = tmp_path_factory.mktemp("study")
    photos = make_photos(root / "data" / "images", count=12, classes=1)
    (root / "data" / "masks").mkdir()
    for photo in sorted(photos.rglob("*.png")):
        where = root / "data" / "masks" / photo.relative_to(photos)
        where.parent.mkdir(parents=True, exist_ok=True)
        mask = np.zeros((48, 60), np.uint8)
        mask[10:40, 15:45] = 255
        Image.fromarray(mask).save(where)
    show = next(photos.rglob("*.png"))
    words = ("--masks", root / "data", "--size", 64, "--out", root / "out", "--show", show, "--figures", "all")
    run("attention", MODEL, "random:vit_base_patch16_siglip_224", *words)
    return root / "out"


def test_tables_maps_and_provenance(studied: Path) -> None:
    results = Results.load(studied)
    assert dict(results.table.schema) == {name: kind() for name, kind in SCHEMA.items()}
    assert results.table["model"].n_unique() == 2
    assert pl.read_csv(studied / "results.csv").shape == results.table.shape
    distance = results.table.filter((pl.col("measure") == "attention_distance") & (pl.col("variant") == "grid"))
    assert distance["layer"].min() == 1
    assert (distance["ci_low"] <= distance["value"]).all()
    assert (distance["value"] <= distance["ci_high"]).all()
    assert set(distance["n"]) == {12}
    assert {p["digest"] for p in results.provenance} == set(results.table["provenance"])
    assert results.maps["Untrained vit_tiny_patch16_224/cls"].shape == (12, 3, 4, 4)
    assert results.maps["Untrained vit_tiny_patch16_224/aligned.corrected"].shape == (12, 3, 7, 7)


def test_a_model_without_cls_has_no_cls_rows_and_says_why(studied: Path) -> None:
    results = Results.load(studied)
    siglip = results.table.filter(pl.col("model").str.contains("siglip"))
    assert "cls" not in siglip["variant"].to_list()
    assert any("no CLS token" in note for note in results.notes)
    assert not any(key.startswith("Untrained vit_base_patch16_siglip_224/cls") for key in results.maps)


def test_a_pooling_head_is_a_source_at_the_last_layer(studied: Path) -> None:
    results = Results.load(studied)
    pool = results.table.filter(pl.col("variant") == "pool")
    assert pool["model"].unique().to_list() == ["Untrained vit_base_patch16_siglip_224"]
    assert pool["layer"].unique().to_list() == [12]
    assert {"gini", "compactness", "saliency_iou", "saliency_ap", "saliency_merged"} <= set(pool["measure"])
    iou = pool.filter((pl.col("measure") == "saliency_iou") & (pl.col("protocol") == "corrected"))
    assert iou["head"].to_list() == list(range(1, 13))
    mean = results.maps["Untrained vit_base_patch16_siglip_224/pool"]
    assert mean.shape == (1, 12, 4, 4)
    torch.testing.assert_close(mean.sum((-1, -2)), torch.ones(1, 12), rtol=0, atol=1e-5)
    assert (studied / "figures" / "pool-maps-untrained-vit-base-patch16-siglip-224.png").exists()


def test_figures_are_written_as_png_and_svg(studied: Path) -> None:
    names = {path.stem for path in (studied / "figures").glob("*.png")}
    assert names == {path.stem for path in (studied / "figures").glob("*.svg")}
    assert {"attention-distance", "saliency", "cls-maps-untrained-vit-tiny-patch16-224"} <= names
    assert {"aligned-untrained-vit-tiny-patch16-224", "aligned-untrained-vit-base-patch16-siglip-224"} <= names
    assert any(name.startswith("show-") for name in names)
    for path in (studied / "figures").glob("*.png"):
        with Image.open(path) as figure:
            assert min(figure.size) > 200


def test_the_same_from_python(studied: Path) -> None:
    masked = vitscope.masks(studied.parent / "data")
    results = vitscope.evaluate(
        vitscope.resolve(MODEL, size=64),
        on=[ImageSet(masked.title, masked.samples), masked],
        analyses=[vitscope.Attention(), vitscope.HeadWrites(), vitscope.Saliency()],
    )
    written = Results.load(studied).table.filter(pl.col("model") == "Untrained vit_tiny_patch16_224")
    tables = [table.with_columns(pl.col("layer", "head").fill_null(0)) for table in (results.table, written)]
    same = tables[0].join(tables[1], on=["layer", "head", "measure", "variant", "protocol"], how="inner")
    assert len(same) == len(results.table) == len(written)
    assert same["value"].equals(same["value_right"])
    assert same["provenance"].equals(same["provenance_right"])


def bomb(path: Path) -> None:
    """A PNG header that promises 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)))


def test_odd_images_are_read_and_broken_ones_are_skipped_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    image.save(folder / "fine.jpg")
    image.convert("CMYK").save(folder / "cmyk.jpg")
    Image.fromarray(noise[..., 0].astype(np.uint16) * 257).save(folder / "deep.png")
    image.save(folder / "moving.gif", save_all=True, append_images=[Image.fromarray(255 - noise)])
    (folder / "cut.jpg").write_bytes((folder / "fine.jpg").read_bytes()[:900])
    Image.fromarray(noise[:1, :1]).save(folder / "dot.png")
    (folder / "text.png").write_text("not an image")
    bomb(folder / "bomb.png")
    run("attention", MODEL, "--images", folder, "--size", 64, "--out", tmp_path / "out")
    results = Results.load(tmp_path / "out")
    assert set(results.skipped) == {"odd/cut.jpg", "odd/dot.png", "odd/text.png", "odd/bomb.png"}
    assert all(results.skipped.values())
    assert set(results.table.filter(pl.col("measure") == "entropy")["n"]) == {4}
    about = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert about["provenance"][0]["seen"] == 4


def test_wrong_words(capsys: pytest.CaptureFixture[str], tmp_path: Path, photos: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert "at least one model" in fails(capsys, "attention", "--images", photos, *out)
    assert "which images" in fails(capsys, "attention", MODEL, *out)
    assert "dino-b16" in fails(capsys, "attention", "dino-b61", "--images", photos, *out)
    assert "weights are not on this machine" in fails(capsys, "attention", "mae-h14", "--images", photos, *out)
    assert "--imagse" in fails(capsys, "attention", MODEL, "--imagse", photos)
    assert "device" in fails(capsys, "attention", MODEL, "--images", photos, "--device", "abacus", *out)


def test_folders_that_hold_no_images(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert str(empty) in fails(capsys, "attention", MODEL, "--images", empty, "--out", tmp_path / "out")
    missing = tmp_path / "nowhere"
    assert str(missing) in fails(capsys, "attention", MODEL, "--images", missing, "--out", tmp_path / "out")


def test_an_output_folder_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, photos: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write" in fails(capsys, "attention", MODEL, "--images", photos, "--out", tmp_path / "file" / "out")


def test_weights_that_do_not_fit_or_are_not_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, photos: Path
) -> None:
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict()
    save_file(state, tmp_path / "tiny.safetensors")
    words = ("--images", photos, "--out", tmp_path / "out")
    text = fails(capsys, "attention", tmp_path / "tiny.safetensors", "--arch", "vit_small_patch16_224", *words)
    assert "tiny.safetensors" in text
    state["blocks.3.attn.qkv.weight"][0, 0] = torch.nan
    save_file(state, tmp_path / "nan.safetensors")
    text = fails(capsys, "attention", tmp_path / "nan.safetensors", "--arch", "vit_tiny_patch16_224", *words)
    assert "blocks.3.attn.qkv.weight" in text


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("more", [(), ("--limit", 5)], ids=["nothing new", "a part anew"])
def test_a_full_disk_leaves_what_was_there(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    photos: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[object, ...],
) -> None:
    out = tmp_path / "out"
    words = ("attention", MODEL, "--images", photos, "--size", 64, "--out", out, "--figures", "none")
    run(*words)
    before = files_in(out)
    assert {path.name for path in before} >= {"results.parquet", "maps.safetensors", "provenance.json", "report.html"}

    def full(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vitscope.core.files.os.replace", full)
    text = fails(capsys, *words, *more)
    assert "No space left on device" in text
    assert "earlier files stay" in text
    assert files_in(out) == before


def test_limit_is_a_seeded_choice(tmp_path: Path, photos: Path) -> None:
    words = ("attention", MODEL, "--images", photos, "--size", 64, "--limit", 5)
    run(*words, "--out", tmp_path / "a")
    run(*words, "--out", tmp_path / "b")
    first, second = Results.load(tmp_path / "a"), Results.load(tmp_path / "b")
    assert first.table.equals(second.table)
    assert first.provenance[0]["count"] == 5
    maps = load_file(tmp_path / "a" / "maps.safetensors")
    assert all(torch.equal(value, second.maps[name]) for name, value in maps.items())


def test_inputs_that_are_not_square(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Height first: two rows of three patches of 16 pixels."""
    words = ("attention", MODEL, "--images", make_photos(tmp_path / "photos", count=3), "--out", tmp_path / "out")
    run(*words, "--size", 32, 48, "--no-page", "--figures", "none")
    maps = load_file(tmp_path / "out" / "maps.safetensors")
    assert maps["Untrained vit_tiny_patch16_224/cls"].shape == (12, 3, 2, 3)
    assert "--size takes one number or two" in fails(capsys, *words, "--size", 32, 48, 64)


def test_models_command(capsys: pytest.CaptureFixture[str]) -> None:
    run("models", "moco*")
    text = capsys.readouterr().out
    assert "moco-b16" in text
    assert "dino-b16" not in text
    assert "no model matches" in fails(capsys, "models", "alexnet*")


COMMANDS = [
    "demo",
    "init",
    "run",
    "results",
    "models",
    "attention",
    "features",
    "extract",
    "tasks",
    "menagerie",
    "teach",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    run(command, "--help")
    assert "Usage" in capsys.readouterr().out
