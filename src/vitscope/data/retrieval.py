"""One entry for all retrieval data: the revisited benchmarks, or a folder of individuals."""

from __future__ import annotations

from pathlib import Path

from vitscope.core.reading import user_path
from vitscope.data.individuals import open_individuals
from vitscope.data.revisited import DATASETS, GROUND_TRUTH, RetrievalSet, open_revisited


def open_retrieval(root: Path | str) -> RetrievalSet:
    """ROxford5k or RParis6k if there is a ground truth (`gnd_*.pkl`); otherwise one subfolder per individual."""
    root = user_path(root)
    if any(list(folder.glob(GROUND_TRUTH)) for folder in (root, *(root / name for name in DATASETS))):
        return open_revisited(root)
    return open_individuals(root)
