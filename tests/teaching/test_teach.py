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
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.data.test_shards import pack
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


def test_tensorboard_is_told_each_point_once_although_the_run_was_stopped(folder: Path, tmp_path: Path) -> None:
    """Read back by TensorBoard itself."""
    out = tmp_path / "run"
    teach("fs", folder, ARCH, out, epochs=2, stop_after=0.0, **SMALL)
    teach("fs", folder, ARCH, out, epochs=2, looks=1, **SMALL)
    told = EventAccumulator(str(out / "tensorboard")).Reload()
    points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [event.step for event in told.Scalars("loss")] == [point["step"] for point in points]
    assert [event.value for event in told.Scalars("loss")] == pytest.approx([point["loss"] for point in points])
    assert told.Scalars("knn/held_out/cls")[-1].value == pytest.approx(max(points[-1]["knn"]["held_out"]["cls"]))


def test_weights_and_biases_must_be_there_to_be_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # as where it is not installed
    with pytest.raises(VitscopeError, match="pip install wandb"):
        teach("fs", folder, ARCH, tmp_path / "run", epochs=1, wandb="beasts", **SMALL)
    assert not (tmp_path / "run" / "model.toml").exists()


def test_shards_teach_what_a_folder_teaches(folder: Path, tmp_path: Path) -> None:
    """The same images in the same order: the same weights to the last bit. With classes they teach labels too."""
    images = {f"{i:02}": path for i, path in enumerate(sorted(folder.rglob("*.png")))}
    (tmp_path / "flat").mkdir()
    for name, path in images.items():
        (tmp_path / "flat" / f"{name}.png").write_bytes(path.read_bytes())
    for shard in (0, 1):
        mine = [name for name in images if int(name) // 20 == shard]
        pixels = {f"{name}.png": images[name].read_bytes() for name in mine}
        classes = {f"{name}.cls": images[name].parent.name[-1].encode() for name in mine}
        pack(tmp_path / "shards" / f"{shard}.tar", pixels)
        pack(tmp_path / "classes" / f"{shard}.tar", dict(sorted({**pixels, **classes}.items())))
    taught = [
        load_file(
            teach("mae", tmp_path / name, ARCH, tmp_path / f"run {name}", epochs=1, **SMALL).with_suffix(".safetensors")
        )
        for name in ("flat", "shards")
    ]
    assert all(torch.equal(taught[0][name], taught[1][name]) for name in taught[0])
    curve = tomllib.loads(teach("fs", tmp_path / "classes", ARCH, tmp_path / "fs", epochs=24, **SMALL).read_text())
    losses = [point["loss"] for point in curve["provenance"]["learning_curve"]]
    assert losses[-1] < 0.7 * losses[0]
