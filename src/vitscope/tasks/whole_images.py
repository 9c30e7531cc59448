"""What the tasks that ask about whole images share: pooled features of labelled images, and examples to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vitscope.core.analysis import Found, Stream
from vitscope.features.pooling import pooled
from vitscope.features.stored import PooledFeatures

if TYPE_CHECKING:
    from vitscope.data.dataset import LabelledSet
    from vitscope.data.samples import SampleList

PIXELS = "the pixels themselves"  # k-NN without a network
COMMONEST = "always answering the commonest class"
EXAMPLES = 24  # queries whose answers are kept to be looked at


def labelled_streams(dataset: LabelledSet, dtype: str = "auto") -> Sequence[Stream]:
    """Both lists, each once for all tasks on labelled images."""
    return [
        Stream(samples, (pooled(samples, dtype=dtype, pixels=True),), name=name)
        for name, samples in (("train", dataset.train), ("test", dataset.test))
    ]


@dataclass(frozen=True)
class LabelledFeatures:
    """Features of both lists; images that could not be read are in neither."""

    train: PooledFeatures
    test: PooledFeatures
    train_labels: Tensor  # int64 (n,)
    test_labels: Tensor
    count: int  # of the test list, with images that could not be read

    @classmethod
    def of(cls, dataset: LabelledSet, found: Found) -> LabelledFeatures:
        train, test = found.features("train"), found.features("test")
        labels = [_labels(part)[f.positions] for part, f in ((dataset.train, train), (dataset.test, test))]
        return cls(train, test, labels[0], labels[1], len(dataset.test))

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.train.kinds

    @property
    def chance(self) -> Tensor:
        """The share of test images that always answering the commonest training class gets right."""
        return (self.test_labels == self.train_labels.mode().values).double().mean()

    @property
    def asked(self) -> tuple[Tensor, int]:
        """Which images of the test list were asked about, (q,), and how many it has."""
        return self.test.positions, self.count

    def examples(self, neighbours: Tensor) -> dict[str, Tensor]:
        """A few queries and what is nearest to them, as positions in the lists. neighbours: (q, L, k) rows."""
        rows = some(len(neighbours))
        return {
            "knn.queries": self.test.positions[rows],
            "knn.neighbours": self.train.positions[neighbours[rows]],
        }


def some(count: int, most: int = EXAMPLES) -> list[int]:
    """A few of so many, evenly spread."""
    found: list[int] = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int)).tolist()
    return found


def no_cls_note(found: Found) -> list[str]:
    return [] if found.shape.layout.has_cls else ["{model} has no CLS token: its images are told by the mean token"]


def _labels(samples: SampleList) -> Tensor:
    return torch.tensor([-1 if label is None else label for label in samples.labels], dtype=torch.int64)
