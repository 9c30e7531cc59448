"""Files that are damaged, something else, or dangerous: each gets one sentence, and nothing in them runs."""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from vitscope.core.errors import BadCheckpoint, MissingWeights
from vitscope.models.checkpoints import load_checkpoint, read_checkpoint

WEIGHTS = {"a": torch.arange(2000.0), "b": torch.ones(3)}


def refused(path: Path, match: str, error: type[Exception] = BadCheckpoint) -> str:
    with pytest.raises(error, match=match) as caught:
        read_checkpoint(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b"\n  <html lang='en'>Sign in</html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1\n", "git lfs pull"),
        (b"hello, I am not a network", "not a weights file"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'", "not a weights file"),
        (b'{"hello": 1}', "without an index"),
        (b"{" * 5000, "without an index"),
        (b"[1, 2", "not a weights file"),
        (b"\x80", "damaged"),
        (b"\x80\x02}q\x00.", "damaged"),
        (bytes(4096), "not a weights file"),
        ((1 << 40).to_bytes(8, "little") + b'{"a"', "not a weights file"),
        ((1 << 20).to_bytes(8, "little") + b'{"a"', "damaged"),
    ],
)
def test_files_that_are_no_weights(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(content)
    refused(path, match)


def test_nothing_there_and_a_folder(tmp_path: Path) -> None:
    refused(tmp_path / "missing.pth", "no weights file", MissingWeights)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert "model.safetensors" in refused(tmp_path, "is a folder")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(self: Path, *_args: Any, **_kwargs: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", closed)  # the superuser may read everything: no file mode would refuse it
    refused(tmp_path / "secret.pth", "cannot read .*Permission denied")


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_files(tmp_path: Path, kind: str, share: float) -> None:
    path = tmp_path / "weights"
    if kind == "safetensors":
        save_file(WEIGHTS, path)
    else:
        torch.save(WEIGHTS, path, _use_new_zipfile_serialization=kind == "zip")
    assert set(read_checkpoint(path)) == {"a", "b"}
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    refused(path, "damaged")


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(path, "not of PyTorch")


def test_a_compressed_archive_could_be_a_bomb(tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "bomb"
    torch.save({"a": torch.zeros(1 << 18)}, source)
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
    assert path.stat().st_size < source.stat().st_size / 10
    refused(path, "is compressed")


class Trap:
    """Pickles as a call; whoever unpickles it freely leaves a file behind."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("where", ["alone", "in the settings", "in a state dict"])
def test_a_pickle_that_would_run_a_command_does_not(tmp_path: Path, legacy: bool, where: str) -> None:
    sprung = tmp_path / "sprung"
    for trap in (
        Trap(os.system, f"touch {sprung}"),
        Trap(exec, f"open({str(sprung)!r}, 'w')"),
        Trap(open, sprung, "w"),
    ):
        content: Any = {
            "alone": trap,
            "in the settings": {"model": WEIGHTS, "args": argparse.Namespace(x=trap)},
            "in a state dict": {"a": torch.ones(1), "b": trap},
        }[where]
        path = tmp_path / "evil.pth"
        torch.save(content, path, _use_new_zipfile_serialization=not legacy)
        refused(path, "refused")
        assert not sprung.exists()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["zip", "legacy", "torchscript"])
def test_a_pickle_that_never_ends(tmp_path: Path, kind: str) -> None:
    """Sixty tuples, each twice in the next, as the key of a dictionary: whoever hashes it never comes back."""
    endless: Any = ()
    for _ in range(60):
        endless = (endless, endless)
    stream = b"\x80\x02}" + pickle.dumps(endless, 2)[2:-1] + b"K\x01s."
    path, template = tmp_path / "endless.pth", tmp_path / "template"
    torch.save({}, template, _use_new_zipfile_serialization=kind != "legacy")
    if kind == "legacy":
        content = template.read_bytes()
        start = content.index(pickle.dumps({}, 2))  # after the magic number, the version and the system
        path.write_bytes(content[:start] + stream + content[start + len(pickle.dumps({}, 2)) :])
    else:
        with zipfile.ZipFile(template) as before, zipfile.ZipFile(path, "w") as after:
            for name in before.namelist():
                after.writestr(name, stream if name.endswith("data.pkl") else before.read(name))
            if kind == "torchscript":
                after.writestr("archive/constants.pkl", b"")
                after.writestr("archive/code/a.py", b"")
    refused(path, "stand for more objects than memory can hold")


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64])
def test_weights_are_floating_point_numbers(official: SimpleNamespace, tmp_path: Path, kind: torch.dtype) -> None:
    module = official.tiny("vit_base_patch16_224")
    path = tmp_path / "whole.pth"
    torch.save({name: (value * 100).to(kind) for name, value in module.state_dict().items()}, path)
    with pytest.raises(BadCheckpoint, match="floating-point numbers: save the weights in float32"):
        load_checkpoint(module, path)


def test_stand_ins_cannot_be_used_to_run_anything(tmp_path: Path) -> None:
    """A known setting's name called with hostile arguments: the real class is never involved."""
    sprung = tmp_path / "sprung"
    stream = io.BytesIO()
    stream.write(b"\x80\x02cargparse\nNamespace\n(X")
    stream.write(len(f"touch {sprung}").to_bytes(4, "little") + f"touch {sprung}".encode())
    stream.write(b"tR}(X\x01\x00\x00\x00aK\x01ub.")
    path = tmp_path / "odd.pth"
    template = tmp_path / "template"
    torch.save({}, template)
    with zipfile.ZipFile(template) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            after.writestr(name, stream.getvalue() if name.endswith("data.pkl") else before.read(name))
    refused(path, "holds a StandIn")
    assert not sprung.exists()


def test_official_settings_are_passed_over(tmp_path: Path) -> None:
    settings = argparse.Namespace(output_dir=Path("/somewhere"), lr=np.float64(0.1), blocks=np.arange(3))
    path = tmp_path / "checkpoint.pth"
    torch.save({"model": WEIGHTS, "args": settings, "optimizer": {"param_groups": [{"lr": np.float32(1)}]}}, path)
    content = read_checkpoint(path)
    assert torch.equal(content["model"]["a"], WEIGHTS["a"])
    assert not hasattr(content["args"], "output_dir")


class Custom:
    pass


def test_a_class_of_the_author_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    torch.save({"model": WEIGHTS, "config": Custom()}, path)
    assert "Custom" in refused(path, "state_dict")
    torch.save(torch.nn.Linear(2, 2), path)
    assert "torch.nn.modules.linear.Linear" in refused(path, "state_dict")


@pytest.mark.parametrize("content", [torch.ones(3), [torch.ones(3)], 7])
def test_no_named_tensors(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "tensor.pt"
    torch.save(content, path)
    refused(path, "not named tensors")


def test_a_plain_pickle_is_not_a_torch_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.pkl"
    path.write_bytes(pickle.dumps({"a": [1.0, 2.0]}, protocol=2))
    refused(path, "damaged")


def test_shards_are_read_together(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"b": torch.zeros(2)}, tmp_path / "model-00002-of-00002.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert torch.equal(read_checkpoint(index)["b"], torch.zeros(2))
    index.write_text(json.dumps({"weight_map": {**places, "c": places["a"]}}))
    refused(index, "promises 1 tensors")


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "..", "", "a/b", 3])
def test_shards_stay_in_their_folder(tmp_path: Path, name: Any) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(BadCheckpoint, match=r"outside its own folder|without an index"):
        read_checkpoint(index)


def test_an_index_that_names_itself(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": index.name}}))
    with pytest.raises(BadCheckpoint, match="is an index"):
        read_checkpoint(index)


def test_a_refused_file_leaves_the_module_as_it_was(official: SimpleNamespace, tmp_path: Path) -> None:
    module = official.randomised(official.tiny("vit_base_patch16_224"))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    broken = {**before, "norm.bias": torch.full((48,), torch.nan)}
    path = tmp_path / "broken.pth"
    torch.save({k: torch.randn_like(v) if k != "norm.bias" else v for k, v in broken.items()}, path)
    with pytest.raises(BadCheckpoint, match=r"NaN or infinity \(norm.bias\)"):
        load_checkpoint(module, path)
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())
