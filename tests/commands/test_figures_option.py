"""How much is drawn: nothing, the images of the page, or figures for papers too; by the file or by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import make_photos
from vitscope.cli import main

IMAGE = "data:image/webp"  # how the page holds what features look like


@pytest.mark.parametrize(
    ("line", "words", "drawn"),
    [
        ("", (), "page"),
        ("", ("--figures", "none"), "none"),
        ('figures = "none"', (), "none"),
        ('figures = "none"', ("--figures", "all"), "all"),
    ],
)
def test_what_was_asked_for_is_drawn(tmp_path: Path, line: str, words: tuple[str, ...], drawn: str) -> None:
    make_photos(tmp_path / "photos", count=4)
    (tmp_path / "study.toml").write_text(
        f'title = "t"\nout = "out"\nbaselines = false\nanalyses = ["pictures", "tokens"]\n{line}\n'
        '[[models]]\nname = "random:zoo/dino"\n[data.images]\npath = "photos"\n'
    )
    main(["run", str(tmp_path / "study.toml"), *words])
    assert (IMAGE in (tmp_path / "out/report.html").read_text()) == (drawn != "none")
    assert {path.suffix for path in tmp_path.glob("out/figures/pca-*")} == (
        {".png", ".svg", ".pdf"} if drawn == "all" else set()
    )
