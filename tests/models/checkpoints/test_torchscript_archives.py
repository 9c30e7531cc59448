"""OpenAI publishes CLIP as TorchScript: its tensors are read, its program is not run."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import load_checkpoint, read_checkpoint

ARCHITECTURE = "vit_base_patch16_clip_quickgelu_224"


class Holder(nn.Module):
    """A tree of modules with given parameters and buffers; its program only matters in that it must not run."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def tree_of(state: dict[str, Tensor]) -> nn.Module:
    root = Holder()
    for key, value in state.items():
        *path, name = key.split(".")
        node: nn.Module = root
        for step in path:
            if not hasattr(node, step):
                node.add_module(step, Holder())
            node = getattr(node, step)
        if value.is_floating_point():
            node.register_parameter(name, nn.Parameter(value))
        else:
            node.register_buffer(name, value)
    return root


@pytest.fixture
def archive(official: SimpleNamespace, tmp_path: Path) -> tuple[Path, dict[str, Tensor]]:
    weights = {k: v.half().float() for k, v in official.randomised(official.tiny(ARCHITECTURE)).state_dict().items()}
    full = official.clip_full(weights, archive=True)
    half = {k: v.half() if v.is_floating_point() else v for k, v in full.items()}
    path = tmp_path / "ViT-T-8.pt"
    torch.jit.save(torch.jit.script(tree_of(half)), str(path))
    return path, weights


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    new = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(new, "w") as after:
        for name in before.namelist():
            after.writestr(name, change(name, before.read(name)))
    return new


def test_the_tensors_are_those_of_the_program(archive: tuple[Path, dict[str, Tensor]]) -> None:
    path, _ = archive
    expected = torch.jit.load(str(path)).state_dict()
    found = read_checkpoint(path)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert {value.dtype for value in found.values()} == {torch.float16, torch.int64}


def test_the_image_tower_is_loaded(official: SimpleNamespace, archive: tuple[Path, dict[str, Tensor]]) -> None:
    path, weights = archive
    module = official.tiny(ARCHITECTURE)
    report = load_checkpoint(module, path)
    assert report.family == "clip"
    assert report.note == ""
    state = module.state_dict()
    assert all(torch.equal(state[key], weights[key]) for key in weights)
    with pytest.raises(BadCheckpoint, match="QuickGELU"):
        load_checkpoint(official.tiny("vit_base_patch16_clip_224"), path)


def test_its_program_is_never_looked_at(archive: tuple[Path, dict[str, Tensor]]) -> None:
    path, _ = archive
    broken = rewritten(path, lambda name, content: b"not a program" if "/code/" in name else content)
    with pytest.raises(RuntimeError):
        torch.jit.load(str(broken))
    assert read_checkpoint(broken).keys() == read_checkpoint(path).keys()


@pytest.mark.parametrize("call", ["os system", "builtins exec", "torch load", "torch._utils _rebuild_wrapper_subclass"])
def test_other_names_in_its_tree_are_refused(
    archive: tuple[Path, dict[str, Tensor]], call: str, tmp_path: Path
) -> None:
    path, _ = archive
    sprung = tmp_path / "sprung"
    module, name = call.split()
    command = f"touch {sprung}" if module == "os" else f"open({str(sprung)!r}, 'w')"
    argument = io.BytesIO()
    pickle.Pickler(argument, protocol=2).dump(command)
    hostile = f"c{module}\n{name}\n".encode() + argument.getvalue()[2:-1] + b"\x85R."
    evil = rewritten(path, lambda n, content: b"\x80\x02" + hostile if n.endswith("/data.pkl") else content)
    with pytest.raises(BadCheckpoint, match=rf"names {module}\.{name}.*state_dict"):
        read_checkpoint(evil)
    assert not sprung.exists()


def test_a_damaged_tree_or_tensor(archive: tuple[Path, dict[str, Tensor]]) -> None:
    path, _ = archive
    half_tree = rewritten(
        path, lambda name, content: content[: len(content) // 2] if name.endswith("data.pkl") else content
    )
    with pytest.raises(BadCheckpoint, match="TorchScript"):
        read_checkpoint(half_tree)
    short = rewritten(path, lambda name, content: content[:2] if "/data/" in name and len(content) > 100 else content)
    with pytest.raises(BadCheckpoint, match="shorter than promised"):
        read_checkpoint(short)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 200])
    with pytest.raises(BadCheckpoint, match="damaged"):
        read_checkpoint(path)
