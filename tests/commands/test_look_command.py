"""`vitscope look`: a user's own photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vitscope.cli import main

MODEL = "random:vit_tiny_patch16_224"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)).save(path)
    return path


def test_pictures_of_a_photo_and_of_a_point(photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--model", MODEL, "--model", "random:deit_tiny_patch16_224", "--size", "64", "--at", "45,30"]
    main(["look", str(photo), str(photo), *words, "--out", str(out)])
    written = {path.stem for path in out.glob("*.png")}
    assert "pca-models" in written
    for start in ("pca-", "alike-", "looks-"):
        assert sum(name.startswith(start) and name != "pca-models" for name in written) == 2
    assert all(Image.open(path).size[0] > 200 for path in out.glob("*.png"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "45"], "is no point"),
        (["--at", "900,3"], "is not in the photo"),
        (["--at", "1,3"], "is cut off"),
    ],
)
def test_points_that_are_none(
    photo: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["look", str(photo), "--model", MODEL, "--size", "32", *words, "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_what_is_no_photo_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jpg").write_text("nothing")
    with pytest.raises(SystemExit) as stopped:
        main(["look", str(tmp_path / "a.jpg"), "--model", MODEL, "--size", "32"])
    assert stopped.value.code == 2
    assert "cannot show" in capsys.readouterr().err
