"""Weights in every format that is read, and pickles: nothing is run, and no weight is another than it was."""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import timm
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.hostile.campaign import Case, campaign
from tests.models.checkpoints import conftest as formats
from tests.support.hostile import changed_bytes, changed_value, evil_value, json_text
from tests.support.weights import augreg_arrays
from vitscope.data.safe_pickle import Numbers, read_plain_pickle
from vitscope.models.checkpoints import load_checkpoint


def tiny() -> nn.Module:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"img_size": 32, "embed_dim": 16, "depth": 1, "num_heads": 2, "num_classes": 0}
    return timm.create_model("vit_tiny_patch16_224", **shape)


def checkpoints(root: Path, save: Callable[[dict[str, torch.Tensor], Path], None], read: Callable[[Path], Any]) -> Case:
    module, path = tiny(), root / "weights"
    save(module.state_dict(), path)
    content = path.read_bytes()

    def case(random: Random) -> None:
        path.write_bytes(changed_bytes(content, random))
        load_checkpoint(module, path)
        state = read(path)  # the library's own reader
        for name, value in module.state_dict().items():
            assert value.is_floating_point()
            assert bool(value.isfinite().all())
            assert torch.equal(value, state[name].to(value.dtype)), name

    return case


def safetensors_weights(root: Path) -> Case:
    return checkpoints(root, lambda state, path: save_file(state, path), load_file)


def zipped_weights(root: Path) -> Case:
    return checkpoints(root, torch.save, lambda path: torch.load(path, weights_only=True))


def legacy_weights(root: Path) -> Case:
    def save(state: dict[str, torch.Tensor], path: Path) -> None:
        torch.save(state, path, _use_new_zipfile_serialization=False)

    return checkpoints(root, save, lambda path: torch.load(path, weights_only=True))


def sharded_weights(root: Path) -> Case:
    module = tiny()
    state = module.state_dict()
    save_file(state, root / "part.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(state, "part.safetensors")}

    def case(random: Random) -> None:
        (root / "model.safetensors.index.json").write_text(json_text(changed_value(index, random)))
        load_checkpoint(module, root / "model.safetensors.index.json")
        for name, value in module.state_dict().items():
            assert torch.equal(value, state[name])

    return case


def torchscript_weights(root: Path) -> Case:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    path = root / "net.pt"
    torch.jit.script(Net()).save(str(path))
    content = path.read_bytes()

    def case(random: Random) -> None:
        if random.random() < 0.5:  # the pickle of the module tree alone, so that the archive around it stays whole
            with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(path, "w") as after:
                for name in before.namelist():
                    data = before.read(name)
                    after.writestr(name, changed_bytes(data, random) if name.endswith("data.pkl") else data)
        else:
            path.write_bytes(changed_bytes(content, random))
        load_checkpoint(tiny(), path)
        raise AssertionError("a network of another architecture was loaded")

    return case


def npz_weights(root: Path) -> Case:
    """Google's archives of arrays: of another order of bytes or axes they are the same, of another kind refused."""
    module, path = tiny(), root / "weights.npz"
    arrays = augreg_arrays(module.state_dict(), heads=2)
    arrays = {name: values.copy() for name, values in arrays.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]
    content = path.read_bytes()
    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        **{
            str(kind): (lambda a, kind=kind: a.astype(kind)) for kind in (">f4", "f8", "i4", "u1", "?", "c8", "U4", "O")
        },
        "columns": np.asfortranarray,
        "dates": lambda a: np.zeros(a.shape, "M8[s]"),
        "fields": lambda a: np.zeros(a.shape, [("a", "f4")]),
        "nan": lambda a: a * np.nan,
        "shape": lambda a: a[None],
        "transposed": lambda a: a.T,
        "empty": lambda a: a[:0],
        "endless": lambda a: np.zeros((0, 1 << 40), "f4"),
    }

    def case(random: Random) -> None:
        way = random.random()
        if way < 0.3:
            path.write_bytes(changed_bytes(content, random))
        elif way < 0.6:  # the header of one array, in an archive that is whole
            with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(path, "w") as after:
                evil = random.choice(before.namelist())
                for name in before.namelist():
                    data = before.read(name)
                    after.writestr(name, changed_bytes(data[:128], random) + data[128:] if name == evil else data)
        else:
            name, kind = random.choice(list(arrays)), random.choice(list(kinds))
            new = random.choice((name, name, f"{name}/x", "../x", "", "Transformer/encoderblock_9999999/x"))
            np.savez(path, **{**arrays, new: kinds[kind](arrays[name])})
        load_checkpoint(module, path)
        with np.load(path) as theirs:  # the library's own reader
            for name, value in augreg_arrays(module.state_dict(), heads=2).items():
                if not name.startswith("head/"):
                    assert np.isfinite(value).all()
                    assert np.array_equal(value, theirs[name]), name

    return case


