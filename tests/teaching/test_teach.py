"""`teach` from a folder of images to a model card that loads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.core.errors import BadCheckpoint, BadData, VitscopeError
from vitscope.models import load_model
from vitscope.teaching import teach
from vitscope.teaching.card import as_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SMALL: dict[str, Any] = {
    "options": {k: v for k, v in OPTIONS.items() if k != "img_size"},
    "size": 16,
    "batch": 8,
    "workers": 0,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = squares(count=40)
    assert images.labels is not None
    for i, (pixels, label) in enumerate(zip(images.pixels, images.labels.tolist(), strict=True)):
        path = tmp_path / "squares" / f"class {label}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return tmp_path / "squares"


def test_teaching_learns_writes_a_card_and_resumes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    first = teach("fs", folder, ARCH, out, epochs=24, stop_after=0.0, **SMALL)
    assert tomllib.loads(first.read_text())["provenance"]["images_seen"] == 0
    card = teach("fs", folder, ARCH, out, epochs=24, **SMALL)
    written = tomllib.loads(card.read_text())
    assert written["teaching"] == "fs"
    assert written["provenance"]["complete"] is True
    assert written["provenance"]["images_seen"] == 24 * 38 + (-24 * 38) % 8
    curve = written["provenance"]["learning_curve"]
    assert curve[-1]["loss"] < 0.7 * curve[0]["loss"]
    assert "knn_held_out" in curve[-1]
    assert "loss" in capsys.readouterr().err

    backbone = load_model(card)
    assert (backbone.depth, backbone.layout.grid, backbone.teaching) == (2, (4, 4), "fs")
    weights = load_file(out / "model.safetensors")
    assert torch.equal(backbone.module.state_dict()["blocks.1.mlp.fc2.weight"], weights["blocks.1.mlp.fc2.weight"])
    # going on when everything is done changes nothing
    assert load_file(teach("fs", folder, ARCH, out, epochs=24, **SMALL).with_suffix(".safetensors")).keys()
    with pytest.raises(BadCheckpoint, match="made with teacher 'fs', not 'mae'"):
        teach("mae", folder, ARCH, out, epochs=1, **SMALL)
    with pytest.raises(BadCheckpoint, match="options"):
        teach("fs", folder, ARCH, out, epochs=1, **{**SMALL, "options": {**SMALL["options"], "depth": 3}})
    next(folder.rglob("*.png")).unlink()
    with pytest.raises(BadCheckpoint, match="made with data"):
        teach("fs", folder, ARCH, out, epochs=24, **SMALL)


@pytest.mark.parametrize(("key", "settings"), [("mae", {"decoder_width": 16}), ("clip", {"text_depth": 1})])
def test_other_teachers_run_from_a_folder(folder: Path, tmp_path: Path, key: str, settings: dict[str, Any]) -> None:
    said = {path.relative_to(folder).as_posix(): path.parent.name for path in folder.rglob("*.png")}
    (folder / "captions.json").write_text(json.dumps(said))
    card = teach(key, folder, ARCH, tmp_path / "run", epochs=1, recipe=settings, **SMALL)
    assert load_model(card).teaching == key


@pytest.mark.parametrize(
    ("key", "changes", "message"),
    [
        ("clip", {}, "needs captions"),
        ("simclr", {}, "unknown teacher 'simclr': choose one of fs, clip, dino, moco, mae, beit"),
        ("moco", {"batch": 1}, "batch size of 2 or more"),
        ("moco", {"recipe": {"speed": 3}}, "no setting 'speed'"),
        ("fs", {"batch": 0}, "batch is 0: input should be greater than or equal to 1"),
        ("fs", {"size": 32}, "smaller than the 32x32"),
        ("fs", {"options": {"colour": "red"}}, "cannot create"),
    ],
)
def test_bad_wishes_are_refused_in_a_sentence(
    folder: Path, tmp_path: Path, key: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(VitscopeError, match=message):
        teach(key, folder, ARCH, tmp_path / "run", **{**SMALL, **changes})


def test_supervision_needs_labels(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="one subfolder per class"):
        teach("fs", folder / "class 1", ARCH, tmp_path / "run", **SMALL)


def test_architectures_that_are_no_plain_vits_are_refused(folder: Path, tmp_path: Path) -> None:
    for arch in ("resnet18", "no_such_network"):
        with pytest.raises(VitscopeError, match=r"ViT|vit_"):
            teach("fs", folder, arch, tmp_path / "run", **{**SMALL, "options": {}, "size": None})


def test_cards_survive_strange_names_and_nested_tables() -> None:
    document = {
        "name": 'a "quoted" \\ name\nwith ünïcode \x00',
        "numbers": [1, 2.5, 1e-9],
        "rows": [{"a": 1, "b c": True}] * 9,
        "table": {"x": 1, "inner": {"y": ["z"]}, "empty": {}},
    }
    assert tomllib.loads(as_toml(document)) == document
