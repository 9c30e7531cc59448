"""What every statistic must hold, one tester for all of them: whoever adds one is held to it without asking.

However images are batched, sharded and merged, the result is the same; it is that of a plain float64 reference; a state
survives the disk; an image counted twice is an error; degenerate input gives no NaN; nothing seen is written into.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.oracles.statistics import REFERENCES
from tests.support.signals import COUNT, DEGENERATE, SHAPES, Shown, random_signals
from tests.support.statistics import PASSED_ON, all_statistics, cases, flatten, title, watches
from vitscope.attention.patterns import late_from
from vitscope.core.analysis import Watch
from vitscope.core.errors import BadData
from vitscope.core.files import TensorFile, write_tensors
from vitscope.core.statistic import Statistic
from vitscope.features.cka import BOOTSTRAP_FROM
from vitscope.models.shape import ModelShape

CUTS = (0, 32, 64, COUNT)  # where shards end: whole blocks of CKA
READABLE = [i for i in range(COUNT) if i not in (5, 40, 41)]  # the others are broken: their places stay empty
TOO_FEW = {"grams", "norm_grams"}  # which say that one image is too few to be compared with itself

every_statistic = pytest.mark.parametrize("watch", cases(), ids=title)
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def feed(statistic: Statistic, shown: Shown, rows: Sequence[int], size: int = 16) -> Statistic:
    """Show images in batches; one that compares images within blocks gets whole blocks."""
    size = getattr(statistic, "block", size)
    for start in range(0, COUNT, size):
        if batch := [row for row in rows if start <= row < start + size]:
            shown.to(statistic, batch)
    return statistic


def shards(watch: Watch, shown: Shown) -> list[Statistic]:
    parts = (range(start, stop) for start, stop in pairwise(CUTS))
    return [feed(watch.make(shown.shape), shown, [i for i in part if i in READABLE]) for part in parts]


def joined(watch: Watch, shape: ModelShape, parts: Sequence[Statistic]) -> Statistic:
    merged = watch.make(shape)
    for part in parts:
        merged.merge(part)
    return merged


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], *, rtol: float, atol: float = 0.0) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():

        def told(message: str, name: str = name) -> str:
            return f"{name}: {message}"

        close = torch.testing.assert_close
        close(found[name], value, rtol=rtol, atol=atol, equal_nan=True, check_dtype=False, msg=told)


def test_every_statistic_is_tested() -> None:
    assert all_statistics() == {watch.statistic for watch in cases()} | PASSED_ON
    assert {kind.name for kind in all_statistics() - PASSED_ON} == set(REFERENCES)
    assert not PASSED_ON & {watch.statistic for watch in watches()}  # what streams by must merge


@every_shape
@every_statistic
def test_shards_in_any_order_are_one_pass(watch: Watch, shape: ModelShape) -> None:
    shown = random_signals(shape)
    expected = flatten(feed(watch.make(shape), shown, READABLE).result())
    for first, *others in permutations(shards(watch, shown)):
        for parts in ([first, *others], [first, joined(watch, shape, others)]):
            merged = joined(watch, shape, parts)
            assert merged.count == len(READABLE)
            assert_same(flatten(merged.result()), expected, rtol=1e-9, atol=1e-12)


@every_shape
@every_statistic
def test_batches_of_any_size_are_the_same(watch: Watch, shape: ModelShape) -> None:
    shown = random_signals(shape)
    expected = flatten(feed(watch.make(shape), shown, READABLE).result())
    for size in (1, 7, COUNT):
        found = flatten(feed(watch.make(shape), shown, READABLE, size).result())
        assert_same(found, expected, rtol=1e-5, atol=1e-6)


@every_shape
@every_statistic
def test_it_agrees_with_a_plain_version_in_float64(watch: Watch, shape: ModelShape) -> None:
    shown = random_signals(shape)
    found = flatten(feed(watch.make(shape), shown, READABLE).result())
    expected = REFERENCES[watch.statistic.name](shown, READABLE, **dict(watch.settings))
    assert expected
    half = dict(watch.settings).get("dtype") == "float16"
    for name, value in expected.items():  # float32 is as exact as the largest number allows
        atol = 2e-5 * max(1.0, value[~value.isnan()].abs().max().item()) if value.numel() else 0.0
        assert_same({name: found[name]}, {name: value}, rtol=1e-3 if half else 2e-5, atol=atol)


@every_shape
@every_statistic
def test_a_state_survives_the_disk(watch: Watch, shape: ModelShape, tmp_path: Path) -> None:
    parts = shards(watch, random_signals(shape))
    expected = flatten(joined(watch, shape, parts).result())
    back = []
    for number, part in enumerate(parts):
        write_tensors(tmp_path / f"{number}.safetensors", part.state())
        on_disk, in_memory = watch.make(shape), watch.make(shape)
        on_disk.load_state(TensorFile(tmp_path / f"{number}.safetensors"))
        in_memory.load_state(part.state())
        for again in (on_disk, in_memory):
            assert_same(again.state(), part.state(), rtol=0)
        back.append(on_disk)
    assert_same(flatten(joined(watch, shape, back).result()), expected, rtol=0)


@every_shape
@every_statistic
def test_a_shard_of_broken_images_changes_nothing(watch: Watch, shape: ModelShape, tmp_path: Path) -> None:
    first, *others = shards(watch, random_signals(shape))
    expected = flatten(joined(watch, shape, [first, *others]).result())
    write_tensors(tmp_path / "empty.safetensors", watch.make(shape).state())
    empty = watch.make(shape)
    empty.load_state(TensorFile(tmp_path / "empty.safetensors"))
    assert_same(flatten(joined(watch, shape, [first, empty, *others]).result()), expected, rtol=0)
    assert_same(flatten(joined(watch, shape, [empty, first, *others]).result()), expected, rtol=0)


@every_statistic
def test_an_image_counted_twice_is_an_error(watch: Watch) -> None:
    shown = random_signals(SHAPES["CLS"])
    whole = feed(watch.make(shown.shape), shown, READABLE)
    for part in shards(watch, shown):
        with pytest.raises(ValueError, match="both states"):
            whole.merge(part)


@every_shape
@every_statistic
def test_nothing_that_is_seen_is_written_into(watch: Watch, shape: ModelShape) -> None:
    shown = random_signals(shape)
    names = ("attention", "tokens", "norms", "skip", "branch", "images", "mixed", "weight")
    before = {name: getattr(shown, name).clone() for name in names}
    masks = [annotations.coverage.clone() for annotations in shown.annotations]
    statistic = watch.make(shape)
    for start in range(0, COUNT, 32):  # stretches are views of what is shown: a write would be seen below
        shown.to(statistic, range(start, min(start + 32, COUNT)))
    statistic.result()
    assert all(torch.equal(getattr(shown, name), value) for name, value in before.items())
    assert all(torch.equal(a.coverage, mask) for a, mask in zip(shown.annotations, masks, strict=True))


def undefined(name: str, value: Tensor, shown: Shown, kind: str, blocks: float) -> Tensor:
    """Where a number does not exist, and is NaN so that no table shows it."""
    nowhere = torch.zeros(value.shape, dtype=torch.bool)
    everywhere = ~nowhere
    part, _, measure = name.rpartition(".")
    late = late_from(shown.shape.depth)
    if measure == "repetition":  # of the maps of late layers alone
        nowhere[:, :late] = True
    if measure == "late_stability":
        nowhere[:late] = True
    if measure in ("stability", "late_stability") and kind == "a single image":  # nothing to resample
        return everywhere
    if part in ("cka", "null", "low", "high") and kind in ("constant tokens", "silent branches"):
        return everywhere  # what does not vary is like nothing
    if part in ("low", "high") and blocks < BOOTSTRAP_FROM:  # too few to resample
        return everywhere
    if measure in ("corloc", "mask_iou", "whole"):  # nothing to discover where there is no object
        nowhere[[not annotations.coverage.any() for annotations in shown.annotations]] = True
    if measure in ("shared", "shared_mean") and kind == "a single image":  # nobody to share with
        return everywhere
    if part == "ratios" and kind == "silent branches":  # over nothing
        return everywhere
    return nowhere


@every_shape
@every_statistic
@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_input_gives_no_nan(kind: str, watch: Watch, shape: ModelShape) -> None:
    shown = DEGENERATE[kind](random_signals(shape))
    statistic = feed(watch.make(shape), shown, range(len(shown)))
    if kind == "a single image" and statistic.name in TOO_FEW:
        with pytest.raises(BadData, match="too few"):
            statistic.result()
        return
    numbers = flatten(statistic.result())
    blocks = numbers.get("blocks", torch.tensor(0)).item()
    for name, value in numbers.items():
        bad = ~torch.isfinite(value) & ~undefined(name, value, shown, kind, blocks)
        assert not bad.any(), f"{name} has {int(bad.sum())} of {bad.numel()}"