# One tensor as what it should not be: only floating-point numbers, finite and of the right shape, are weights.
ODD: dict[str, Callable[[torch.Tensor], Any]] = {
    **{str(kind): (lambda t, kind=kind: t.to(kind)) for kind in (torch.int8, torch.uint8, torch.int64, torch.bool)},
    **{str(kind): (lambda t, kind=kind: t.to(kind)) for kind in (torch.complex64, torch.float8_e4m3fn)},
    "sparse": lambda t: t.to_sparse(),
    "meta": lambda t: t.to("meta"),
    "nan": lambda t: t * math.nan,
    "infinite": lambda t: t / 0,
    "shape": lambda t: t[None],
    "empty": lambda t: t[:0],
    "text": lambda t: "weights",
    "expanded": lambda t: torch.zeros(1).expand(1 << 40),
}


def odd_tensors(root: Path) -> Case:
    module, path = tiny(), root / "weights.pth"
    state = module.state_dict()

    def case(random: Random) -> None:
        name, kind = random.choice(list(state)), random.choice(list(ODD))
        torch.save({**state, name: ODD[kind](state[name])}, path)
        load_checkpoint(module, path)
        raise AssertionError(f"{name} was taken as {kind}")

    return case


def official_files(root: Path) -> Case:
    """Files as the projects save them, with one thing in them odd or missing: heads and optimisers do not matter."""
    vit, clip, dinov2 = "vit_base_patch16_224", "vit_base_patch16_clip_quickgelu_224", "vit_base_patch14_dinov2"
    makers: tuple[tuple[str, Callable[[dict[str, torch.Tensor]], Any]], ...] = (
        (vit, formats.dino_training_file),
        (vit, formats.moco_training_file),
        (clip, formats.clip_image_tower),
        (clip, lambda state: formats.clip_full(state, archive=False)),
        (dinov2, formats.dinov2_official),
    )
    files = []
    for architecture, make in makers:
        module = formats.randomised(formats.tiny(architecture))
        state = {name: value.clone() for name, value in module.state_dict().items()}
        files.append((module, state, make(state)))

    def odd(value: Any, random: Random) -> Any:
        if not isinstance(value, dict) or not value:
            return ODD[random.choice(list(ODD))](value) if isinstance(value, torch.Tensor) else evil_value(random)
        key = random.choice(list(value))
        rest = {name: inner for name, inner in value.items() if name != key}
        if random.random() < 0.1 and not isinstance(value[key], dict):  # without its teacher, DINO's student is right
            return rest
        return {**rest, key: odd(value[key], random)}

    def case(random: Random) -> None:
        module, state, file = random.choice(files)
        torch.save(odd(file, random), root / "weights.pth")
        load_checkpoint(module, root / "weights.pth")
        for name, value in module.state_dict().items():
            assert torch.allclose(value, state[name], atol=1e-3, rtol=1e-3), name  # CLIP's are of half precision

    return case


def pickles(root: Path) -> Case:
    truth = {"imlist": ["a", "b"], "gnd": [{"bbx": np.arange(4.0), "easy": np.array([1]), "junk": [0]}], "x": (1, None)}
    contents = [pickle.dumps(truth, protocol) for protocol in (0, 2, 4, 5)]
    contents.append(b"cos\nsystem\n(S'touch sprung'\ntR.")
    path = root / "a.pkl"

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, (str, int, float, bytes, bool, tuple, type(None))) for key in value)
            value = list(value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                check(item)
        elif isinstance(value, Numbers):
            assert value.values is None or value.values.dtype.kind in "biuf"
        elif value is not None and not callable(value):
            assert isinstance(value, (str, bytes, bytearray, int, float, bool, complex)), type(value)

    def case(random: Random) -> None:
        path.write_bytes(changed_bytes(random.choice(contents), random))
        check(read_plain_pickle(path))

    return case


test_some_cases, test_many_cases = campaign(
    safetensors_weights,
    zipped_weights,
    legacy_weights,
    sharded_weights,
    torchscript_weights,
    npz_weights,
    odd_tensors,
    official_files,
    pickles,
)
