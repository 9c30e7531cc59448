"""`teach` from a folder of images to a model card that loads."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.errors import BadCheckpoint, BadData, VitscopeError
from vitscope.models import load
from vitscope.teaching import teach
from vitscope.teaching.card import as_toml
from vitscope.teaching.monitor import knn_accuracy, layer_features

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
def folder(tmp_path):
    images = squares(count=40)
    assert images.labels is not None
    for i, (pixels, label) in enumerate(zip(images.pixels, images.labels.tolist(), strict=True)):
        path = tmp_path / "squares" / f"class {label}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return tmp_path / "squares"


def test_teaching_learns_writes_a_card_and_resumes(folder, tmp_path, capsys):
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

    backbone = load(str(card))
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
        teach("fs", folder, ARCH, out, epochs=1, **SMALL)


@pytest.mark.parametrize(("key", "settings"), [("mae", {"decoder_width": 16}), ("clip", {"text_depth": 1})])
def test_other_teachers_run_from_a_folder(folder, tmp_path, key, settings):
    said = {path.relative_to(folder).as_posix(): path.parent.name for path in folder.rglob("*.png")}
    (folder / "captions.json").write_text(json.dumps(said))
    card = teach(key, folder, ARCH, tmp_path / "run", epochs=1, settings=settings, **SMALL)
    assert load(str(card)).teaching == key


@pytest.mark.parametrize(
    ("key", "changes", "message"),
    [
        ("clip", {}, "needs captions"),
        ("simclr", {}, "unknown teacher 'simclr': choose one of fs, clip, dino, moco, mae, beit"),
        ("moco", {"batch": 1}, "batch size of 2 or more"),
        ("moco", {"settings": {"speed": 3}}, "no setting 'speed'"),
        ("fs", {"batch": 0}, "must be positive"),
        ("fs", {"size": 32}, "smaller than the 32x32"),
        ("fs", {"options": {"colour": "red"}}, "cannot create"),
    ],
)
def test_bad_wishes_are_refused_in_a_sentence(folder, tmp_path, key, changes, message):
    with pytest.raises(VitscopeError, match=message):
        teach(key, folder, ARCH, tmp_path / "run", **{**SMALL, **changes})


def test_supervision_needs_labels(folder, tmp_path):
    with pytest.raises(BadData, match="one subfolder per class"):
        teach("fs", folder / "class 1", ARCH, tmp_path / "run", **SMALL)


def test_architectures_that_are_no_plain_vits_are_refused(folder, tmp_path):
    for arch in ("resnet18", "no_such_network"):
        with pytest.raises(VitscopeError, match=r"ViT|vit_"):
            teach("fs", folder, arch, tmp_path / "run", **{**SMALL, "options": {}, "size": None})


def test_layer_features_are_the_blocks_outputs(vit):
    vit.eval()
    images = torch.randint(0, 256, (5, 3, 16, 16), dtype=torch.uint8)
    tokens = vit.forward_intermediates(images / 127.5 - 1, intermediates_only=True, output_fmt="NLC",
                                       return_prefix_tokens=True)  # fmt: skip
    features = layer_features(vit, images, batch=2)
    for layer, (patches, prefix) in enumerate(tokens):
        torch.testing.assert_close(features[layer, 0], prefix[:, 0])
        torch.testing.assert_close(features[layer, 1], patches.mean(1))


def test_knn_votes_are_weighted_by_similarity():
    angles = torch.tensor([0.0, 0.1, 0.2, 1.0, 1.1])
    bank = torch.stack([angles.cos(), angles.sin()], 1)
    labels = torch.tensor([0, 0, 0, 1, 1])
    asked = torch.tensor([0.15, 1.04])
    queries = torch.stack([asked.cos(), asked.sin()], 1)
    # all five vote (fewer than 20): the second query is nearer to the two of class 1 than to the three of class 0
    votes = [sum(np.exp(np.cos(a - 1.04) / 0.07) for a in angles[labels == c].tolist()) for c in (0, 1)]
    assert votes[1] > votes[0]
    assert knn_accuracy(bank, labels, queries, torch.tensor([0, 1])) == 1.0
    assert knn_accuracy(bank, labels, queries, torch.tensor([1, 1])) == 0.5


def test_cards_survive_strange_names_and_nested_tables():
    document = {
        "name": 'a "quoted" \\ name\nwith ünïcode \x00',
        "numbers": [1, 2.5, 1e-9],
        "rows": [{"a": 1, "b c": True}] * 9,
        "table": {"x": 1, "inner": {"y": ["z"]}, "empty": {}},
    }
    assert tomllib.loads(as_toml(document)) == document
