"""`vitscope heads` as a user meets it: finished runs, models, labels, figures, wrong words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.commands.test_attention_command import fails, run
from tests.conftest import make_photos
from vitscope.attention.kinds import KINDS
from vitscope.core.errors import VitscopeError
from vitscope.core.results import Label, Results, tidy
from vitscope.report.head_figures import head_values, heat_figure, scatter_figure, source_figures, title_of


def finished(folder: Path, *, model: str, teaching: str, architecture: str = "vit_base_patch16_224") -> Path:
    """A run of 12 layers of 12 heads, all global but the paper's offset head of FS, which looks down."""
    kind = torch.full((12, 12), KINDS.index("global"))
    kind[2, 6] = KINDS.index("offset local")
    offset = torch.zeros(12, 12, 2)
    offset[2, 6] = torch.tensor([1, 0])
    maps = {
        "kind": kind, "kind.offset": offset, "kind.axis": torch.zeros(12, 12, dtype=torch.long),
        "kind.stability": torch.ones(12, 12), "kind.late": torch.full((12, 12), -1),
        "cls": torch.rand(12, 12, 4, 4), "cells.cls": torch.rand(12, 12, 2), "from.top": torch.rand(12, 12, 4, 4),
    }  # fmt: skip
    label = Label(model, teaching, "photos", "made")
    values = torch.arange(144, dtype=torch.float64).view(12, 12) / 144
    rows = [
        tidy(label, "attention_distance", values, variant="grid"),
        tidy(label, "saliency_iou", 1 - values, variant="cls"),
        tidy(label, "saliency_iou", values, variant="spatial"),
        tidy(label, "saliency_iou", values * 0, variant="cls", protocol="paper"),
    ]
    results = Results(maps={f"{model}/{name}": value for name, value in maps.items()})
    results.extend(rows)
    results.provenance = [{"title": model, "model": model, "architecture": architecture, "digest": "made"}]
    results.save(folder)
    return folder


def test_it_lists_heads_and_checks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = finished(tmp_path / "run", model="fs-b16", teaching="fs")
    run("heads", made, "--check", "--kind", "offset local", "--out", tmp_path / "out")
    text = " ".join(capsys.readouterr().out.split())
    assert "fs-b16: 1 offset local, 143 global" in text
    assert "3 7 offset local: down 1.00 0.208" in text  # 0-based head 2 * 12 + 6 = 30 of 144
    assert "fs-b16: 1 of 4 heads are named as by the paper's authors for fs-b16 layer" in text
    assert "layer 3, head 7: offset local by eye, agrees" in text
    assert "layer 1, head 7: strict local by eye, is global here" in text


def test_other_weights_are_compared_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("heads", finished(tmp_path / "run", model="mine", teaching="fs"), "--check", "--kind", "cls-bound")
    assert "heads of other weights have other numbers" in " ".join(capsys.readouterr().out.split())


def test_nothing_to_compare_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = finished(tmp_path / "run", model="mine", teaching="none")
    run("heads", made, "--check", "--kind", "cls-bound")
    assert "nothing to compare: the paper's authors labelled heads of" in " ".join(capsys.readouterr().out.split())


def test_models_are_looked_at_and_figures_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos = make_photos(tmp_path / "photos", count=4, classes=1)
    out = tmp_path / "out"
    words = ("--heat", "attention_distance", "--against", "attention_distance", "entropy", "--maps", "mean", "bottom")
    run("heads", "random:vit_tiny_patch16_224", "--images", photos, "--size", 64, "--out", out, "--check", *words)
    text = capsys.readouterr().out
    assert "36 global" in text
    assert "nothing to compare" in " ".join(text.split())
    names = {path.name for path in (out / "figures").glob("*.png")}
    title = "untrained-vit-tiny-patch16-224"
    assert names == {
        "heat-attention-distance.png", "entropy-against-attention-distance.png",
        f"maps-from-mean-{title}.png", f"maps-from-bottom-{title}.png",
    }  # fmt: skip


def test_wrong_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = finished(tmp_path / "run", model="fs-b16", teaching="fs")
    assert "name a finished run" in fails(capsys, "heads")
    assert "say which images to look at" in fails(capsys, "heads", "random:vit_tiny_patch16_224")
    assert "there is no kind of head 'local'" in fails(capsys, "heads", made, "--kind", "local")
    assert "takes two measures at a time, not 1" in fails(capsys, "heads", made, "--against", "entropy")
    assert "no measure 'warmth' of heads here: there is attention_distance, saliency_iou" in fails(
        capsys, "heads", made, "--heat", "warmth", "--out", tmp_path
    )
    assert "no maps from 'above'" in fails(capsys, "heads", made, "--maps", "above", "--out", tmp_path)
    empty = tmp_path / "empty"
    Results().save(empty)
    assert "has no attention" in fails(capsys, "heads", empty)


def test_values_of_heads_by_measure_and_variant(tmp_path: Path) -> None:
    results = Results.load(finished(tmp_path / "run", model="fs-b16", teaching="fs"))
    values = np.arange(144).reshape(12, 12) / 144
    np.testing.assert_allclose(head_values(results, "saliency_iou")["fs-b16"], 1 - values)  # the first, not `paper`
    np.testing.assert_allclose(head_values(results, "saliency_iou:spatial")["fs-b16"], values)
    with pytest.raises(VitscopeError, match="no variant 'centre': there is cls, spatial"):
        head_values(results, "saliency_iou:centre")
    assert title_of("entropy") == "entropy (nats)"
    assert title_of("saliency_iou:cls") == "saliency, cls"


def test_figures_show_every_head(tmp_path: Path) -> None:
    results = Results.load(finished(tmp_path / "run", model="fs-b16", teaching="fs"))
    heat = heat_figure(results, "attention_distance")
    np.testing.assert_allclose(heat.axes[0].images[0].get_array(), np.arange(144).reshape(12, 12) / 144)
    marks = scatter_figure(results, "attention_distance", "saliency_iou").axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(np.asarray(marks).sum(1), 1)  # x and 1 - x
    assert len(np.asarray(marks)) == 144
    sources = source_figures(results, ["cls", "top", "left"])
    assert set(sources) == {"maps-from-cls-fs-b16", "maps-from-top-fs-b16"}  # there are no maps from the left
    first = sources["maps-from-cls-fs-b16"].axes[0].images[0].get_array()
    assert first is not None
    assert first.shape == (4 + 3, 4, 4)  # a strip of two rows and a gap above the map of 4 x 4, in colours
    assert sources["maps-from-top-fs-b16"].axes[0].images[0].get_array().shape == (4, 4, 4)  # type: ignore[union-attr]
