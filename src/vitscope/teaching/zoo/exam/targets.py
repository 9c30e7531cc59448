"""What the networks of the zoo are expected to reach, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitscope.teaching.zoo.exam.baselines import TITLES
from vitscope.teaching.zoo.exam.marks import Figure, difference
from vitscope.teaching.zoo.exam.measures import MEASURES
from vitscope.teachings import teaching

UNTAUGHT = "none"
Figures = Mapping[str, Mapping[str, Figure]]  # network -> measure -> figure
Baselines = Mapping[str, Mapping[str, Figure]]  # measure -> baseline -> figure


@dataclass(frozen=True)
class Target:
    """Every condition that is set must hold, for one of the networks at least."""

    networks: tuple[str, ...]
    measure: str
    least: float | None = None  # the mean reaches it
    times: float | None = None  # the mean is this many times the untrained network's
    above_untaught: bool = False  # the mean is above the untrained network's
    clearly: bool = False  # the whole interval is above that of the untrained network
    above: tuple[str, ...] = ()  # the mean is above these baselines

    @property
    def name(self) -> str:
        who = " or ".join(teaching(network).title for network in self.networks)
        return f"{who}: {MEASURES[self.measure]}"


SHAPE = ("pixels", "colours")
TARGETS = (
    Target(("fs",), "unc", least=0.85, above=SHAPE),
    Target(("clip",), "unc", least=0.60, above=SHAPE),
    *(Target((network,), "unc", times=2.5, above=SHAPE) for network in ("dino", "moco")),
    *(Target((network,), measure, clearly=True) for network in ("mae", "beit") for measure in ("pck", "jf")),
    *(Target((network,), "purity", clearly=True) for network in ("fs", "clip", "dino", "moco", "mae", "beit")),
    Target(("dino", "moco"), "iou", above_untaught=True, above=("disc",)),
)


@dataclass(frozen=True)
class Verdict:
    target: Target
    network: str  # of several the one that does best
    figure: Figure
    conditions: tuple[tuple[str, bool], ...]  # in words, and whether each holds

    @property
    def met(self) -> bool:
        return all(holds for _, holds in self.conditions)

    @property
    def asked(self) -> str:
        return "; ".join(words for words, _ in self.conditions)

    @property
    def missed(self) -> str:
        return "; ".join(words for words, holds in self.conditions if not holds)


def judge(target: Target, figures: Figures, baselines: Baselines) -> Verdict | None:
    """None if the networks that the target speaks of were not all examined."""
    if not {*target.networks, UNTAUGHT} <= figures.keys():
        return None
    untaught = figures[UNTAUGHT][target.measure]
    verdicts = []
    for network in target.networks:
        figure = figures[network][target.measure]
        conditions = _conditions(target, figure, untaught, baselines.get(target.measure, {}))
        verdicts.append(Verdict(target, network, figure, tuple(conditions)))
    return max(verdicts, key=lambda verdict: (verdict.met, verdict.figure.mean))


def _conditions(
    target: Target, figure: Figure, untaught: Figure, baselines: Mapping[str, Figure]
) -> list[tuple[str, bool]]:
    """What is asked, in words, and whether it holds."""
    conditions = []
    if target.least is not None:
        conditions.append((f"at least {target.least:.2f}", figure.mean >= target.least))
    if target.times is not None:
        needed = target.times * untaught.mean
        conditions.append((f"at least {target.times:g}x untrained, {needed:.3f}", figure.mean >= needed))
    if target.above_untaught:
        conditions.append(("above untrained", figure.mean > untaught.mean))
    if target.clearly:
        mean, low, high = difference(figure, untaught)
        words = f"interval above untrained's, {untaught.high:.3f} (seed by seed {mean:+.3f}, {low:+.3f} to {high:+.3f})"
        conditions.append((words, figure.low > untaught.high))
    above = ((f"above {TITLES[name]}", figure.mean > baselines[name].mean) for name in target.above)
    return [*conditions, *above]


def judge_all(figures: Figures, baselines: Baselines) -> list[Verdict]:
    return [verdict for target in TARGETS if (verdict := judge(target, figures, baselines)) is not None]
