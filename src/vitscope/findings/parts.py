"""Scores of part-level tasks: keypoints, and clusters of annotated parts."""

from __future__ import annotations

import polars as pl

from vitscope.core.analysis import Headline
from vitscope.data.dataset import PARTS
from vitscope.findings.tables import Study, curve, measured_throughout
from vitscope.findings.tasks import Scores, all_scores
from vitscope.pipeline.best_layers import Task

REGIONS = ("regions", "regions, dense")
CLUSTERS = Task("parts", "clusters of parts", "masks", Headline("purity", "purity", REGIONS))


def part_scores(study: Study) -> list[Scores]:
    """Every part-level task that was done."""
    found = all_scores(study, ("keypoints",))
    parts = [about.get("digest") for about in study.results.provenance if about.get("layout") == PARTS]
    for variant in REGIONS:
        frame = study.rows("purity", variant).filter(pl.col("provenance").is_in(parts))
        if models := measured_throughout(frame):
            found.append(Scores(CLUSTERS, frame["dataset"][0], {model: curve(frame, model) for model in models}))
    return found
