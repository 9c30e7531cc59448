"""What a finished run says about the models that are looked at: the layer for each task, the kind of each head."""

from __future__ import annotations

from typing import Any

from vitscope.core.results import Results
from vitscope.pipeline.best_layers import best_layers


def study_of(results: Results) -> dict[str, Any]:
    """By model title: `tasks` (task, dataset, score, best layer, value in words) and `kinds` (L, H) where studied."""
    table = best_layers(results.table)
    found: dict[str, Any] = {}
    for title, _ in table.models:
        found[title] = {
            "tasks": [
                {
                    "task": column.task.title,
                    "dataset": column.dataset,
                    "score": column.score,
                    "layer": cell.layer,
                    "value": column.task.show(cell.value),
                }
                for column, cell in table.row(title)
                if cell and column.protocol == "corrected"
            ],
            "kinds": None,
        }
    for name, kinds in results.maps.items():
        title, _, what = name.rpartition("/")
        if what == "kind":
            found.setdefault(title, {"tasks": []})["kinds"] = kinds.long().tolist()
    return found
