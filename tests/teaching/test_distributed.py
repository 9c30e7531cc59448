"""Two real processes (gloo) against one process with the joined batch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.models import load_model
from vitscope.teaching.augment import Augmentation
from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import CHECKPOINT, Run, Settings
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import create_teacher, recipe_for

# Chance is drawn by each process for itself, so only views without chance can be compared.
STILL = Augmentation(flip=0.0)
RECIPES: dict[str, dict[str, Any]] = {
    "fs": {"view": STILL},
    "clip": {"view": STILL, "text_depth": 1},
    "moco": {"view": STILL, "hidden": 16, "joint": 8},
    "dino": {"large": STILL, "small_crops": 0, "prototypes": 16, "balance": "centre"},
    "dino-sinkhorn": {"large": STILL, "small_crops": 0, "prototypes": 16, "balance": "sinkhorn"},
}


def teach_all(folder: Path, images: StoredImages) -> None:
    for name, changes in RECIPES.items():
        key = name.split("-")[0]
        if key == "clip":
            assert images.captions is not None
            images.captions = [captions[:1] for captions in images.captions]
        teacher = create_teacher(key, ARCH, OPTIONS, images, seed=0, recipe=recipe_for(key, changes))
        run = Run(folder / name, teacher, images, Schedule(2, 2), Settings(batch=8), identity={})
        run.optimiser.step = descend(run.optimiser.parameters)  # type: ignore[method-assign, assignment]
        run.train()


def descend(parameters: Sequence[torch.Tensor]) -> Callable[[float], None]:
    """Plain gradient descent: Muon and AdamW would blow up the rounding of gradients that are zero."""

    def step(_factor: float) -> None:
        with torch.no_grad():
            for parameter in parameters:
                assert parameter.grad is not None
                parameter -= 0.1 * parameter.grad
                parameter.grad = None

    return step


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from typing import Any
import torch
from tests.teaching.test_distributed import teach_all
from tests.teaching.tiny import ARCH, squares
from vitscope.teaching import teach
from vitscope.teaching.distributed import process_group
torch.set_num_threads(1)
folder = Path({folder!r})
options = dict(patch_size=4, embed_dim=16, depth=2, num_heads=2)
with process_group(torch.device("cpu")):
    teach_all(folder, squares())
    teach("mae", folder / "photos", ARCH, folder / "taught", size=16, options=options, batch=8, epochs=1, device="cpu")
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    for i, pixels in enumerate(squares().pixels):
        path = folder / "photos" / f"{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    script = folder / "script.py"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[2]), folder=str(folder)))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(script),
    ]
    subprocess.run(command, check=True, timeout=200)
    return folder


@pytest.mark.parametrize("name", list(RECIPES))
def test_two_processes_equal_one_with_the_joined_batch(
    two: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "RECIPES", {name: RECIPES[name]})
    teach_all(tmp_path, squares())
    one, both = (torch.load(folder / name / CHECKPOINT, weights_only=True)["teacher"] for folder in (tmp_path, two))
    start = create_teacher(
        name.split("-")[0],
        ARCH,
        OPTIONS,
        squares(),
        seed=0,
        recipe=recipe_for(name.split("-")[0], RECIPES[name]),
    ).state_dict()
    moved = max(float((one[k] - start[k]).abs().max()) for k in one if one[k].is_floating_point())
    apart = max(float((one[k] - both[k]).abs().max()) for k in one if one[k].is_floating_point())
    assert moved > 0.01
    assert apart < moved / 200


def test_the_command_teaches_with_two_processes(two: Path) -> None:
    assert load_model(two / "taught" / "model.toml").teaching == "mae"
    state = torch.load(two / "taught" / CHECKPOINT, weights_only=True)
    assert state["step"] == 6  # 46 of 48 images are taught, 8 at a time, 4 in each process
