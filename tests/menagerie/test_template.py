"""Shape must be seen, not matched: what pixel templates and colours reach without learning anything."""

import numpy as np
import pytest

from vitscope.menagerie import World, shelf


def grey(images: np.ndarray) -> np.ndarray:
    """(n, 64, 64, 3) -> (n, 256): 16 x 16 grey pixels about their mean, the stronger form of the template."""
    small = images.reshape(-1, 16, 4, 16, 4, 3).mean((2, 4, 5)).reshape(len(images), -1)
    return small - small.mean(1, keepdims=True)


def histogram(images: np.ndarray) -> np.ndarray:
    """(n, 64): how often each of 4 x 4 x 4 colours occurs."""
    code = (images // 64 @ np.array([16, 4, 1])).reshape(len(images), -1)
    return np.sqrt([np.bincount(row, minlength=64) for row in code])


def knn(bank: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Cosine 20-NN with weights exp(similarity / 0.07)."""
    bank, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (bank, queries))
    similarity = queries @ bank.T
    nearest = np.argsort(-similarity, axis=1)[:, :20]
    weight = np.exp(np.take_along_axis(similarity, nearest, 1) / 0.07)
    votes = np.zeros((len(queries), 16))
    np.add.at(votes, (np.arange(len(queries))[:, None], labels[nearest]), weight)
    return votes.argmax(1)


@pytest.mark.slow
def test_templates_and_colours_do_not_solve_the_world() -> None:
    train = shelf(World(), "train", range(4000))
    nature, free = shelf(World(), "nat", range(1008)), shelf(World(correlation=0.0), "unc", range(1008))
    accuracy = {
        (name, where): (knn(view(train.images), train.labels, view(test.images)) == test.labels).mean()
        for name, view in (("grey", grey), ("histogram", histogram))
        for where, test in (("nature", nature), ("free", free))
    }
    assert accuracy["grey", "free"] <= 0.40
    assert accuracy["histogram", "free"] <= 0.15  # chance is 0.0625
    assert 0.3 <= accuracy["histogram", "nature"] <= 0.6  # colours help in nature, and are not enough
