"""The cards of the zoo for people: one line each, or a page of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vitscope.core.teachings import TEACHINGS, teaching
from vitscope.models.card import ModelCard

MEASURES = {"unc": "UNC", "nat": "NAT", "pck": "PCK", "jf": "J&F", "purity": "parts", "iou": "IoU", "local": "local"}
ROOM = {0: 2, 80: 6, 90: 7}  # columns of a terminal, and how many measures are shown from there on
LEGEND = (
    "k-NN of species: UNC appearance-free, NAT nature-like; PCK@0.1 of keypoints; J&F of videos; purity of part "
    "clusters; IoU of the best head's CLS attention; local: share of heads that are not global; met: targets. "
    "`vitscope models zoo/NAME` shows a card."
)
POINTS = 6  # of the learning curve
BARS = "▁▂▃▄▅▆▇█"


def cards_table(cards: Iterable[ModelCard], width: int) -> RenderableType:
    """A line per card, in the order of the teachings. width: of the terminal, in columns."""
    fitting = max(count for columns, count in ROOM.items() if columns <= width)
    measures = dict(islice(MEASURES.items(), fitting))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("teaching", no_wrap=True)
    for heading in ("images", "CPU", *measures.values(), "met"):
        table.add_column(heading, justify="right", no_wrap=True)
    for card in sorted(cards, key=lambda card: list(TEACHINGS).index(card.teaching)):
        about = card.provenance
        figures = about.get("exam", {}).get("figures", {})
        table.add_row(
            card.name,
            _teaching(card),
            short(about.get("images_seen", 0)),
            duration(about.get("cpu_seconds", 0)),
            *(f"{figures[key]['mean']:.2f}" if key in figures else "-" for key in measures),
            _met(about),
        )
    return Group(table, Text(f"\n{LEGEND}", style="dim"))


def card_page(card: ModelCard) -> RenderableType:
    """Everything a reader of one card wants to know."""
    about, options = card.provenance, card.options
    shape = [f"{name.replace('_', ' ')} {value}" for name, value in options.items()]
    seen, spent = about.get("images_seen", 0), duration(about.get("cpu_seconds", 0))
    taught = f"{seen:,} images seen in {spent} of CPU time" if seen else "not at all"
    facts = {
        "teaching": _teaching(card),
        "network": f"{card.architecture}: {', '.join(shape)}",
        "weights": f"{card.weights.name}, digest {about.get('digest', 'unknown')}",
        "data": about.get("data", "none"),
        "taught": f"{taught}, seed {about.get('seed', 'unknown')}",
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    parts: list[RenderableType] = [Text(card.name, style="bold"), table]
    if curve := about.get("learning_curve"):
        parts += [Text("\nLearning curve", style="bold"), _curve_table(curve)]
    if exam := about.get("exam"):
        parts += [Text("\nExam on held-out renders", style="bold"), *_exam(exam)]
    else:
        remedy = "in the repository, `python -m zoo exam --write --seeds report` examines them"
        parts.append(Text(f"\nThese weights were not examined: {remedy}."))
    return Group(*parts)


def short(count: int) -> str:
    """
    >>> short(950), short(14016), short(1_234_000)
    ('950', '14k', '1.23M')
    """
    if count < 1000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"


def duration(seconds: float) -> str:
    """
    >>> duration(0), duration(376), duration(9000)
    ('0 min', '6 min', '2.5 h')
    """
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def sparkline(values: Sequence[float]) -> str:
    """A curve in one line of text, from its lowest to its highest value.

    >>> sparkline([0.1, 0.45, 0.8])
    '▁▄█'
    """
    low, high = min(values), max(values)
    steps = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[int((value - low) * steps + 1e-9)] for value in values)


def _teaching(card: ModelCard) -> Text:
    known = teaching(card.teaching)
    return Text(known.title, style=known.colour)


def _met(about: Mapping[str, Any]) -> Text:
    targets = about.get("exam", {}).get("targets", [])
    met = sum(target["met"] for target in targets)
    if not targets:
        return Text("-")
    return Text(f"{met}/{len(targets)}", style="green" if met == len(targets) else "yellow")


def _curve_table(curve: Sequence[Mapping[str, float]]) -> Table:
    step = max(1, -(-len(curve) // POINTS))
    rows = curve[::-1][::step][::-1]
    names = [name for name in rows[-1] if name not in ("images", "cpu_seconds")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("images", "CPU", *(name.replace("knn_", "k-NN ") for name in names)):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in rows:
        numbers = (f"{point[name]:.3f}" if name in point else "-" for name in names)
        table.add_row(short(int(point["images"])), duration(point["cpu_seconds"]), *numbers)
    return table


def _exam(exam: Mapping[str, Any]) -> list[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("measure", min_width=15)
    table.add_column("figure", no_wrap=True)
    table.add_column("over layers", no_wrap=True)
    table.add_column("beside it")
    for name, value in exam["figures"].items():
        curve = max(exam["layers"][name].values(), key=max)
        table.add_row(
            exam["measures"].get(name, name),
            f"{value['mean']:.3f}\n{value['low']:.3f}-{value['high']:.3f}",
            Text(f"{sparkline(curve)}\n{value.get('at', '')}"),
            Text("\n".join(f"{number:.3f} {other}" for other, number in exam["beside"][name].items())),
        )
    how = f"Mean and interval ({exam['interval']}). Layer: {exam['layer_choice']}."
    parts: list[RenderableType] = [table, Text(f"\n{how}", style="dim")]
    if exam["targets"]:
        parts.append(Text("\nTargets", style="bold"))
    for target in exam["targets"]:
        word = Text("met      ", style="green") if target["met"] else Text("not met  ", style="bold red")
        missed = target.get("missed", target["asked"])
        only = "" if missed == target["asked"] else f"; missed: {missed}"  # of several conditions, the one that fails
        parts.append(word + Text(f"{target['name']}: {target['asked']}{only}"))
    return parts
