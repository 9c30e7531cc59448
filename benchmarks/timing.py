"""Timing that survives a busy machine: candidates take turns, and the best round of each counts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the bench table. better: whether smaller or larger values are."""

    name: str
    value: float
    target: float | None
    unit: str = "x"
    better: str = "smaller"
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "smaller" else self.value >= self.target


def architecture(quick: bool) -> str:
    """ViT-B/16, about which the targets speak; or the smallest one, to see that a measurement works."""
    return "random:vit_tiny_patch16_224" if quick else "random:vit_base_patch16_224"


def interleaved(
    candidates: Mapping[str, Callable[[], object]], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the best round of each candidate, all measured in turns after one warm-up round.

    clock: `time.process_time`, with one thread, gives CPU seconds, which hold on a busy machine too.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for turn in range(rounds + 1):
        for name, run in candidates.items():
            gc.collect()
            start = clock()
            run()
            seconds = clock() - start
            if turn:
                best[name] = min(best[name], seconds)
    return best


def peak_memory_mb() -> float:
    """Largest resident size of this process so far, in MB. (`getrusage` would begin with the parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
