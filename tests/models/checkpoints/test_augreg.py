"""Google's `.npz` files: every weight where timm's own loader puts it, and nothing in them is run."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.support.weights import augreg_arrays
from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import load_checkpoint
from vitscope.models.spec import resolve

VIT = "vit_base_patch16_224"


@pytest.fixture
def arrays(official: SimpleNamespace) -> dict[str, np.ndarray]:
    return augreg_arrays(official.randomised(official.tiny(VIT)).state_dict(), heads=3)


@pytest.mark.parametrize("prefix", ["", "opt/target/"])
def test_weights_are_where_timm_puts_them(
    official: SimpleNamespace, arrays: dict[str, np.ndarray], tmp_path: Path, prefix: str
) -> None:
    path = tmp_path / "weights.npz"
    np.savez(path, **{prefix + key: value for key, value in arrays.items()})  # type: ignore[arg-type]
    ours, theirs = official.tiny(VIT), official.tiny(VIT)
    report = load_checkpoint(ours, path)
    theirs.load_pretrained(str(path), prefix)
    state = theirs.state_dict()
    assert set(report.used) == set(state)
    assert all(torch.equal(value, state[key]) for key, value in ours.state_dict().items())
    assert report.family == "augreg"
    assert set(report.dropped) == {f"{prefix}head/kernel", f"{prefix}head/bias"}


def test_the_heads_of_the_file_count(official: SimpleNamespace, arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(BadCheckpoint, match="3 attention heads"):
        load_checkpoint(official.tiny(VIT, num_heads=4), tmp_path / "w.npz")


def test_its_normalisation_comes_with_it(tmp_path: Path) -> None:
    import timm

    module = timm.create_model("deit_tiny_patch16_224", num_classes=0)  # whose own mean is ImageNet's
    np.savez(tmp_path / "w.npz", **augreg_arrays(module.state_dict(), heads=3))  # type: ignore[arg-type]
    spec = resolve(tmp_path / "w.npz", arch="deit_tiny_patch16_224")
    assert spec.preprocessing.mean == spec.preprocessing.std == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("damage", ["missing", "unknown", "objects", "short", "compressed", "cut"])
def test_damaged_and_hostile_archives(
    official: SimpleNamespace, arrays: dict[str, np.ndarray], tmp_path: Path, damage: str
) -> None:
    path, key = tmp_path / "w.npz", "Transformer/encoderblock_1/LayerNorm_0/scale"
    said = {
        "missing": key,
        "unknown": "1 keys are unknown: telepathy",
        "objects": "holds object",
        "short": "not as long as it says",
        "compressed": "numpy.savez",
        "cut": "damaged or incomplete",
    }
    if damage == "missing":
        del arrays[key]
    if damage == "unknown":
        arrays["telepathy"] = np.zeros(3, np.float32)
    if damage == "objects":
        arrays[key] = np.array([print], dtype=object)
    save = np.savez_compressed if damage == "compressed" else np.savez
    save(path, **arrays)  # type: ignore[arg-type]
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    if damage == "short":  # a header that asks for far more memory than there are numbers
        with zipfile.ZipFile(path) as before:
            content = {name: before.read(name) for name in before.namelist()}
        name = f"{key}.npy"
        content[name] = content[name].replace(b"(48,), }" + b" " * 8, b"(4800000000,), }")  # of the same length
        with zipfile.ZipFile(path, "w") as after:
            for entry, data in content.items():
                after.writestr(entry, data)
    with pytest.raises(BadCheckpoint, match=said[damage]):
        load_checkpoint(official.tiny(VIT), path)
