"""Retrieval scores against the revisited benchmark's own procedure: ranks shifted past the junk, one at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vitscope.data.revisited import RetrievalQuery
from vitscope.tasks.retrieval import KAPPAS, evaluate


def official(order: np.ndarray, ok: list[int], junk: list[int]) -> tuple[float, list[float]]:
    """Walks down the ranking, counting what is passed."""
    passed, found, ap, hits = 0, 0, 0.0, []
    for position in order.tolist():
        if position in junk:
            continue
        if position in ok:
            before = 1.0 if passed == 0 else found / passed
            found += 1
            ap += (before + found / (passed + 1)) / 2 / len(ok)
            hits.append(passed + 1)
        passed += 1
    at = []
    for k in KAPPAS:
        depth = min(max(hits), k)
        at.append(sum(hit <= depth for hit in hits) / depth)
    return ap, at


def test_easy_medium_and_hard_at_every_layer() -> None:
    generator = np.random.default_rng(0)
    queries, database = (torch.from_numpy(generator.normal(size=(2, n, 6))).float() for n in (9, 40))
    truth = []
    for _ in range(9):
        picked = generator.permutation(40)[:18].tolist()
        truth.append(RetrievalQuery(tuple(picked[:5]), tuple(picked[5:9]), tuple(picked[9:])))
    truth[3] = RetrievalQuery((), truth[3].hard, truth[3].junk)  # nothing easy
    scores = evaluate(list(queries), list(database), truth, block=4)
    for layer in range(2):
        known = database[layer].double().numpy()
        for i, query in enumerate(truth):
            asked = queries[layer, i].double().numpy()
            cosine = known @ asked / np.linalg.norm(known, axis=1)
            order = np.argsort(-cosine, kind="stable")
            setups = {
                "easy": (query.easy, query.junk + query.hard),
                "medium": (query.easy + query.hard, query.junk),
                "hard": (query.hard, query.junk + query.easy),
            }
            for setup, (ok, junk) in setups.items():
                if not ok:
                    assert scores.precision[setup][i, layer].isnan()
                    continue
                ap, at = official(order, list(ok), list(junk))
                assert scores.precision[setup][i, layer].item() == pytest.approx(ap)
                assert scores.at[setup][i, layer].tolist() == pytest.approx(at)
