"""The layer whose masks are shown is the one that the table of best layers names."""

from __future__ import annotations

import numpy as np
import pytest

from vitscope.core.results import Label, Results
from vitscope.pipeline.best_layers import best_layers
from vitscope.tasks.video_segmentation import SequenceScores, VideoScores


def test_the_best_layer_is_that_of_the_mean_over_objects() -> None:
    one = np.array([[0.9], [0.6]])  # two layers, one object
    three = np.array([[0.5, 0.5, 0.5], [0.7, 0.7, 0.7]])
    scores = VideoScores(
        tuple(
            SequenceScores(name, *4 * (np.repeat(values[..., None], 4, axis=2),))
            for name, values in (("a", one), ("b", three))
        )
    )
    # over objects 0.6 and 0.675; over sequences it would have been 0.7 and 0.65
    assert scores.best_layer == 1
    results = Results()
    results.extend(scores.rows(Label("m", "none", "d", "p"), "corrected"))
    (cell,) = best_layers(results.table).cells.values()
    assert cell.layer == scores.best_layer + 1
    assert cell.value == pytest.approx(0.675)
