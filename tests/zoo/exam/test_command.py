"""The exam of a tiny zoo from end to end, and what it leaves in the cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.teaching.tiny import ARCH, OPTIONS
from vitscope.core.errors import VitscopeError
from vitscope.models import load_model, resolve
from vitscope.models.card import read_card
from vitscope.teaching.card import write_card
from vitscope.teaching.vit import create_encoder
from zoo.exam.command import exam
from zoo.exam.measures import MEASURES
from zoo.exam.papers import Sizes, set_papers
from zoo.exam.record import write_into_card

SIZES = Sizes(seeds=2, bank=48, queries=16, parts=12, pairs=16, films=1, frames=3)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    for seed, key in enumerate(("none", "mae", "fs")):
        write_card(
            folder,
            key,
            create_encoder(ARCH, OPTIONS, seed),
            name=f"zoo/{key}",
            architecture=ARCH,
            options=OPTIONS,
            teaching=key,
            provenance={"seed": seed, "images_seen": 0, "recipe": {"scale": [0.4, 1.0]}},
            half=True,
        )
    return folder


def test_an_exam_shows_figures_and_writes_them_beside_unchanged_weights(
    shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = {key: shelf / f"{key}.toml" for key in ("mae", "none")}
    before = {key: (read_card(path), resolve(path).digest, load_model(path)) for key, path in cards.items()}
    weights = {path: path.read_bytes() for path in shelf.glob("*.safetensors")}
    exam(only=("mae",), out=tmp_path / "new" / "exam.json", write=True, seeds="report", shelf=shelf, sizes=SIZES)
    shown = capsys.readouterr().out
    assert "MAE" in shown
    assert "copy the first mask" in shown
    assert {path: path.read_bytes() for path in shelf.glob("*.safetensors")} == weights
    assert "exam" not in read_card(shelf / "fs.toml").provenance
    for key, (card, digest, backbone) in before.items():
        after = read_card(cards[key])
        written = after.provenance.pop("exam")
        assert after == card  # nothing but the exam is new
        assert resolve(cards[key]).digest == digest
        assert load_model(cards[key]).weights_digest == backbone.weights_digest
        assert written["digest"] == card.provenance["digest"]
        assert written["seeds"] == "report: renders that no decision ever saw"
        assert written["figures"].keys() == written["beside"].keys() == MEASURES.keys()
        assert len(written["layers"]["unc"]["CLS"]) == OPTIONS["depth"]
        # of MAE: PCK, J&F, part clusters, and four of attention; the untrained network may have no offset-local head
        assert len(written["targets"]) == (7 if key == "mae" else 1)
    figures = json.loads((tmp_path / "new" / "exam.json").read_text())
    assert figures["networks"].keys() == {"mae", "none"}
    assert all(len(one["seeds"]) == 2 for one in figures["networks"]["mae"]["figures"].values())
    assert 0 < figures["baselines"]["iou"]["everything"]["mean"] < figures["baselines"]["iou"]["disc"]["mean"] < 1


def test_an_exam_of_other_weights_is_not_written_into_a_card(shelf: Path) -> None:
    with pytest.raises(VitscopeError, match="other weights"):
        write_into_card(shelf / "fs.toml", {"digest": "0" * 16})


def test_an_unknown_network_and_a_single_seed_are_refused(shelf: Path) -> None:
    with pytest.raises(VitscopeError, match=r"no vit\.toml"):
        exam(only=("vit",), shelf=shelf, sizes=SIZES)
    with pytest.raises(VitscopeError, match="add --seeds report"):
        exam(shelf=shelf, sizes=SIZES, write=True)
    with pytest.raises(VitscopeError, match="2 or more"):
        Sizes(seeds=1)


def test_papers_of_other_seeds_show_other_creatures() -> None:
    sizes = Sizes(seeds=2, bank=4, queries=4, parts=2, pairs=2, films=1, frames=2)
    both = [set_papers(sizes, 16, seeds=seeds) for seeds in ("choose", "report")]
    papers = [paper for these in both for paper in these.papers]
    shown = [
        sample.load().tobytes()
        for part in (both[0].bank, *(some for paper in papers for some in (paper.nat, paper.unc, paper.parts)))
        for sample in part
    ]
    assert len(set(shown)) == len(shown) == 4 + 4 * (4 + 4 + 2)
