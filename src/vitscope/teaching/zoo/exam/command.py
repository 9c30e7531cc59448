"""`zoo exam`: examine the shipped networks, show the figures, and put them into their cards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import torch
from cyclopts import Parameter
from rich.console import Console

from vitscope.data.batches import decoded_once
from vitscope.errors import VitscopeError
from vitscope.models import load
from vitscope.models.registry import ZOO
from vitscope.progress import Progress, shown
from vitscope.results import make_folder, write_atomically
from vitscope.teaching.zoo.exam.baselines import measure_baselines
from vitscope.teaching.zoo.exam.measures import Answers, examine
from vitscope.teaching.zoo.exam.papers import Sizes, set_papers
from vitscope.teaching.zoo.exam.record import Exam, as_data, card_section, mark, write_into_card
from vitscope.teaching.zoo.exam.tables import report
from vitscope.teaching.zoo.exam.targets import UNTAUGHT
from vitscope.teachings import TEACHINGS

SIZES = Sizes()


def exam(
    *,
    only: tuple[str, ...] = (),
    out: Path | None = None,
    write: bool = False,
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
        Put the figures into the model cards; the weights stay as they are.
    shelf:
        Folder of the cards.
    """
    torch.set_num_threads(1)
    if out is not None:
        make_folder(out.parent)
    cards = _cards(shelf, only)
    found = examine_cards(cards, sizes, shown)
    Console().print(report(found))
    if out is not None:
        text = json.dumps(as_data(found), indent=1) + "\n"
        write_atomically(out, lambda path: path.write_text(text, encoding="utf-8"))
    if write:
        for key, path in cards.items():
            write_into_card(path, card_section(found, key))


def examine_cards(cards: dict[str, Path], sizes: Sizes, progress: Progress) -> Exam:
    """cards: of networks of one input size and token grid; one of them is the untrained one."""
    networks = {key: load(str(path)) for key, path in cards.items()}
    untaught = networks[UNTAUGHT]
    papers = set_papers(sizes, untaught.preprocessing.size[0], progress)
    baselines = measure_baselines(papers, untaught.layout.grid)
    answers: dict[str, Answers] = {}
    seconds: dict[str, float] = {}
    with decoded_once():
        for key, backbone in networks.items():
            before = time.process_time()
            answers[key] = examine(backbone, papers, progress)
            seconds[key] = time.process_time() - before
    digests = {key: str(backbone.provenance.get("digest", "")) for key, backbone in networks.items()}
    return mark(sizes, answers, baselines, digests=digests, cpu_seconds=seconds)


def _cards(shelf: Path, only: tuple[str, ...]) -> dict[str, Path]:
    """By name of the network, in the order of the study, the untrained one last."""
    there = {path.stem: path for path in shelf.glob("*.toml")}
    if absent := [key for key in (*only, UNTAUGHT) if key not in there]:
        known = ", ".join(sorted(there)) or "no card"
        raise VitscopeError(f"there is no {absent[0]}.toml in {shelf}: found {known}; `zoo ship` writes them")
    chosen = {*only, UNTAUGHT} if only else set(there)
    order = list(TEACHINGS)
    return {key: there[key] for key in sorted(chosen, key=lambda key: (order.index(key) if key in order else 99, key))}
