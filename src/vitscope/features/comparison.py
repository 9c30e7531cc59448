"""Models against models: CKA of all layers with all layers, and other similarities of the last ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import polars as pl
import torch
from torch import Tensor

from vitscope.core.analysis import Outcome
from vitscope.core.digest import digest_of
from vitscope.core.results import Label, tidy
from vitscope.features.cka import Cka, cka
from vitscope.features.record import VARIANTS, FeatureRecord, check_comparable
from vitscope.features.similarity import SIMILARITIES, null_mean

MOST_IMAGES = 1000  # for the similarities other than CKA, which take minutes on more
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


def compare_models(records: Sequence[FeatureRecord], protocol: str) -> Outcome:
    """Models beside each other, from what their passes left.

    Rows have the last layers of all pairs of models; maps have
    `models/cka.last.TOKENS` (M, M), with .low, .high and .null; `MODEL/cka.depth.TOKENS` (S, S) of a model with itself;
    `MODEL/cka.depth.TOKENS.OTHER` (S, S') of a pair. S sites: norm1 and norm2 of every block.
    """
    check_comparable(records)
    outcome = Outcome(notes=[*_twins(records), *_sizes(records)])
    tables = []
    for tokens in (kind for kind in TOKENS if any(kind in record.grams.packed for record in records)):
        having = [record for record in records if tokens in record.grams.packed]
        packed = [record.grams.packed[tokens] for record in having]
        found = cka(packed, having[0].grams.members, equal_weights=protocol == "paper")
        _add_last_layers(having, records, tokens, found, outcome, protocol)
        _add_depth(having, tokens, found, outcome)
        outcome.notes += _constant_sites(having, tokens, found)
        tables.append(pair_table(having, tokens, found, protocol))
    _add_similarities(records, outcome, protocol)
    outcome.pairs = pl.concat(tables)
    return outcome


def _sizes(records: Sequence[FeatureRecord]) -> list[str]:
    """A word of caution for models that see the same images at different sizes."""
    sizes = {}
    for record in records:
        (height, width), (down, across) = record.shape.patch, record.shape.layout.grid
        sizes[record.title] = f"{height * down}x{width * across}"
    if len(set(sizes.values())) <= 1:
        return []
    each = ", ".join(f"{title} {size}" for title, size in sizes.items())
    return [f"models see the images at different sizes ({each}): similarity includes what the sizes change"]


def _twins(records: Sequence[FeatureRecord]) -> list[str]:
    """An alarm for models that are bit for bit the same."""
    notes = []
    for a, b in combinations(records, 2):
        if a.digest == b.digest:
            notes.append(f"{a.title} and {b.title} are the same weights under two names")
        elif a.grams.sites == b.grams.sites and all(
            torch.equal(mine, theirs) and mine.any()  # all zero: features that are the same for all images
            for mine, theirs in ((a.grams.packed[k], b.grams.packed[k]) for k in a.grams.packed if k in b.grams.packed)
        ):
            notes.append(f"{a.title} and {b.title} have different weights but bit-identical features: one is mistaken")
    return notes


def _starts(records: Sequence[FeatureRecord]) -> list[int]:
    """Where each model's sites begin among all."""
    starts = [0]
    for record in records[:-1]:
        starts.append(starts[-1] + len(record.grams.sites))
    return starts


def _depth_sites(record: FeatureRecord) -> slice:
    """The sites for similarity over depth: after the norms, or block outputs for a model that does not show them."""
    blocks = record.depth
    return slice(blocks, None) if len(record.grams.sites) > blocks else slice(0, blocks)


def _constant_sites(records: Sequence[FeatureRecord], tokens: str, found: Cka) -> list[str]:
    own, where = found.value.diagonal(), defaultdict[str, list[str]](list)
    for record, start in zip(records, _starts(records), strict=True):
        sites = record.grams.sites
        if constant := [name for name, value in zip(sites, own[start:], strict=False) if value.isnan()]:
            where["at every layer" if len(constant) == len(sites) else _few(_places(constant))].append(record.title)
    return [
        f"{tokens} features of {_few(titles)} are the same for all images {sites}: there is no similarity"
        for sites, titles in where.items()
    ]


def _places(sites: Sequence[str]) -> list[str]:
    """
    >>> _places(["norm1 1", "norm2 3", "block 2"])
    ['before attention of layer 1', 'before the MLP of layer 3', 'after layer 2']
    """
    words = {"norm1": "before attention of", "norm2": "before the MLP of", "block": "after"}
    parts = [site.split() for site in sites]
    return [f"{words[site]} layer {layer}" for site, layer in parts]


def _few(names: Sequence[str], most: int = 7) -> str:
    """A list that fits into a sentence."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _pair_rows(a: FeatureRecord, b: FeatureRecord, measure: str, value: Tensor, **options: Any) -> pl.DataFrame:
    """One row about the last layers of two models. value: a number."""
    label = Label(a.title, a.teaching, "", digest_of([a.digest, b.digest]))
    rows = tidy(label, measure, value.reshape(1), axes=("layer",), **options)
    return rows.with_columns(
        layer=pl.lit(a.depth, pl.Int32), other_model=pl.lit(b.title), other_layer=pl.lit(b.depth, pl.Int32)
    )


def _add_last_layers(
    having: Sequence[FeatureRecord],
    records: Sequence[FeatureRecord],
    tokens: str,
    found: Cka,
    outcome: Outcome,
    protocol: str,
) -> None:
    last = torch.tensor([s + r.depth - 1 for s, r in zip(_starts(having), having, strict=True)])
    place = torch.tensor([records.index(record) for record in having])
    sides = {"": found.value, ".low": found.low, ".high": found.high, ".null": found.null}
    for suffix, matrix in sides.items():
        full = torch.full((len(records), len(records)), torch.nan, dtype=torch.float64)
        full[place[:, None], place[None, :]] = matrix[last[:, None], last[None, :]]
        outcome.maps[f"models/cka.last.{tokens}{suffix}"] = full
    for (i, a), (j, b) in combinations(enumerate(having), 2):
        where = (last[i], last[j])
        value, low, high, null = (side[where].reshape(1) for side in sides.values())
        options: dict[str, Any] = {"n": found.images, "protocol": protocol, "variant": tokens}
        outcome.tables.append(_pair_rows(a, b, "cka", value, low=low, high=high, **options))
        outcome.tables.append(_pair_rows(a, b, "cka_null", null, **options))


def _add_depth(having: Sequence[FeatureRecord], tokens: str, found: Cka, outcome: Outcome) -> None:
    starts = _starts(having)
    for i, a in enumerate(having):
        for j, b in enumerate(having[i:], start=i):
            rows = found.value[starts[i] : starts[i] + len(a.grams.sites)][_depth_sites(a)]
            matrix = rows[:, starts[j] : starts[j] + len(b.grams.sites)][:, _depth_sites(b)]
            name = f"{a.title}/cka.depth.{tokens}"
            outcome.maps[name if i == j else f"{name}.{b.title}"] = matrix.clone()


def pair_table(having: Sequence[FeatureRecord], tokens: str, found: Cka, protocol: str) -> pl.DataFrame:
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
            "protocol": [protocol] * len(row),
            "model_a": pick(names, row), "site_a": pick(kinds, row), "layer_a": pick(layers, row),
            "model_b": pick(names, column), "site_b": pick(kinds, column), "layer_b": pick(layers, column),
            "value": found.value[row, column].numpy(), "ci_low": found.low[row, column].numpy(),
            "ci_high": found.high[row, column].numpy(), "null": found.null[row, column].numpy(),
            "n": [found.images] * len(row),
        },
        schema=PAIRS,
    )  # fmt: skip


def _add_similarities(records: Sequence[FeatureRecord], outcome: Outcome, protocol: str) -> None:
    """Exact CKA, Procrustes, RSA and mutual neighbours of the last layers' pooled features, each with its null."""
    n = min(len(records[0].pooled), MOST_IMAGES)
    for pooling, tokens in VARIANTS.items():
        having = [record for record in records if pooling in record.pooled.kinds]
        features = [record.features(pooling, record.depth - 1, n) for record in having]
        for similarity in SIMILARITIES.values():
            if n < similarity.least:
                note = f"{similarity.title} takes at least {similarity.least} images, there are {n}"
                outcome.notes += [note] if note not in outcome.notes else []
                continue
            matrix = torch.full((2, len(records), len(records)), torch.nan, dtype=torch.float64)
            for (i, a), (j, b) in combinations(enumerate(having), 2):
                value = similarity.function(features[i], features[j])
                null = null_mean(similarity, features[i], features[j])
                where = (records.index(a), records.index(b))
                for side, number in enumerate((value, null)):
                    matrix[side][where] = matrix[side][where[::-1]] = number
                    measure = f"similarity_{similarity.name}" + ("_null" if side else "")
                    options: dict[str, Any] = {"n": n, "variant": tokens, "protocol": protocol}
                    outcome.tables.append(_pair_rows(a, b, measure, torch.tensor(number), **options))
            for record, x in zip(having, features, strict=True):
                if (x != x[0]).any():  # constant features are like nothing, not even like themselves
                    matrix[0][records.index(record), records.index(record)] = 1
            outcome.maps[f"models/similarity.{similarity.name}.{tokens}"] = matrix[0]
            outcome.maps[f"models/similarity.{similarity.name}.{tokens}.null"] = matrix[1]
