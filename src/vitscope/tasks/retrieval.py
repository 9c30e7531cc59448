"""Image retrieval: are photographs of the same thing the most alike? ROxford5k, RParis6k, one's own individuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream
from vitscope.core.bootstrap import mean_interval
from vitscope.core.errors import BadData
from vitscope.core.results import NOBODY, Label, tidy
from vitscope.data.revisited import RetrievalQuery, RetrievalSet
from vitscope.data.samples import Sample, SampleList
from vitscope.features.pooling import pooled
from vitscope.tasks.nearest import Array, read_rows
from vitscope.tasks.units import chance_row, kept_units
from vitscope.tasks.whole_images import no_cls_note, some

if TYPE_CHECKING:
    from vitscope.models.shape import ModelShape

# -- protocol ------------------------------------------------------------------------------------------------

KAPPAS = (1, 5, 10)  # of mean precision
SETUPS = ("easy", "medium", "hard")
ALL = "all"  # the one setup of a set that knows no difficulty
FIRST = 10  # what was found first is kept for images


@dataclass(frozen=True)
class Protocol:
    """`paper`: whole queries, although only a box is asked for; every photograph shrunk before it is enlarged again.
    `corrected`: the query's box, every photograph resized once, its aspect ratio kept."""

    name: str = "corrected"
    query_boxes: bool = True
    shrink_first: bool = False


PAPER = Protocol("paper", query_boxes=False, shrink_first=True)
CORRECTED = Protocol()
PROTOCOLS = {"paper": PAPER, "corrected": CORRECTED}


# -- scores --------------------------------------------------------------------------------------------------


