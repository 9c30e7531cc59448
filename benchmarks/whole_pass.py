"""The pass of a study, all that watches it together, and how many operations a device is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.features import annotated
from benchmarks.timing import Row, architecture, interleaved
from vitscope.attention.analysis import AllAttention
from vitscope.attention.saliency import SaliencyStatistic
from vitscope.core.analysis import BATCH
from vitscope.core.device import keep_freed_memory
from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch
from vitscope.features.gram_statistic import GramStatistic, NormGramStatistic
from vitscope.features.pooling import PooledStatistic
from vitscope.features.residual import ResidualStatistic
from vitscope.models import Backbone, load_model
from vitscope.models.observe import Onlooker


def statistics(backbone: Backbone) -> list[Statistic]:
    """Attention, saliency, pooled features and Grams."""
    shape = backbone.layout, backbone.depth
    grams = [GramStatistic(*shape, block=BATCH), NormGramStatistic(*shape, block=BATCH)]
    return [AllAttention.of(backbone.shape), SaliencyStatistic(*shape), PooledStatistic(backbone.layout), *grams]


def watch(backbone: Backbone, batch: Batch, watching: list[Statistic]) -> None:
    for statistic in watching:
        statistic.begin(batch)
    backbone.trace(batch.images, watching)
    for statistic in watching:
        statistic.end()


def rows(quick: bool = False) -> Iterator[Row]:
    """One thread and CPU time, at the batch of a study, with freed memory kept as a study's workers keep it."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    backbone = load_model(architecture(quick))
    batch = annotated(backbone, BATCH)

    def bare() -> None:
        with torch.no_grad():
            backbone.module.forward_features(backbone.preprocessing.normalise(batch.images))  # type: ignore[operator]

    def residual() -> None:
        watch(backbone, batch, [*statistics(backbone), ResidualStatistic(backbone.layout, backbone.depth, block=BATCH)])

    candidates: dict[str, Callable[[], object]] = {
        "bare": bare,
        "shown": lambda: backbone.trace(batch.images, [Onlooker()]),
        "whole": lambda: watch(backbone, batch, statistics(backbone)),
        "residual": residual,
    }
    best = interleaved(candidates, rounds=1 if quick else 5, clock=time.process_time)
    torch.set_num_threads(threads)
    note = f"CPU time, 1 thread, batch {BATCH}, bare {best['bare'] / BATCH:.3f} s per image"
    whole = "attention, saliency, pooled features and Grams / bare forward"
    yield Row(whole, best["whole"] / best["bare"], 1.15, note=note)
    yield Row("the same with the residual analysis / bare forward", best["residual"] / best["bare"], None, note=note)
    yield Row("attention that is only shown / bare forward", best["shown"] / best["bare"], None, note=note)
    yield from operation_rows(backbone, batch)
    yield from transformers_rows(quick)


def transformers_rows(quick: bool) -> Iterator[Row]:
    """What Hugging Face's transformers takes to hand out attention, of which nothing is made yet."""
    from transformers import ViTConfig, ViTModel  # imports torchvision: after vitscope

    small: dict[str, Any] = {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768} if quick else {}
    networks: dict[str, Any] = {}
    for name in ("sdpa", "eager"):
        config = ViTConfig(**{"attn_implementation": name, **small})
        networks[name] = ViTModel(config, add_pooling_layer=False).train(False)
    images = torch.randn(BATCH, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        candidates: dict[str, Callable[[], object]] = {
            "bare": lambda: networks["sdpa"](images),
            "attentions": lambda: networks["eager"](images, output_attentions=True),
        }
        best = interleaved(candidates, rounds=1 if quick else 3, clock=time.process_time)
    torch.set_num_threads(threads)
    note = f"CPU time, 1 thread, batch {BATCH}: for comparison"
    yield Row("transformers' output_attentions / its bare forward", best["attentions"] / best["bare"], None, note=note)


class Operations(TorchDispatchMode):
    """Counts what a device would be asked to do."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.count += isinstance(found, torch.Tensor) and found.device.type == "meta" and not func.is_view
        return found


def operation_rows(backbone: Backbone, batch: Batch) -> Iterator[Row]:
    """Between the first and the last block of a batch, on the device that only counts."""
    device = replace(backbone, module=deepcopy(backbone.module), device=torch.device("meta"))
    counts = {}
    for name, watching in (("bare", []), ("whole", statistics(backbone))):
        for statistic in watching:
            statistic.begin(batch)
        with Operations() as operations:
            device.trace(batch.images, watching)
        counts[name] = operations.count
    note = f"kernels, views aside; the bare forward has {counts['bare']}; no value is read back"
    yield Row("operations of a watched batch on a GPU", counts["whole"], None, unit="", note=note)
