"""Decisions about devices that can be seen on any machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import torch
from vitscope.core.device import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def work():
    for _ in range(50):
        a = torch.ones(10 << 20)  # 40 MB, as the hidden layer of a block
        b = a + 1
        del a, b
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc's memory is tuned")
def test_freed_memory_is_used_again() -> None:
    def faults(how: str) -> int:
        run = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
        return int(run.stdout)

    assert faults("kept") * 10 < faults("given back")
