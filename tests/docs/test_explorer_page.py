"""The page that a project site hosts runs the networks that ship."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest
from safetensors.torch import load

from vitscope.models.registry import ZOO
from vitscope.models.spec import resolve
from vitscope.report.explorer.networks import in_eight_bits, network_arrays
from vitscope.report.explorer.page import file_page

PAGE = Path(__file__).parents[2] / "docs" / "explorer.html"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


def test_it_holds_the_zoo_as_it_is(page: str) -> None:
    """Otherwise `make explorer-page` writes it anew."""
    boot = json.loads(re.search(r'id="explorer">(.*?)</script>', page, re.DOTALL).group(1))  # type: ignore[union-attr]
    names = [model["name"] for model in boot["models"]]
    assert set(names) == {f"zoo/{path.stem}" for path in ZOO.glob("*.toml")}
    for i, name in enumerate(names):
        found = re.search(rf'id="network-{i}">([^<]*)</script>', page)
        assert found is not None
        held = load(gzip.decompress(base64.b64decode(found.group(1))))
        shipped = in_eight_bits(network_arrays(resolve(name).load("cpu")))
        assert held.keys() == shipped.keys(), name
        assert all((held[key] == shipped[key]).all() for key in held), name


def test_it_is_the_page_of_today(page: str) -> None:
    today = file_page({"source": "networks", "models": [], "gallery": []}, {})
    for element in ("style", "script"):
        (ours,) = re.findall(rf"<{element}>(.*?)</{element}>", today, re.DOTALL)
        assert ours in page, f"`make explorer-page` writes it anew: another {element}"


def test_it_can_be_hosted(page: str) -> None:
    assert len(page) < 15_000_000
    assert "connect-src &#39;none&#39;" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page.split("<script")[0])
