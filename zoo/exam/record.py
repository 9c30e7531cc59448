"""An exam as plain data: a JSON file of everything, and a section of each network's model card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitscope.core.errors import VitscopeError
from vitscope.core.files import write_atomically
from vitscope.core.reading import read_toml
from vitscope.models.card import read_card
from vitscope.teaching.card import as_toml
from zoo.exam.baselines import TITLES
from zoo.exam.marks import CHOICE, Figure, Scores, curves, figure
from zoo.exam.measures import MEASURES, Answers
from zoo.exam.papers import Seeds, Sizes
from zoo.exam.targets import UNTAUGHT, Verdict, judge_all

DIGITS = 4
SEEDS = {"choose": "renders by which decisions were made", "report": "renders that no decision ever saw"}


@dataclass(frozen=True)
class Exam:
    """figures, curves: network -> measure; baselines: measure -> name."""

    sizes: Sizes
    figures: dict[str, dict[str, Figure]]
    curves: dict[str, dict[str, dict[str, list[float]]]]
    baselines: dict[str, dict[str, Figure]]
    verdicts: tuple[Verdict, ...]
    digests: dict[str, str]  # of the weights that were examined
    cpu_seconds: dict[str, float]
    seeds: Seeds = "choose"

    def beside(self, measure: str) -> dict[str, Figure]:
        """The figures that need no learning: the untrained network's, and the trivial baselines'."""
        untaught = self.figures.get(UNTAUGHT, {})
        first = {"untrained": untaught[measure]} if measure in untaught else {}
        return first | {TITLES[name]: value for name, value in self.baselines.get(measure, {}).items()}


def mark(
    sizes: Sizes,
    answers: Mapping[str, Answers],
    baselines: Mapping[str, Mapping[str, Scores]],
    *,
    digests: Mapping[str, str],
    cpu_seconds: Mapping[str, float],
    seeds: Seeds = "choose",
) -> Exam:
    """Figures, and verdicts on the targets, of all networks that were examined."""
    figures = {key: {name: figure(scores) for name, scores in one.scores.items()} for key, one in answers.items()}
    trivial = {name: {key: figure(scores) for key, scores in some.items()} for name, some in baselines.items()}
    if UNTAUGHT in answers:
        trivial["purity"] = {"chance": figure(answers[UNTAUGHT].chance)}
    return Exam(
        sizes,
        figures,
        {key: {name: curves(scores) for name, scores in one.scores.items()} for key, one in answers.items()},
        trivial,
        tuple(judge_all(figures, trivial)),
        dict(digests),
        dict(cpu_seconds),
        seeds,
    )


def as_data(exam: Exam) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "about": _about(exam),
        "networks": {
            key: {
                "digest": exam.digests[key],
                "cpu_seconds": round(exam.cpu_seconds[key], 1),
                "figures": {name: _figure(value, seeds=True) for name, value in figures.items()},
                "layers": exam.curves[key],
            }
            for key, figures in exam.figures.items()
        },
        "baselines": {
            measure: {name: _figure(value, seeds=True) for name, value in some.items()}
            for measure, some in exam.baselines.items()
        },
        "targets": _targets(exam.verdicts),
    }


def card_section(exam: Exam, key: str) -> dict[str, Any]:
    """What one network's card says of its exam."""
    own = [verdict for verdict in exam.verdicts if key == verdict.target.network]
    return {
        **_about(exam),
        "digest": exam.digests[key],
        "targets": _targets(own),
        "figures": {name: _figure(value) for name, value in exam.figures[key].items()},
        "beside": {
            name: {other: round(value.mean, DIGITS) for other, value in exam.beside(name).items()}
            for name in exam.figures[key]
        },
        "layers": exam.curves[key],
    }


def write_into_card(path: Path, section: Mapping[str, Any]) -> None:
    """Put the section `exam` into a card's provenance: neither the weights nor anything else of the card change."""
    known = read_card(path).provenance.get("digest")
    if known != section["digest"]:
        raise VitscopeError(f"{path} is the card of other weights by now: examine them again")
    card = read_toml(path)
    card["provenance"]["exam"] = dict(section)
    write_atomically(path, lambda draft: draft.write_text(as_toml(card), encoding="utf-8"))


def _about(exam: Exam) -> dict[str, Any]:
    about = {"measures": MEASURES, "sizes": asdict(exam.sizes), "layer_choice": CHOICE, "interval": "95 %, over seeds"}
    return about | {"seeds": f"{exam.seeds}: {SEEDS[exam.seeds]}"}


def _targets(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [
        {
            "name": verdict.target.name,
            "measure": verdict.target.measure,
            "network": verdict.target.network,
            "figure": round(verdict.figure.mean, DIGITS),
            "asked": verdict.asked,
            "met": verdict.met,
            **({} if verdict.met else {"missed": verdict.missed}),
        }
        for verdict in verdicts
    ]


def _figure(value: Figure, *, seeds: bool = False) -> dict[str, Any]:
    numbers: dict[str, Any] = {name: round(getattr(value, name), DIGITS) for name in ("mean", "low", "high")}
    numbers |= {"seeds": [round(seed, DIGITS) for seed in value.seeds]} if seeds else {}
    return numbers | ({"at": value.at} if value.at else {})
