"""Models against models: CKA of all layers with all layers, and other similarities of the last ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import polars as pl
import torch
from torch import Tensor

from vitscope.digest import digest_of
from vitscope.features.analysis import VARIANTS
from vitscope.features.cka import Cka, cka
from vitscope.features.record import ModelRecord, check_comparable
from vitscope.features.similarity import SIMILARITIES, null_mean
from vitscope.progress import Advance, Progress, silent
from vitscope.results import Label, Results, tidy

MOST_PICTURES = 1000  # for the similarities other than CKA, which take minutes on more
TOKENS = ("cls", "spatial", "all")

PAIRS: dict[str, Any] = {
    "tokens": pl.String,
    "protocol": pl.String,
    "model_a": pl.String,
    "site_a": pl.String,
    "layer_a": pl.Int32,
    "model_b": pl.String,
    "site_b": pl.String,
    "layer_b": pl.Int32,
    "value": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "null": pl.Float64,
    "n": pl.Int64,
}


def compare_models(records: Sequence[ModelRecord], results: Results, *, progress: Progress = silent) -> pl.DataFrame:
    """Add the comparison of models to results; returns the table of all pairs of sites.

    Tables get the last layers of all pairs of models; maps get
    `models/cka.last.TOKENS` (M, M), with .low, .high and .null; `MODEL/cka.depth.TOKENS` (S, S) of a model with itself;
    `MODEL/cka.depth.TOKENS.OTHER` (S, S') of a pair. S sites: norm1 and norm2 of every block.
    """
    check_comparable(records)
    results.notes += [*_twins(records), *_sizes(records)]
    tables = []
    kinds = [kind for kind in TOKENS if any(kind in record.grams.packed for record in records)]
    with progress("CKA of all layers (kinds of tokens)", len(kinds)) as advance:
        for tokens in kinds:
            having = [record for record in records if tokens in record.grams.packed]
            found = cka(
                [record.grams.packed[tokens] for record in having],
                having[0].grams.members,
                equal_weights=having[0].settings["protocol"] == "paper",
            )
            _add_last_layers(having, records, tokens, found, results)
            _add_depth(having, tokens, found, results)
            results.notes += _constant_sites(having, tokens, found)
            tables.append(pair_table(having, tokens, found))
            advance(1)
    with progress("other similarities of the last layers", len(VARIANTS) * len(SIMILARITIES)) as advance:
        _add_similarities(records, results, advance)
    return pl.concat(tables)


def _sizes(records: Sequence[ModelRecord]) -> list[str]:
    """A word of caution for models that see the same pictures at different sizes."""
    sizes = {record.title: "x".join(map(str, record.provenance["input_size"])) for record in records}
    if len(set(sizes.values())) <= 1:
        return []
    each = ", ".join(f"{title} {size}" for title, size in sizes.items())
    return [f"models see the pictures at different sizes ({each}): similarity includes what the sizes change"]


def _twins(records: Sequence[ModelRecord]) -> list[str]:
    """An alarm for models that are bit for bit the same."""
    notes = []
    for a, b in combinations(records, 2):
        if a.contents.weights == b.contents.weights and a.contents.preprocessing == b.contents.preprocessing:
            notes.append(f"{a.title} and {b.title} are the same weights under two names")
        elif a.grams.sites == b.grams.sites and all(
            torch.equal(mine, theirs) and mine.any()  # all zero: features that are the same for all pictures
            for mine, theirs in ((a.grams.packed[k], b.grams.packed[k]) for k in a.grams.packed if k in b.grams.packed)
        ):
            notes.append(f"{a.title} and {b.title} have different weights but bit-identical features: one is mistaken")
    return notes


def _starts(records: Sequence[ModelRecord]) -> list[int]:
    """Where each model's sites begin among all."""
    starts = [0]
    for record in records[:-1]:
        starts.append(starts[-1] + len(record.grams.sites))
    return starts


def _depth_sites(record: ModelRecord) -> slice:
    """The sites for similarity over depth: after the norms, or block outputs for a model that does not show them."""
    blocks = record.depth
    return slice(blocks, None) if len(record.grams.sites) > blocks else slice(0, blocks)


def _constant_sites(records: Sequence[ModelRecord], tokens: str, found: Cka) -> list[str]:
    own, where = found.value.diagonal(), defaultdict[str, list[str]](list)
    for record, start in zip(records, _starts(records), strict=True):
        sites = record.grams.sites
        if constant := [name for name, value in zip(sites, own[start:], strict=False) if value.isnan()]:
            where["every layer" if len(constant) == len(sites) else _few(constant)].append(record.title)
    return [
        f"{tokens} features of {_few(titles)} are the same for all pictures at {sites}: there is no similarity"
        for sites, titles in where.items()
    ]


def _few(names: Sequence[str], most: int = 7) -> str:
    """A list that fits into a sentence."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _pair_label(a: ModelRecord, b: ModelRecord) -> Label:
    both = digest_of([a.label.provenance, b.label.provenance])
    return Label(a.title, a.teaching, a.contents.samples_origin, both)


def _add_last_layers(
    having: Sequence[ModelRecord], records: Sequence[ModelRecord], tokens: str, found: Cka, results: Results
) -> None:
    last = torch.tensor([s + r.depth - 1 for s, r in zip(_starts(having), having, strict=True)])
    place = torch.tensor([records.index(record) for record in having])
    sides = {"": found.value, ".low": found.low, ".high": found.high, ".null": found.null}
    for suffix, matrix in sides.items():
        full = torch.full((len(records), len(records)), torch.nan, dtype=torch.float64)
        full[place[:, None], place[None, :]] = matrix[last[:, None], last[None, :]]
        results.maps[f"models/cka.last.{tokens}{suffix}"] = full
    protocol, tables = having[0].settings["protocol"], []
    for (i, a), (j, b) in combinations(enumerate(having), 2):
        where = (last[i], last[j])
        value, low, high, null = (side[where].reshape(1) for side in sides.values())
        options: dict[str, Any] = {"axes": ("layer",), "n": found.pictures, "protocol": protocol}
        options["variant"] = f"{tokens} with {b.title}"
        rows = tidy(_pair_label(a, b), "cka", value, low=low, high=high, **options)
        nulls = tidy(_pair_label(a, b), "cka_null", null, **options)
        tables += [_at_layer(rows, a.depth), _at_layer(nulls, a.depth)]
    results.extend(tables)  # at once: 20 models have 190 pairs


def _at_layer(rows: pl.DataFrame, layer: int) -> pl.DataFrame:
    return rows.with_columns(pl.lit(layer, dtype=pl.Int32).alias("layer"))


def _add_depth(having: Sequence[ModelRecord], tokens: str, found: Cka, results: Results) -> None:
    starts = _starts(having)
    for i, a in enumerate(having):
        for j, b in enumerate(having[i:], start=i):
            rows = found.value[starts[i] : starts[i] + len(a.grams.sites)][_depth_sites(a)]
            matrix = rows[:, starts[j] : starts[j] + len(b.grams.sites)][:, _depth_sites(b)]
            name = f"{a.title}/cka.depth.{tokens}"
            results.maps[name if i == j else f"{name}.{b.title}"] = matrix.clone()


def pair_table(having: Sequence[ModelRecord], tokens: str, found: Cka) -> pl.DataFrame:
    """One row per pair of sites, of one model or two; each pair once."""
    names = [record.title for record in having for _ in record.grams.sites]
    sites = [site for record in having for site in record.grams.sites]
    kinds = [site.split(" ")[0] for site in sites]
    layers = [int(site.split(" ")[1]) for site in sites]
    row, column = torch.triu_indices(len(sites), len(sites), offset=1)

    def pick(values: list[Any], where: Tensor) -> pl.Series:
        return pl.Series(values)[where.numpy()]

    return pl.DataFrame(
        {
            "tokens": [tokens] * len(row),
            "protocol": [having[0].settings["protocol"]] * len(row),
            "model_a": pick(names, row), "site_a": pick(kinds, row), "layer_a": pick(layers, row),
            "model_b": pick(names, column), "site_b": pick(kinds, column), "layer_b": pick(layers, column),
            "value": found.value[row, column].numpy(), "ci_low": found.low[row, column].numpy(),
            "ci_high": found.high[row, column].numpy(), "null": found.null[row, column].numpy(),
            "n": [found.pictures] * len(row),
        },
        schema=PAIRS,
    )  # fmt: skip


def _add_similarities(records: Sequence[ModelRecord], results: Results, advance: Advance) -> None:
    """Exact CKA, Procrustes, RSA and mutual neighbours of the last layers' pooled features, each with its null."""
    n, tables = min(len(records[0].store), MOST_PICTURES), []
    for pooling, tokens in VARIANTS.items():
        having = [record for record in records if pooling in record.contents.poolings]
        features = [record.store.features(pooling, record.depth - 1)[:n] for record in having]
        for similarity in SIMILARITIES.values():
            advance(1)
            if n < similarity.least:
                results.notes.append(f"{similarity.title} takes at least {similarity.least} pictures, there are {n}")
                continue
            matrix = torch.full((2, len(records), len(records)), torch.nan, dtype=torch.float64)
            for (i, a), (j, b) in combinations(enumerate(having), 2):
                value = similarity.function(features[i], features[j])
                null = null_mean(similarity, features[i], features[j])
                where = (records.index(a), records.index(b))
                for side, number in enumerate((value, null)):
                    matrix[side][where] = matrix[side][where[::-1]] = number
                    measure = f"similarity_{similarity.name}" + ("_null" if side else "")
                    rows = tidy(_pair_label(a, b), measure, torch.tensor([number]), axes=("layer",), n=n,
                                variant=f"{tokens} with {b.title}")  # fmt: skip
                    tables.append(_at_layer(rows, a.depth))
            for record, x in zip(having, features, strict=True):
                if (x != x[0]).any():  # constant features are like nothing, not even like themselves
                    matrix[0][records.index(record), records.index(record)] = 1
            results.maps[f"models/similarity.{similarity.name}.{tokens}"] = matrix[0]
            results.maps[f"models/similarity.{similarity.name}.{tokens}.null"] = matrix[1]
    results.extend(tables)
    results.notes = list(dict.fromkeys(results.notes))
