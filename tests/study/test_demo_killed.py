"""The demo as people run it, killed without warning again and again: it ends in the results of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from vitscope.results import Results

KILLS = 10
KEYS = ["model", "dataset", "layer", "head", "measure", "variant", "protocol"]


def demo(out):
    code = "import sys; from vitscope.cli import main; main(['demo', '--out', sys.argv[1]])"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, str(out)], env=environment, stderr=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_kills_do_not_change_the_results(tmp_path):
    start = time.monotonic()
    assert demo(tmp_path / "calm").wait() == 0
    whole = time.monotonic() - start
    chance = random.Random(0)
    for _ in range(KILLS):
        process = demo(tmp_path / "killed")
        with pytest.raises(subprocess.TimeoutExpired):  # early enough that all ten fit before its end
            process.wait(timeout=chance.uniform(0.02, 0.16) * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert demo(tmp_path / "killed").wait() == 0
    calm, disturbed = (Results.load(tmp_path / name) for name in ("calm", "killed"))
    calm_table, table = calm.table.sort(KEYS), disturbed.table.sort(KEYS)
    assert table.select(KEYS).equals(calm_table.select(KEYS))
    for column in ("value", "ci_low", "ci_high"):
        assert np.allclose(table[column], calm_table[column], rtol=1e-6, atol=1e-9, equal_nan=True), column
    assert disturbed.maps.keys() == calm.maps.keys()
    for name, expected in calm.maps.items():
        assert np.allclose(disturbed.maps[name].numpy(), expected.numpy(), rtol=1e-5, atol=1e-7, equal_nan=True), name
    assert (tmp_path / "killed" / "report.html").stat().st_size > 100_000
