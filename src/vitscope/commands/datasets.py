"""`vitscope datasets`: which datasets of the study are here, where they are looked for, and how to get the others."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.place import data_root
from vitscope.data.official import OFFICIAL, OfficialDataset, check_copy, official
from vitscope.data.openers import OPENERS


def datasets(
    name: str | None = None, /, *, check: bool = False, root: Path | None = None, path: Path | None = None
) -> None:
    """List the official datasets, and where they are or how to get them; nothing is fetched.

    Study files take them by these names. Other data are given by their path: `vitscope datasets` lists the layouts.

    Parameters
    ----------
    name
        Show one of them with the layout that is expected and the way to get it.
    check
        Hold the copy to what is known of it: counts, some images decoded, archives that still lie beside it.
    root
        The folder of datasets and weights; $VITSCOPE_DATA if not given, or else ~/.cache/vitscope.
    path
        A copy of the dataset NAME that lies elsewhere.
    """
    console = Console(markup=False, highlight=False)
    if path is not None and name is None:
        raise VitscopeError("--path is a copy of one dataset: name it too, such as `vitscope datasets davis-2017`")
    chosen = list(OFFICIAL.values()) if name is None else [official(name)]
    found = {known.name: path or known.find(root) for known in chosen}
    if name is None:
        console.print(_table(chosen, found))
        console.print(
            f"Looked for in {root or data_root()} (VITSCOPE_DATA, or root of a study file); weights: weights/ there."
        )
        console.print(_layouts())
    else:
        console.print(_details(chosen[0], found[chosen[0].name], root))
    if check:
        _check(console, chosen, found, root)


def _table(chosen: list[OfficialDataset], found: dict[str, Path | None]) -> Table:
    table = Table(title="Datasets of the study", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("used for")
    table.add_column("where, or how large", overflow="fold")
    for known in chosen:
        place = found[known.name]
        where = f"present {place}" if place else f"missing ({known.size}): `vitscope datasets {known.name}`"
        table.add_row(known.name, known.used_for, where)
    return table


def _layouts() -> Table:
    table = Table(title="Layouts of your own data", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind", no_wrap=True, style="bold")
    table.add_column("what is read")
    for kind, opener in OPENERS.items():
        table.add_row(kind, " ".join((opener.__doc__ or "").split("\n\n")[0].split()))
    return table


def _details(known: OfficialDataset, place: Path | None, root: Path | None) -> Table:
    table = Table(title=known.title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_row("state", f"present: {place}" if place else "missing")
    table.add_row("looked for in", ", ".join(map(str, known.places(root))))
    table.add_row("layout", f"{', '.join(known.expected)} (a dataset of the kind {known.kind})")
    table.add_row("a whole copy", ", ".join(f"{count:,} {what}" for what, count in known.facts.items()))
    table.add_row("size", known.size)
    table.add_row("used for", known.used_for)
    table.add_row("how to get it", known.how)
    return table


def _check(console: Console, chosen: list[OfficialDataset], found: dict[str, Path | None], root: Path | None) -> None:
    """Print what was found of every copy; an error if one is not as it should be, or if there is none."""
    wrong = []
    for known in chosen:
        place = found[known.name]
        if place is None:
            continue
        console.print(f"{known.name} at {place}")
        try:
            for fact in check_copy(known, place, root):
                mark = {True: "right", False: "WRONG", None: "-"}[fact.right]
                console.print(f"  {mark:5} {fact.what}: {fact.found}")
                if fact.right is False:
                    wrong.append(f"{known.name} ({fact.what})")
        except BadData as error:
            console.print(f"  WRONG {error}")
            wrong.append(f"{known.name} (layout)")
    if wrong:
        raise VitscopeError(
            f"not as they should be: {', '.join(dict.fromkeys(wrong))}; get what is missing there again"
        )
    if not any(found.values()):
        raise VitscopeError(f"there is nothing to check: none of {', '.join(found)} is in {root or data_root()}")
