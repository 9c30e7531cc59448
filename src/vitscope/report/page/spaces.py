"""Features in the plane: projections of each model's last layer, packed to two bytes per point."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from vitscope.core.results import Results
from vitscope.report.page.models import PageModel
from vitscope.report.page.words import rounded

PROJECTIONS = {"tsne": "t-SNE", "pca": "principal components"}


def space_data(results: Results, models: Sequence[PageModel]) -> list[dict[str, Any]] | None:
    """One entry per model that has a projection; None if none has."""
    spaces = []
    for position, model in enumerate(models):
        points = {name: results.maps.get(f"{model.title}/projection.{name}") for name in PROJECTIONS}
        present = {name: found for name, found in points.items() if found is not None and len(found)}
        if not present:
            continue
        labels = results.maps.get(f"{model.title}/projection.labels")
        share = results.maps.get(f"{model.title}/projection.pca.share")
        spaces.append(
            {
                "model": position,
                "points": {name: _packed(found) for name, found in present.items()},
                "labels": None if labels is None else labels.long().tolist(),
                "share": None if share is None else [rounded(part, 3) for part in share.tolist()],
            }
        )
    return spaces or None


def _packed(points: Tensor) -> str:
    """Coordinates (n, 2) scaled together into a square of 256 x 256, x and y by turns."""
    values = np.nan_to_num(points[:, :2].double().numpy())
    low, high = values.min(0), values.max(0)
    extent = max(float((high - low).max()), 1e-12)
    centred = (values - (low + high) / 2) / extent + 0.5
    return base64.b64encode(np.rint(255 * centred).clip(0, 255).astype(np.uint8).tobytes()).decode()
