"""The probe's logistic regression against scikit-learn's, problem by problem and with the penalty chosen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from vitscope.tasks import linear_probe
from vitscope.tasks.linear_probe import ProbeConfig, held_out
from vitscope.tasks.logistic import fit


def problems(seed: int = 0, n: int = 240) -> tuple[torch.Tensor, torch.Tensor]:
    """Three layers, from hard to easy: (3, n, 10) float64, and labels of four classes."""
    centres = torch.randn(4, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=generator)
    noise = torch.randn(3, n, 10, generator=generator, dtype=torch.float64)
    return centres[labels] * torch.tensor([0.2, 0.6, 1.5]).view(3, 1, 1) + noise, labels


def test_all_problems_together_are_scikit_learns_one_by_one() -> None:
    features, labels = problems()
    penalty = torch.tensor([1e-2, 1e-3, 3e-4])
    model = fit(features, labels, 4, penalty, tolerance=1e-8, iterations=2000)
    assert model.converged.all()
    for layer in range(3):
        oracle = LogisticRegression(C=1 / (len(labels) * penalty[layer].item()), tol=1e-10, max_iter=10000)
        oracle.fit(features[layer].numpy(), labels.numpy())
        chances = model.scores(features)[layer].softmax(-1).numpy()
        np.testing.assert_allclose(chances, oracle.predict_proba(features[layer].numpy()), atol=2e-5)
        np.testing.assert_allclose(model.weights[layer].T.numpy(), oracle.coef_, atol=5e-4)


def test_a_warm_start_ends_at_the_same_place() -> None:
    features, labels = problems()
    strong = fit(features, labels, 4, torch.full((3,), 1e-1), tolerance=1e-8)
    warm = fit(features, labels, 4, torch.full((3,), 1e-3), start=strong, tolerance=1e-9, iterations=2000)
    cold = fit(features, labels, 4, torch.full((3,), 1e-3), tolerance=1e-9, iterations=2000)
    torch.testing.assert_close(warm.weights, cold.weights, atol=1e-5, rtol=1e-4)


def test_separable_classes_converge_too() -> None:
    features, labels = problems(n=60)
    easy = features[2:] + 40 * torch.nn.functional.one_hot(labels, 10).double()
    model = fit(easy, labels, 4, torch.tensor([1e-5]))
    assert model.converged.all()
    assert torch.equal(model.scores(easy)[0].argmax(-1), labels)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_whole_probe(seed: int) -> None:
    train, labels = problems(seed=1)
    test, truth = problems(seed=2)
    config = ProbeConfig(seed=seed, tolerance=1e-6)
    scores = linear_probe.evaluate(list(train), labels, list(test), truth, config=config)
    aside = held_out(labels, linear_probe.HELD_OUT, seed).numpy()
    assert 0.18 < aside.mean() < 0.22
    for layer in range(3):
        mean, spread = train[layer].mean(0), train[layer].std(0)
        known, asked = (((part[layer] - mean) / spread).numpy() for part in (train, test))
        shares = []
        for penalty in linear_probe.PENALTIES:
            oracle = LogisticRegression(C=1 / ((~aside).sum() * penalty), tol=1e-8, max_iter=10000)
            shares.append(oracle.fit(known[~aside], labels.numpy()[~aside]).score(known[aside], labels.numpy()[aside]))
        chosen = linear_probe.PENALTIES[int(np.argmax(shares))]
        assert scores.penalty[layer].item() == pytest.approx(chosen)
        oracle = LogisticRegression(C=1 / (len(labels) * chosen), tol=1e-8, max_iter=10000).fit(known, labels.numpy())
        right = oracle.predict(asked) == truth.numpy()
        assert (scores.top1[:, layer].numpy() == right).mean() > 0.99  # a point on the boundary may fall either way


def test_layers_that_take_turns_give_the_same() -> None:
    train, labels = problems(seed=1)
    test, truth = problems(seed=2)
    together = linear_probe.evaluate(list(train), labels, list(test), truth)
    in_turn = linear_probe.evaluate(list(train), labels, list(test), truth, config=ProbeConfig(memory=1))
    assert (together.top1 == in_turn.top1).float().mean() > 0.99
    assert torch.equal(together.penalty, in_turn.penalty)
