"""The frozen page: one file, small enough, whose numbers are those of the models within 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.report.explorer.conftest import shown_values, until
from vitscope.attention.rollout import rollout
from vitscope.core.errors import VitscopeError
from vitscope.models.kept import Kept, trace_image
from vitscope.models.spec import resolve
from vitscope.report.explorer import frozen
from vitscope.report.explorer.frozen import export_frozen, kept_sources, reduced_tokens, roots

MODELS = ("zoo/dino", "zoo/mae")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    from vitscope.report.explorer.gallery import menagerie_gallery

    folder = tmp_path_factory.mktemp("pictures")
    for i, sample in enumerate(menagerie_gallery(2)):
        sample.load().save(folder / f"{i}.png")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def kept(pictures: list[Path]) -> Kept:
    return trace_image(resolve(MODELS[0]).load("cpu"), pictures[0])


def test_the_page_shows_what_the_models_see(explore: Any, pictures: list[Path], kept: Kept, tmp_path: Path) -> None:
    page = explore(export_frozen([resolve(m) for m in MODELS], pictures, tmp_path / "page.html", "cpu").as_uri())
    assert str(pictures[0].parent) not in (tmp_path / "page.html").read_text()
    patch, layer = 18, 8
    h, w = kept.layout.grid
    point = [(patch % w + 0.5) / w, (patch // w + 0.5) / h]
    page.evaluate("update => vitscope.change(update)", {"point": point, "layer": layer})
    page.wait_for_timeout(200)
    wanted: dict[tuple[str, Any], torch.Tensor] = {
        ("cls", "mean"): kept.attention[layer, :, 0, 1:].mean(0),
        ("cls", 2): kept.attention[layer, 2, 0, 1:],
        ("point", "mean"): kept.attention[layer, :, 1 + patch, 1:].mean(0),
        ("cls", "rollout"): rollout(list(kept.attention.mean(1)), torch.eye(kept.layout.tokens)[0])[layer, 1:],
        ("norms", "mean"): kept.tokens[layer, 1:].norm(dim=1),
        ("similar", "mean"): torch.cosine_similarity(kept.tokens[layer, 1:], kept.tokens[layer, 1 + patch], dim=1),
    }
    for (view, head), values in wanted.items():
        page.evaluate("([view, head]) => vitscope.change({ view, head })", [view, head])
        until(page, f"vitscope.shown.every((one) => one.view === '{view}' && one.map)")
        page.wait_for_timeout(60)
        tolerance = 0.02 if view == "similar" else float(values.abs().max()) / 100
        assert (shown_values(page) - values).abs().max() < tolerance, (view, head)


def test_heads_are_thinned_out_until_the_page_is_small(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [resolve(m) for m in MODELS]
    whole = export_frozen(specs, pictures, tmp_path / "whole.html", "cpu").stat().st_size
    monkeypatch.setattr(frozen, "BUDGET", whole // 3)
    assert export_frozen(specs, pictures, tmp_path / "small.html", "cpu").stat().st_size < 0.8 * whole


def test_sources_that_are_kept() -> None:
    assert kept_sources((4, 4), 1, 2).tolist() == [0, 6, 8, 14, 16]
    assert kept_sources((2, 3), 1, 1).tolist() == list(range(7))


def test_eight_bits_on_a_square_root_scale() -> None:
    rows = torch.rand(5, 40).square()
    bytes_, tops = roots(rows)
    back = (bytes_.float() / 255).square() * tops[:, None]
    assert (back - rows).abs().max() <= float(tops.max()) / 255 + 1e-6


def test_reduced_tokens_keep_their_angles(kept: Kept) -> None:
    (small,) = reduced_tokens([kept])
    whole = torch.nn.functional.normalize(kept.tokens.double(), dim=-1)
    cosines = torch.nn.functional.normalize(small.double(), dim=-1)
    assert ((whole @ whole.mT) - (cosines @ cosines.mT)).abs().max() < 0.02


def test_too_many_images(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    with pytest.raises(VitscopeError, match="12 images at most"):
        export_frozen([], [tmp_path / "a.png"] * 13, tmp_path / "page.html")
