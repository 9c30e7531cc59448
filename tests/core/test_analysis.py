"""What every analysis must have: a digest that no setting escapes; and shards that follow from the list alone."""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal, get_args, get_origin

import pytest

from vitscope.core.analysis import BATCH, SHARD, Analysis, shards_of
from vitscope.features.extraction import Extraction
from vitscope.pipeline.registry import ANALYSES

KINDS: list[type[Analysis]] = [*ANALYSES.values(), Extraction]


def others(annotation: Any, value: Any) -> list[Any]:
    """Other values of a setting, by its type."""
    if get_origin(annotation) is Literal:
        return [choice for choice in get_args(annotation) if choice != value]
    if annotation is bool:
        return [not value]
    if annotation is int:
        return [value + 1]
    if annotation is float:
        return [value / 2]  # a share stays one
    if annotation == int | None:
        return [256, 257]
    if get_origin(annotation) is tuple:
        return [value[:-1], value[::-1]]
    raise AssertionError(f"say what else a setting of type {annotation} can be")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_any_setting_changes_the_digest(kind: type[Analysis]) -> None:
    usual = kind()
    assert kind().digest == usual.digest
    digests = [usual.digest]
    for name, field in kind.model_fields.items():
        digests += [kind(**{name: other}).digest for other in others(field.annotation, getattr(usual, name))]
    assert len(set(digests)) == len(digests)
    assert len(digests) > len(kind.model_fields)


def test_analyses_with_the_same_settings_are_told_apart() -> None:
    assert len({kind().digest for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("count", [0, 1, 31, 64, 65, 200, 320, 1024, 1025, 5000, 40_960, 1_281_167])
def test_shards_cover_the_list_in_whole_batches(count: int) -> None:
    shards = shards_of(count)
    assert list(chain.from_iterable(shards)) == list(range(count))
    assert all(len(shard) % BATCH == 0 and SHARD[0] <= len(shard) <= SHARD[1] for shard in shards[:-1])


def test_sums_of_imagenet_are_not_written_thousands_of_times() -> None:
    """Sums of attention are 17 MB for ViT-B/16 whatever the shard: shards of 256 images wrote 85 GB of them."""
    assert len(shards_of(1_281_167)) * 17e6 < 10e9
