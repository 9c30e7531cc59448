"""What the statistics of sinks and tokens add to a pass that the attention study watches anyway."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import torch

from benchmarks.attention import images
from benchmarks.timing import Row, architecture
from vitscope.attention.analysis import AllAttention
from vitscope.attention.writes import WriteStatistic
from vitscope.core.analysis import BATCH
from vitscope.features.tokens import PatchSample, TokenStatistic
from vitscope.models import load_model


class Stopwatch:
    """CPU seconds spent in some methods: differences of whole passes would drown in the pass's own noise."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, statistic: Any, *methods: str) -> Any:
        for method in methods:
            setattr(statistic, method, self._timed(getattr(statistic, method)))
        return statistic

    def _timed(self, method: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            start = time.process_time()
            method(*arguments)
            self.seconds += time.process_time() - start

        return timed


def rows(quick: bool = False) -> Iterator[Row]:
    """One thread, CPU time, a bare forward and a watched one in turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    backbone = load_model(architecture(quick))
    bare, added, parts = [], [], dict[str, float]()
    for turn in range(2 if quick else 6):
        batch = images(backbone, BATCH)
        start = time.process_time()
        with torch.no_grad():
            backbone.module.forward_features(backbone.preprocessing.normalise(batch.images))  # type: ignore[operator]
        seconds = time.process_time() - start
        sinks, tokens, writes = Stopwatch(), Stopwatch(), Stopwatch()
        study = AllAttention.of(backbone.shape)
        sinks.of(study.sinks, "see", "end")
        statistics = [
            study,
            tokens.of(TokenStatistic(backbone.layout, backbone.depth, block=BATCH), "tokens", "end"),
            writes.of(WriteStatistic(backbone.layout, backbone.heads), "writes", "end"),
            tokens.of(PatchSample(backbone.layout, backbone.depth, images=1024, each=1), "tokens", "end"),
        ]
        for statistic in statistics:
            statistic.begin(batch)
        backbone.trace(batch.images, statistics)
        for statistic in statistics:
            statistic.end()
        if turn:  # the first warms up
            bare.append(seconds)
            added.append(sinks.seconds + tokens.seconds + writes.seconds)
            parts = {"sinks": sinks.seconds, "tokens": tokens.seconds, "writes": writes.seconds}
    torch.set_num_threads(threads)
    note = f"CPU time, 1 thread, median of {len(bare)}, bare {median(bare):.2f} s a batch of {BATCH}; "
    note += ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in parts.items())
    yield Row("sinks, norms, cosines, position, frequency, spectrum, head writes / bare forward",
              median(added) / median(bare), 0.05, note=note)  # fmt: skip