def relevant(query: RetrievalQuery, setup: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is to be found and what is to be ignored, by how hard one wants it; what is both is ignored."""
    positives, junk = {
        "easy": (query.easy, query.junk + query.hard),
        "medium": (query.easy + query.hard, query.junk),
        "hard": (query.hard, query.junk + query.easy),
        ALL: (query.easy + query.hard, query.junk),
    }[setup]
    return tuple(place for place in positives if place not in junk), junk


def positive_ranks(order: np.ndarray, positives: Sequence[int], junk: Sequence[int]) -> np.ndarray:
    """0-based ranks of the positives once junk is taken out of the ranking. order: (n,) positions, best first.

    >>> positive_ranks(np.array([3, 0, 2, 1]), positives=[0, 1], junk=[3]).tolist()
    [0, 2]
    """
    ranking = order[~np.isin(order, junk)]
    return np.flatnonzero(np.isin(ranking, positives))


def average_precision(ranks: np.ndarray, positives: int) -> float:
    """Area under the precision-recall curve by the trapezoid rule. ranks: ascending, 0-based.

    >>> average_precision(np.array([1]), positives=1)  # second of the ranking: precision goes from 0 to 1/2
    0.25
    """
    found = np.arange(len(ranks))
    before = np.where(ranks == 0, 1.0, found / np.maximum(ranks, 1))
    after = (found + 1) / (ranks + 1)
    return float(((before + after) / 2).sum() / positives)


def chance_precision(positives: int, ranked: int) -> float:
    """Average precision that a random order of `ranked` images is expected to have.

    A place is a positive with probability P / N, and then each place before it with (P - 1) / (N - 1).

    >>> chance_precision(1, 2)  # first: 1; second: 0.25
    0.625
    """
    places = np.arange(ranked)
    other = (positives - 1) / max(ranked - 1, 1)
    before = np.where(places == 0, 1.0, other)
    after = (1 + places * other) / (places + 1)
    return float((before + after).mean() / 2)


def precision_at(ranks: np.ndarray, k: int) -> float:
    """Share of positives among the first k; or, if the last positive comes earlier, among as many as it takes."""
    depth = min(int(ranks.max()) + 1, k)
    return float((ranks < depth).sum() / depth)


@dataclass(frozen=True)
class RetrievalScores:
    """By setup: average precision (q, L) and precision at 1, 5, 10 (q, L, 3); NaN where a query has nothing to find."""

    precision: Mapping[str, Tensor]
    at: Mapping[str, Tensor]
    first: Tensor  # (q, L, 10): what was found first, junk left out; rows of the database, -1 where there is no more

    def rows(self, label: Label, variant: str, protocol: str) -> list[pl.DataFrame]:
        tables = []
        for setup, values in self.precision.items():
            asked = ~values[:, 0].isnan()
            both = torch.cat([values[asked].unsqueeze(-1), self.at[setup][asked]], -1)  # (q, L, 4)
            (low, high), mean = mean_interval(both), both.mean(0)
            for i, measure in enumerate(("retrieval_map", *(f"retrieval_mp@{k}" for k in KAPPAS))):
                options: dict[str, Any] = {"n": int(asked.sum()), "variant": f"{variant} {setup}", "protocol": protocol}
                rows = tidy(label, measure, mean[:, i], axes=("layer",), low=low[:, i], high=high[:, i], **options)
                tables.append(rows)
        return tables


# -- evaluation on features ----------------------------------------------------------------------------------


def evaluate(
    queries: Sequence[Array], database: Sequence[Array], truth: Sequence[RetrievalQuery], *, block: int = 256
) -> RetrievalScores:
    """Rank the whole database for every query at every layer. queries: L of (q, D); database: L of (n, D)."""
    setups = SETUPS if any(query.hard for query in truth) else (ALL,)
    shape = (len(truth), len(queries))
    precision = {setup: np.full(shape, np.nan) for setup in setups}
    at = {setup: np.full((*shape, len(KAPPAS)), np.nan) for setup in setups}
    first = torch.full((*shape, FIRST), -1)
    for layer, (asked, known) in enumerate(zip(queries, database, strict=True)):
        candidates = F.normalize(read_rows(known, 0, len(known)), dim=1)
        for start in range(0, len(truth), block):
            similarity = F.normalize(read_rows(asked, start, start + block), dim=1) @ candidates.T
            orders = similarity.argsort(dim=1, descending=True, stable=True)  # (Q, n)
            for i, order in enumerate(orders.numpy(), start):
                found = order[~np.isin(order, truth[i].junk)][:FIRST]
                first[i, layer, : len(found)] = torch.from_numpy(found)
                for setup in setups:
                    positives, junk = relevant(truth[i], setup)
                    if positives:
                        ranks = positive_ranks(order, positives, junk)
                        precision[setup][i, layer] = average_precision(ranks, len(positives))
                        at[setup][i, layer] = [precision_at(ranks, k) for k in KAPPAS]
    answered = {setup for setup in setups if not np.isnan(precision[setup]).all()}
    if not answered:
        raise BadData("no query has anything to find: the ground truth names no positive images")
    return RetrievalScores(
        {setup: torch.from_numpy(precision[setup]) for setup in setups if setup in answered},
        {setup: torch.from_numpy(at[setup]) for setup in setups if setup in answered},
        first,
    )


# -- the analysis ---------------------------------------------------------------------------------------------


SHOWN = ("cls medium", "mean medium", "cls all", "mean all")  # in the table, the first that there is


class Retrieval(Analysis):
    """Image retrieval: are photographs of the same thing the most alike?

    `paper`: whole queries, although only a box is asked for; every photograph shrunk before it is enlarged again.
    `corrected`: the query's box, every photograph resized once, its aspect ratio kept.
    """

    name = "retrieval"
    title = "retrieval"
    domain = "why"
    kind = "retrieval"
    measures = (
        Measure("retrieval_map", "mAP", "mean average precision of rankings of the database by cosine"),
        *(Measure(f"retrieval_mp@{k}", f"mP@{k}", f"share of right images among the first {k}") for k in KAPPAS),
    )
    headline = Headline("retrieval_map", "mAP", variants=SHOWN, unit="query", chance="a random order")

    protocol: Literal["corrected", "paper"] = "corrected"

    def passes(self, dataset: RetrievalSet, shape: ModelShape) -> Sequence[Stream]:
        protocol = PROTOCOLS[self.protocol]
        geometry = "shrunk" if protocol.shrink_first else "crop"
        streams = [Stream(dataset.database, (pooled(dataset.database),), geometry, "database")]
        if not self._queries_are_known(dataset):
            asked = dataset.query_images if protocol.query_boxes else _whole(dataset.query_images)
            streams.append(Stream(asked, (pooled(dataset.database),), geometry, "queries"))
        return streams

    def _queries_are_known(self, dataset: RetrievalSet) -> bool:
        """The queries are images of the database: their features are there already."""
        inside = all(query.position is not None for query in dataset.queries)
        return inside and PROTOCOLS[self.protocol].query_boxes

    def reduce(self, dataset: RetrievalSet, found: Found) -> Outcome:
        known = found.features("database")
        row = {position: i for i, position in enumerate(known.positions.tolist())}
        outcome = Outcome(notes=no_cls_note(found))
        for kind in known.kinds:
            database = known.layers(kind)
            queries: Sequence[Array]
            if self._queries_are_known(dataset):
                numbers = [i for i, query in enumerate(dataset.queries) if query.position in row]
                rows = torch.tensor([row[dataset.queries[i].position or 0] for i in numbers], dtype=torch.int64)
                queries = [_Picked(layer, rows) for layer in database]
            else:
                asked = found.features("queries")
                numbers, queries = asked.positions.tolist(), asked.layers(kind)
            truth = [_among(dataset.queries[number], row) for number in numbers]
            scores = evaluate(queries, database, truth)
            outcome.tables += scores.rows(NOBODY, kind, self.protocol)
            if kind == known.kinds[0]:
                chosen = some(len(numbers))
                first = scores.first[chosen]
                outcome.maps["retrieval.queries"] = torch.tensor(numbers)[chosen]
                places = known.positions[first.clamp_min(0)]
                outcome.maps["retrieval.first"] = torch.where(first >= 0, places, -1)
                self._keep_units(outcome, scores, truth, numbers, len(database[0]), len(dataset.queries))
        return outcome

    def _keep_units(
        self,
        outcome: Outcome,
        scores: RetrievalScores,
        truth: Sequence[RetrievalQuery],
        numbers: Sequence[int],
        images: int,
        total: int,
    ) -> None:
        setup = next((setup for setup in ("medium", ALL) if setup in scores.precision), None)
        if setup is None:
            return
        asked = ~scores.precision[setup][:, 0].isnan()
        wanted = [relevant(query, setup) for query, there in zip(truth, asked.tolist(), strict=True) if there]
        chance = torch.tensor([chance_precision(len(found), images - len(set(junk))) for found, junk in wanted])
        ids = torch.tensor(numbers)[asked]
        outcome.maps |= kept_units(self.name, scores.precision[setup][asked], chance, ids, total)
        outcome.tables.append(chance_row("retrieval_map", chance, self.protocol))


class _Picked:
    """Some rows of an array, in an order of their own."""

    def __init__(self, array: Array, rows: Tensor) -> None:
        self.array, self.rows = array, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice) -> Tensor:
        return read_rows(self.array, 0, len(self.array))[self.rows[which]]


def _whole(images: SampleList) -> SampleList:
    return SampleList((Sample(sample.id, sample.path) for sample in images), origin=images.origin)


def _among(query: RetrievalQuery, row: Mapping[int, int]) -> RetrievalQuery:
    """The query's truth in rows of features: images that could not be read are neither to be found nor ignored."""
    parts = ((row[p] for p in part if p in row) for part in (query.easy, query.hard, query.junk))
    easy, hard, junk = (tuple(part) for part in parts)
    return RetrievalQuery(easy, hard, junk)
