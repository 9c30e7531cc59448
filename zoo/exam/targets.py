"""What the networks of the zoo are expected to reach, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitscope.core.teachings import teaching
from zoo.exam.baselines import TITLES
from zoo.exam.marks import Figure, difference
from zoo.exam.measures import MEASURES

UNTAUGHT = "none"
Figures = Mapping[str, Mapping[str, Figure]]  # network -> measure -> figure
Baselines = Mapping[str, Mapping[str, Figure]]  # measure -> baseline -> figure


@dataclass(frozen=True)
class Target:
    """Every condition that is set must hold."""

    network: str
    measure: str
    least: float | None = None  # the mean reaches it
    most: float | None = None  # the mean does not exceed it
    times: float | None = None  # the mean is this many times the untrained network's
    above_untaught: bool = False  # the mean is above the untrained network's
    clearly: bool = False  # the whole interval is above that of the untrained network
    above: tuple[str, ...] = ()  # the mean is above these baselines
    surely_above: tuple[str, ...] = ()  # the lower bound of the interval is above these

    @property
    def name(self) -> str:
        return f"{teaching(self.network).title}: {MEASURES[self.measure]}"


SHAPE = ("pixels", "colours")
TAUGHT = ("fs", "clip", "dino", "moco", "mae", "beit")
TARGETS = (
    Target("fs", "unc", least=0.85, above=SHAPE),
    Target("clip", "unc", least=0.60, above=SHAPE),
    *(Target(network, "unc", times=2.5, above=SHAPE, surely_above=("pixels",)) for network in ("dino", "moco")),
    *(Target(network, measure, clearly=True) for network in ("mae", "beit") for measure in ("pck", "jf")),
    *(Target(network, "purity", clearly=True) for network in TAUGHT),
    *(Target(network, "iou", above_untaught=True, above=("disc",)) for network in ("dino", "moco")),
    # the phenomena of trained networks: docs/real-networks.md has theirs
    *(Target(network, "local", least=0.15) for network in TAUGHT),
    *(Target(network, "offset", least=1) for network in TAUGHT),
    Target(UNTAUGHT, "offset", most=0),
    *(Target(network, "mixed", least=1) for network in TAUGHT),
    *(Target(network, "nearest", most=0.40) for network in ("mae", "beit")),
    *(Target(network, "rise", least=8) for network in ("fs", "clip", "dino", "moco")),
)


@dataclass(frozen=True)
class Verdict:
    target: Target
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
    """None if the network that the target speaks of, or the untrained one, was not examined."""
    if not {target.network, UNTAUGHT} <= figures.keys():
        return None
    figure, untaught = (figures[network][target.measure] for network in (target.network, UNTAUGHT))
    return Verdict(target, figure, tuple(_conditions(target, figure, untaught, baselines.get(target.measure, {}))))


def _conditions(
    target: Target, figure: Figure, untaught: Figure, baselines: Mapping[str, Figure]
) -> list[tuple[str, bool]]:
    """What is asked, in words, and whether it holds."""
    conditions = []
    if target.least is not None:
        conditions.append((f"at least {target.least:.2f}", figure.mean >= target.least))
    if target.most is not None:
        conditions.append((f"at most {target.most:.2f}", figure.mean <= target.most))
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
    surely = ((f"lower bound above {TITLES[name]}", figure.low > baselines[name].mean) for name in target.surely_above)
    return [*conditions, *above, *surely]


def judge_all(figures: Figures, baselines: Baselines) -> list[Verdict]:
    return [verdict for target in TARGETS if (verdict := judge(target, figures, baselines)) is not None]
