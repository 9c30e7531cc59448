"""Pipes, devices, folders and endless files in the place of every file that is read: told at once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.campaign import SECONDS
from tests.hostile.test_weights import tiny
from tests.hostile.test_written import results
from tests.support.hostile import evil_files
from vitscope.core.errors import VitscopeError
from vitscope.core.files import TensorFile
from vitscope.core.results import Results
from vitscope.data.davis import open_videos
from vitscope.data.decode import decode_image, decode_mask
from vitscope.data.folders import open_images
from vitscope.data.labels import read_labels
from vitscope.data.masks import open_masks
from vitscope.data.openers import open_dataset
from vitscope.data.retrieval import open_retrieval
from vitscope.data.safe_pickle import read_plain_pickle
from vitscope.data.segmentation import open_segmentation
from vitscope.data.spair import open_keypoints
from vitscope.features.extraction import load_features
from vitscope.models.card import read_card
from vitscope.models.checkpoints import load_checkpoint
from vitscope.pipeline.study import read_study
from vitscope.teaching.checkpoint import load_checkpoint as load_training
from vitscope.teaching.config import TrainConfig

EVIL: dict[str, Callable[[Path], Any]] = {
    "card": read_card,
    "study": read_study,
    "teaching": TrainConfig.read,
    "labels": read_labels,
    "list": open_images,
    "pairs": open_keypoints,
    "masks": open_masks,
    "image": decode_image,
    "mask": decode_mask,
    "weights": lambda path: load_checkpoint(tiny(), path),
    "pickle": read_plain_pickle,
    "tensors": TensorFile,
    "results": Results.load,
    "video": open_videos,
    "retrieval": open_retrieval,
    "segmentation": open_segmentation,
    "any": open_dataset,
    "features": load_features,
    "training": lambda path: load_training(path, {}),
}
SUFFIXES = {"labels": ".csv", "list": ".txt", "pairs": ".json", "masks": ".json", "image": ".png", "mask": ".png"}


@pytest.mark.parametrize("name", EVIL)
def test_pipes_devices_folders_and_endless_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, path in evil_files(tmp_path / "evil", SUFFIXES.get(name, ".toml")).items():
        start = time.monotonic()
        try:
            EVIL[name](path)
        except VitscopeError:
            pass
        except Exception as error:
            pytest.fail(f"{kind}: {type(error).__name__}: {error}")
        else:
            # an empty file of settings has its defaults
            assert (name, kind) == ("teaching", "empty")
        assert time.monotonic() - start < SECONDS, kind
    assert not (tmp_path / "sprung").exists()


def test_results_with_something_else_in_the_place_of_a_file(tmp_path: Path) -> None:
    results(tmp_path)
    for name in ("provenance.json", "results.parquet", "pairs.parquet", "maps.safetensors"):
        for kind, evil in evil_files(tmp_path / name.replace(".", "-")).items():
            if kind in ("user", "long", "half", "loop"):
                continue  # no file could be put there, or none that a link leads to
            run = tmp_path / "copy"
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(tmp_path / "run", run)
            (run / name).unlink()
            (run / name).symlink_to(evil)
            with pytest.raises(VitscopeError):
                Results.load(run)
