"""While a batch goes through the blocks, no statistic reads a value back: on a GPU each would wait for it.

Tensors of the meta device have shapes and no values: whoever reads one, or copies it to the host, fails here as it
would stall there. Whatever stays on the host all along (positions in the list, masks) is free. Nor does the end of a
batch wait: sums and rows stay on the device until the shard is done, except what is too large for that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.signals import SHAPES, random_signals
from tests.support.statistics import cases, title
from vitscope.core.analysis import Watch

# Features are too large to stay, Grams are centred in float64, cuts are made on the host: each leaves in one go.
LEAVE_WITH_THE_BATCH = {"pooled", "regions", "grams", "norm_grams", "residual", "discovery"}


class NoHostReads(TorchDispatchMode):
    """Counts operations on the device; raises on a value that is read, and on a copy to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = any(isinstance(x, Tensor) and x.device.type == "meta" for x in (*args, *kwargs.values()))
        if device:
            self.count += 1
            assert "_local_scalar_dense" not in func.name(), "a value of the device is read"
            assert str(kwargs.get("device")) != "cpu", f"{func.name()} copies to the host"
        return func(*args, **kwargs)


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("watch", cases(), ids=title)
def test_while_a_batch_is_watched_nothing_is_read_back(watch: Watch, layout: str) -> None:
    signals = ("attention", "tokens", "norms", "skip", "branch", "mixed", "weight")
    shown = random_signals(SHAPES[layout])
    device = replace(shown, **{name: getattr(shown, name).to("meta") for name in signals})
    statistic = watch.make(shown.shape)
    indices = range(len(shown))
    statistic.begin(shown.batch(indices))
    with NoHostReads() as mode:
        device.blocks(statistic, indices)
        if statistic.name not in LEAVE_WITH_THE_BATCH:
            statistic.end()
    assert mode.count > 0


def test_a_statistic_that_reads_is_caught() -> None:
    values = torch.empty(3, device="meta")
    for read in (
        lambda: values.sum().item(),
        lambda: bool(values.any()),
        lambda: values.cpu(),
        lambda: values[values > 0],
    ):
        with pytest.raises((RuntimeError, AssertionError, NotImplementedError)), NoHostReads():
            read()
