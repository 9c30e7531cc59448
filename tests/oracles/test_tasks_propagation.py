"""Label propagation against a slow direct version in float64: loops over tokens, the whole affinity written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vitscope.tasks import propagation
from vitscope.tasks.propagation import LabelPropagation, normalised, propagate


def slow(
    target: np.ndarray, contexts: np.ndarray, labels: np.ndarray, radius: int, k: int, temperature: float
) -> np.ndarray:
    """target (h, w, D), contexts (M, h, w, D), labels (M, h, w, C) -> (h, w, C), all float64."""
    h, w, _ = target.shape
    out = np.zeros((h, w, labels.shape[-1]))

    def unit(v: np.ndarray) -> np.ndarray:
        return v / np.linalg.norm(v)

    for y in range(h):
        for x in range(w):
            known = []
            for m in range(len(contexts)):
                for v in range(max(y - radius, 0), min(y + radius + 1, h)):
                    for u in range(max(x - radius, 0), min(x + radius + 1, w)):
                        affinity = np.exp(unit(target[y, x]) @ unit(contexts[m, v, u]) / temperature)
                        known.append((affinity, labels[m, v, u]))
            best = sorted(known, key=lambda pair: -pair[0])[:k]
            out[y, x] = sum(a * label for a, label in best) / sum(a for a, _ in best)
    return out


@pytest.mark.parametrize("block", [2, 3, 16])
def test_one_frame(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "BLOCK", block)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(4, 7, 9, 6, generator=generator, dtype=torch.float64)
    labels = torch.rand(3, 7, 9, 3, generator=generator, dtype=torch.float64)
    expected = slow(features[3].numpy(), features[:3].numpy(), labels.numpy(), radius=2, k=5, temperature=0.1)
    found = propagate(
        normalised(features[3]),
        list(normalised(features[:3])),
        list(labels.float()),
        radius=2,
        neighbours=5,
        temperature=0.1,
    )
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-5)


def test_a_video_uses_frame_zero_and_the_previous_predictions() -> None:
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(6, 1, 5, 6, 8, generator=generator)  # one layer
    first = torch.rand(5, 6, 2, generator=generator)
    video = LabelPropagation(frames[0], first, previous=2, radius=3, neighbours=5, temperature=0.1)
    known = [(frames[0, 0].double().numpy(), first.double().numpy())]
    for number in range(1, 6):
        contexts = [known[0], *known[max(1, number - 2) : number]]  # frame 0, and at most two predictions before
        expected = slow(
            frames[number, 0].double().numpy(),
            np.stack([c for c, _ in contexts]),
            np.stack([c for _, c in contexts]),
            radius=3,
            k=5,
            temperature=0.1,
        )
        found = video.step(frames[number])[0]
        np.testing.assert_allclose(found.numpy(), expected, atol=5e-5)
        known.append((frames[number, 0].double().numpy(), expected))
