"""Multinomial logistic regression of many problems at once: the same images and labels, other features (layers).

L-BFGS with an exact line search. Scores are linear in the weights, so that a step along a direction is examined on
the scores alone: however many steps are tried, an iteration reads the features twice, once forth and once back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

MEMORY = 10  # past steps from which L-BFGS guesses the curvature
SEARCH_STEPS = 20  # most trials of a line search; each costs one softmax, and one is usual
FLAT = 0.5  # a search ends where the objective falls this much slower than at its start


@dataclass(frozen=True)
class LogisticModel:
    """scores = features @ weights + bias. weights: (B, D, C), bias: (B, C)."""

    weights: Tensor
    bias: Tensor
    converged: Tensor  # bool (B,)

    def scores(self, features: Tensor) -> Tensor:
        """features: (B, n, D) -> (B, n, C)."""
        return torch.baddbmm(self.bias.unsqueeze(1), features, self.weights)

    def take(self, problems: Tensor, weights: Tensor, bias: Tensor, *, converged: bool) -> None:
        """Note where some of the problems ended. weights: (b, D, C), bias: (b, 1, C)."""
        self.weights[problems], self.bias[problems] = weights, bias.squeeze(1)
        self.converged[problems] = converged


def fit(
    features: Tensor,
    labels: Tensor,
    classes: int,
    penalty: Tensor,
    *,
    start: LogisticModel | None = None,
    tolerance: float = 1e-4,
    iterations: int = 500,
) -> LogisticModel:
    """Minimise, for each problem, mean cross-entropy + penalty / 2 * |weights|^2 (the bias is free).

    features: (B, n, D); labels: int64 (n,); penalty: (B,). In scikit-learn's terms C = 1 / (n * penalty).
    A problem has converged when no partial derivative exceeds `tolerance`.
    """
    problems, n, width = features.shape
    truth = F.one_hot(labels, classes).to(features.dtype)  # (n, C)
    strength = penalty.to(features).view(-1, 1, 1)
    if start is None:
        w = features.new_zeros(problems, width, classes)
        b = features.new_zeros(problems, 1, classes)
    else:
        w, b = start.weights.clone(), start.bias.unsqueeze(1).clone()
    scores = torch.baddbmm(b.expand(-1, n, -1), features, w)  # (B, n, C)
    gradient = _gradient(features, scores.softmax(-1), truth, w, strength)
    memory: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=MEMORY)
    model = LogisticModel(w.clone(), b.squeeze(1).clone(), torch.zeros(problems, dtype=torch.bool, device=w.device))
    going = torch.arange(problems, device=w.device)  # problems that have not converged
    for _ in range(iterations):
        active = gradient.flatten(1).abs().amax(1) > tolerance
        if not active.all():  # whoever is finished steps out: layers differ in how long they take
            model.take(going[~active], w[~active], b[~active], converged=True)
            if not active.any():
                return model
            going, features, w, b = going[active], features[active], w[active], b[active]
            scores, gradient, strength = scores[active], gradient[active], strength[active]
            memory = deque((tuple(part[active] for part in pair) for pair in memory), MEMORY)  # type: ignore[misc]
        direction = -_curved(gradient, memory)  # (B, D + 1, C): the last row is the bias
        slope = torch.baddbmm(direction[:, -1:].expand(-1, n, -1), features, direction[:, :-1])  # change of the scores
        fall = _dot(gradient, direction)
        step, chance = _search(scores, slope, truth, w, direction[:, :-1], strength, fall)
        change = step.view(-1, 1, 1) * direction
        w, b = w + change[:, :-1], b + change[:, -1:]
        scores += step.view(-1, 1, 1) * slope
        before, gradient = gradient, _gradient(features, chance, truth, w, strength)
        memory.append(_pair(change, gradient - before))
    model.take(going, w, b, converged=False)
    return model


def _gradient(features: Tensor, chance: Tensor, truth: Tensor, w: Tensor, strength: Tensor) -> Tensor:
    """(B, D + 1, C): with respect to the weights, and in the last row to the bias."""
    error = (chance - truth) / len(truth)  # (B, n, C)
    return torch.cat([features.mT @ error + strength * w, error.sum(1, keepdim=True)], 1)


def _pair(change: Tensor, bend: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A step and how it changed the gradient; rho is 0, and the pair without effect, where all was rounding."""
    product = _dot(change, bend)
    return change, bend, torch.where(product > 0, 1 / product, 0)


def _curved(gradient: Tensor, memory: deque[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """L-BFGS's two loops: the gradient multiplied by a guess of the inverse Hessian, problem by problem."""
    q = gradient.clone()
    alphas = []
    for change, bend, rho in reversed(memory):
        alpha = rho * _dot(change, q)
        q -= alpha.view(-1, 1, 1) * bend
        alphas.append(alpha)
    if memory:
        change, bend, rho = memory[-1]
        scale = torch.where(rho > 0, _dot(change, bend) / _dot(bend, bend).clamp_min(1e-300), 1)
        q *= scale.view(-1, 1, 1)
    for (change, bend, rho), alpha in zip(memory, reversed(alphas), strict=True):
        beta = rho * _dot(bend, q)
        q += (alpha - beta).view(-1, 1, 1) * change
    return q


def _search(
    scores: Tensor, slope: Tensor, truth: Tensor, w: Tensor, direction: Tensor, strength: Tensor, fall: Tensor
) -> tuple[Tensor, Tensor]:
    """A step (B,) at which the objective has all but stopped falling along `direction`, and the class chances there.

    Newton on a convex function of one number, kept within the bracket that the signs of its derivative give.
    fall: (B,) the derivative at step 0.
    """
    n = len(truth)
    pull, squared = _dot(w, direction), _dot(direction, direction)  # of the penalty
    strength = strength.flatten()
    toward = (truth * slope).sum((1, 2)) / n
    step, low, high = torch.ones_like(fall), torch.zeros_like(fall), torch.full_like(fall, torch.inf)
    for _ in range(SEARCH_STEPS):
        chance = (scores + step.view(-1, 1, 1) * slope).softmax(-1)
        mean = (chance * slope).sum(-1, keepdim=True)  # (B, n, 1)
        first = mean.sum((1, 2)) / n - toward + strength * (pull + step * squared)
        good = first.abs() <= FLAT * fall.abs()
        if good.all():
            return step, chance
        second = (chance * (slope - mean).square()).sum((1, 2)) / n + strength * squared
        low, high = torch.where(first < 0, step, low), torch.where(first < 0, high, step)
        newton = step - first / second.clamp_min(1e-30)
        middle = torch.where(high.isinf(), 2 * step + 1, (low + high) / 2)
        step = torch.where(good, step, torch.where((newton > low) & (newton < high), newton, middle))
    return step, (scores + step.view(-1, 1, 1) * slope).softmax(-1)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum((1, 2))
