"""`zoo exam`: examine the shipped networks, show the figures, and put them into their cards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import torch
from cyclopts import Parameter
from rich.console import Console

from vitscope.core.errors import VitscopeError
from vitscope.core.files import make_folder, write_atomically
from vitscope.core.progress import Progress, shown
from vitscope.core.teachings import TEACHINGS
from vitscope.models import load_model
from vitscope.models.registry import ZOO
from zoo.exam.baselines import measure_baselines
from zoo.exam.measures import Answers, examine
from zoo.exam.papers import Seeds, Sizes, set_papers
from zoo.exam.record import Exam, as_data, card_section, mark, write_into_card
from zoo.exam.tables import report
from zoo.exam.targets import UNTAUGHT

SIZES = Sizes()


def exam(
    *,
    only: tuple[str, ...] = (),
    out: Path | None = None,
    write: bool = False,
    seeds: Seeds = "choose",
    shelf: Path = ZOO,
    sizes: Annotated[Sizes, Parameter(parse=False)] = SIZES,
) -> None:
    """Examine the shipped networks on held-out renders: every layer, three seeds, trivial baselines beside them.

    Takes one to two CPU-minutes per network. The untrained one is always examined too: the others are measured by it.

    Parameters
    ----------
    only:
        Examine these networks and no others.
    out:
        Write all figures to this file (JSON).
    write:
        Put the figures into the model cards; the weights stay as they are. Cards tell figures of the `report` seeds.
    seeds:
        `choose` while something is still to be decided by the figures; `report` when nothing is.
    shelf:
        Folder of the cards.
    """
    torch.set_num_threads(1)
    if write and seeds != "report":
        raise VitscopeError("cards tell what was measured on seeds that decided nothing: add --seeds report")
    if out is not None:
        make_folder(out.parent)
    cards = _cards(shelf, only)
    found = examine_cards(cards, sizes, shown, seeds)
    Console().print(report(found))
    if out is not None:
        text = json.dumps(as_data(found), indent=1) + "\n"
        write_atomically(out, lambda path: path.write_text(text, encoding="utf-8"))
    if write:
        for key, path in cards.items():
            write_into_card(path, card_section(found, key))


def examine_cards(cards: dict[str, Path], sizes: Sizes, progress: Progress, seeds: Seeds = "choose") -> Exam:
    """cards: of networks of one input size and token grid; one of them is the untrained one."""
    networks = {key: load_model(path) for key, path in cards.items()}
    untaught = networks[UNTAUGHT]
    papers = set_papers(sizes, untaught.preprocessing.size[0], progress, seeds=seeds)
    baselines = measure_baselines(papers, untaught.layout.grid)
    answers: dict[str, Answers] = {}
    seconds: dict[str, float] = {}
    for key, backbone in networks.items():
        before = time.process_time()
        answers[key] = examine(backbone, papers, progress)
        seconds[key] = time.process_time() - before
    digests = {key: str(backbone.provenance.get("digest", "")) for key, backbone in networks.items()}
    return mark(sizes, answers, baselines, digests=digests, cpu_seconds=seconds, seeds=seeds)


def _cards(shelf: Path, only: tuple[str, ...]) -> dict[str, Path]:
    """By name of the network, in the order of the study, the untrained one last."""
    there = {path.stem: path for path in shelf.glob("*.toml")}
    if absent := [key for key in (*only, UNTAUGHT) if key not in there]:
        known = ", ".join(sorted(there)) or "no card"
        raise VitscopeError(f"there is no {absent[0]}.toml in {shelf}: found {known}; `zoo ship` writes them")
    chosen = {*only, UNTAUGHT} if only else set(there)
    order = list(TEACHINGS)
    return {key: there[key] for key in sorted(chosen, key=lambda key: (order.index(key) if key in order else 99, key))}
