"""Scores of part-level tasks: keypoints, and clusters of annotated parts."""

from __future__ import annotations

import polars as pl

from vitscope.study.findings.tables import Study, curve, measured_throughout
from vitscope.study.findings.tasks import Scores, all_scores
from vitscope.tasks.table import Task

REGIONS = ("regions", "regions, dense")
CLUSTERS = Task("parts", "clusters of parts", "purity", "purity", REGIONS, percent=False)
PARTS = "PartImageNet"  # how the origin of pictures with part masks begins; other masks are taken to be objects


def part_scores(study: Study) -> list[Scores]:
    """Every part-level task that was done."""
    found = all_scores(study, ("keypoints",))
    origins = {about.get("digest"): str(about.get("samples_origin", "")) for about in study.results.provenance}
    parts = [digest for digest, origin in origins.items() if origin.startswith(PARTS)]
    for variant in REGIONS:
        frame = study.rows("purity", variant).filter(pl.col("provenance").is_in(parts))
        if models := measured_throughout(frame):
            found.append(Scores(CLUSTERS, frame["dataset"][0], {model: curve(frame, model) for model in models}))
    return found
