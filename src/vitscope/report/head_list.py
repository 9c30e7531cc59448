"""The heads of models in words: a line for each, and what the paper's authors called them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from rich import box
from rich.table import Table

from vitscope.attention.hand_labels import compare
from vitscope.attention.head_kinds import describe
from vitscope.attention.kinds import KINDS, LATE_KINDS
from vitscope.core.results import Results
from vitscope.report.attention_figures import models_of


def with_kinds(results: Results) -> list[tuple[str, str]]:
    """(title, teaching) of the models whose heads have kinds."""
    return [pair for pair in models_of(results.table) if f"{pair[0]}/kind" in results.maps]


def heads_table(results: Results, only: str | None = None) -> Iterator[Table]:
    """One table per model: layer, head, kind in words, its stability, distance, and the kind of a late map."""
    for title, _ in with_kinds(results):
        maps = {
            name: results.maps[f"{title}/{name}"] for name in ("kind", "kind.stability", "kind.offset", "kind.axis")
        }
        late = results.maps[f"{title}/kind.late"]
        rows = results.table.filter((pl.col("model") == title) & (pl.col("measure") == "attention_distance"))
        far = {(layer, head): value for layer, head, value in rows.filter(pl.col("variant") == "grid")
               .select("layer", "head", "value").rows()}  # fmt: skip
        counts = ", ".join(f"{n} {k}" for i, k in enumerate(KINDS) if (n := int((maps["kind"] == i).sum())))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{title}: {counts}", title_justify="left")
        for name in ("layer", "head", "kind", "stability", "distance", "late map"):
            table.add_column(name, justify="left" if name in ("kind", "late map") else "right")
        layers, heads = maps["kind"].shape
        for layer, head in ((i, j) for i in range(layers) for j in range(heads)):
            name = KINDS[int(maps["kind"][layer, head])]
            if only is not None and name != only:
                continue
            words = describe(
                name, maps["kind.offset"][layer, head].long().tolist(), bool(maps["kind.axis"][layer, head])
            )
            stable, look = float(maps["kind.stability"][layer, head]), int(late[layer, head])
            table.add_row(str(layer + 1), str(head + 1), words, "" if stable != stable else f"{stable:.2f}",
                          f"{far[layer + 1, head + 1]:.3f}" if (layer + 1, head + 1) in far else "",
                          LATE_KINDS[look] if look >= 0 else "")  # fmt: skip
        yield table


def check_lines(results: Results) -> Iterator[str]:
    """What the paper's authors called heads of these models, and what we do; a sentence where there is no label."""
    compared = False
    for title, teaching in with_kinds(results):
        about = next((one for one in results.provenance if one.get("title") == title), {})
        found = compare(results.maps[f"{title}/kind"], about, teaching)
        if found is None:
            continue
        compared = True
        agreed = f"{found.agreed} of {len(found.pairs)} heads are named as by the paper's authors"
        like = "" if found.exact else ", if these are its weights: heads of other weights have other numbers"
        yield f"{title}: {agreed} for {found.of}{like}"
        for label, name in found.pairs:
            word = "agrees" if label.kind == name else f"is {name} here"
            yield f"  layer {label.layer + 1}, head {label.head + 1}: {label.kind} by eye, {word}"
    if not compared:
        yield (
            "nothing to compare: the paper's authors labelled heads of fs, clip, dino, moco, mae and beit B/16, mae "
            "L/16 and mae H/14, and none of these models has such an architecture and teaching"
        )
