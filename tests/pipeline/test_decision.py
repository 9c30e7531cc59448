"""Decisions with known truth: random networks, identical ones, a clear winner, ties, four videos, and 10,000 draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from vitscope.pipeline.decision import MARGIN, Decision, cross_fitted, decide, divisions, fewest

UNTRAINED = "untrained"
LAYERS = 4


def answers(generator: np.random.Generator, truth: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Right or wrong for n queries, some harder than others for everybody. truth: (models, L), the last untrained."""
    alike = generator.random((n, 1, 1))
    own = generator.random((n, *truth.shape))
    luck = np.where(generator.random((n, *truth.shape)) < 0.5, alike, own)  # uniform, and shared half of the time
    hits = (luck < truth).astype(np.float64)
    names = [*"abcdefgh"[: len(truth) - 1], UNTRAINED]
    return {name: hits[:, number] for number, name in enumerate(names)}


def decided(scores: dict[str, np.ndarray], chance: float = 0.1) -> Decision:
    n = len(scores[UNTRAINED])
    found = decide(scores, {"chance": np.full(n, chance)}, {name: [UNTRAINED] for name in scores if name != UNTRAINED})
    assert found is not None
    return found


def levels(*means: float) -> np.ndarray:
    """Truth of models whose layers rise to their mean: (models, L)."""
    rise = np.linspace(-0.06, 0, LAYERS)
    return np.array([[mean + step for step in rise] for mean in means])


def test_random_networks_are_never_recommended() -> None:
    for seed in range(40):
        scores = answers(np.random.default_rng(seed), levels(0.2, 0.2, 0.2, 0.2), n=30)
        assert decided(scores).kind == "nothing"


def test_identical_networks_are_tied_whatever_their_number() -> None:
    one = answers(np.random.default_rng(0), levels(0.7, 0.2), n=300)
    found = decided({"a": one["a"], "b": one["a"], "c": one["a"], UNTRAINED: one[UNTRAINED]})
    assert (found.kind, found.leader, {other.name for other in found.others}) == ("tied", "a", {"b", "c"})
    assert all((other.value, other.low, other.high) == (0, 0, 0) for other in found.others)


def test_a_clear_winner_is_taken_at_its_best_layer() -> None:
    found = decided(answers(np.random.default_rng(0), levels(0.8, 0.5, 0.35, 0.2), n=400))
    assert (found.kind, found.leader, found.others) == ("take", "a", ())
    assert found.next is not None
    assert found.next.name == "b"
    assert found.next.low < 0.3 < found.next.high
    assert found.layer in found.as_good


def test_three_models_are_tied_if_their_differences_are_surely_small() -> None:
    """Spread 0.05 of 4,000 units: standard errors of a tenth of the margin."""
    generator = np.random.default_rng(0)
    hard = generator.normal(0, 0.2, (4000, 1))
    scores = {name: 0.6 + hard + generator.normal(0, 0.05, (4000, LAYERS)) for name in "abc"}
    found = decided(scores | {UNTRAINED: 0.2 + hard + generator.normal(0, 0.05, (4000, LAYERS))})
    assert (found.kind, len(found.others), found.more) == ("tied", 2, None)


def test_too_few_queries_say_how_many_more_it_takes() -> None:
    """A difference of 0.1 with a spread of about 0.5 takes hundreds of units; ten times as many do decide."""
    generator = np.random.default_rng(3)
    truth = levels(0.75, 0.6, 0.2)
    found = decided(answers(generator, truth, n=60))
    assert found.kind == "undecided"
    assert found.more is not None
    assert 30 < found.more < 3000
    assert decided(answers(generator, truth, n=3000)).kind == "take"


def test_four_videos_decide_nothing() -> None:
    """Even if one model is better on each of them; as many more as are said, if they are like them, do."""
    base = np.array([0.3, 0.4, 0.5, 0.6])[:, None] + np.zeros((1, LAYERS))
    found = decided({"a": base + 0.2, "b": base, UNTRAINED: base - 0.2}, chance=0.05)
    assert found.kind in ("nothing", "undecided")
    assert found.n == 4
    assert found.more is not None
    assert found.n < found.fewest
    for more, kind in ((found.more, "take"), (found.more - 1, "nothing")):
        many = np.resize(base, (4 + more, LAYERS))
        assert decided({"a": many + 0.2, "b": many, UNTRAINED: many - 0.2}, chance=0.05).kind == kind


def test_three_queries_that_agree_are_not_certainty() -> None:
    found = decided({"a": np.ones((3, LAYERS)), UNTRAINED: np.zeros((3, LAYERS))}, chance=0.1)
    assert found.kind == "nothing"


def test_a_model_no_better_than_its_untrained_twin_is_not_recommended_however_far_above_chance() -> None:
    found = decided(answers(np.random.default_rng(0), levels(0.5, 0.5), n=500))
    assert (found.kind, [other.name for other in found.others]) == ("nothing", [UNTRAINED])


def test_a_rival_that_is_itself_not_above_chance_still_has_to_be_beaten() -> None:
    scores = answers(np.random.default_rng(0), levels(0.5, 0.2), n=60)
    noisy = np.random.default_rng(1).normal(0.5, 6, (60, LAYERS))
    assert decided(scores).kind == "take"
    assert decided(scores | {"b": noisy}).kind != "take"


def test_nothing_to_compare_with_is_no_decision() -> None:
    assert decide({"a": np.ones((9, 2))}, {}, {"a": []}) is None
    assert decide({"a": np.ones((9, 2))}, {"chance": np.zeros(9)}, {}) is None


def test_choosing_on_the_other_half_does_not_flatter() -> None:
    """Twelve layers of equal truth 0.5: the best of them looks better than that, its cross-fitted score does not.

    The expected largest of 12 normals is 1.629 standard deviations.
    """
    generator = np.random.default_rng(0)
    n, draws = 50, 600
    best, fitted = [], []
    for _ in range(draws):
        scores = 0.5 + generator.normal(0, 0.3, (n, 12))
        best.append(scores.mean(0).max())
        fitted.append(cross_fitted(scores, divisions(n)).mean())
    deviation = 0.3 / np.sqrt(n)
    assert np.mean(best) == pytest.approx(0.5 + 1.629 * deviation, abs=4 * deviation / np.sqrt(draws))
    assert np.mean(fitted) == pytest.approx(0.5, abs=4 * deviation / np.sqrt(draws))


def test_cross_fitting_chooses_on_one_half_and_scores_on_the_other() -> None:
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    halves = np.array([[True, True, False, False]])
    assert cross_fitted(scores, halves).tolist() == [0, 0, 0, 0]  # each half's layer is the other's wrong one


# -- ten thousand draws ---------------------------------------------------------------------------------------------

DRAWS = 1250  # of each truth
COUNTS = (4, 12, 30, 100)  # units, each in a quarter of the draws


def graded(generator: np.random.Generator, truth: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Skewed scores between 0 and 1, such as those of videos: the same as `answers`, with beta distributions."""
    sharing = generator.beta(2 * truth, 2 * (1 - truth), (n, *truth.shape))
    hard = generator.beta(2, 1, (n, 1, 1)) - 2 / 3
    scores = sharing + 0.3 * hard
    return {name: scores[:, number] for number, name in enumerate([*"abcdefgh"[: len(truth) - 1], UNTRAINED])}


def around(generator: np.random.Generator, models: int, spread: float, layers: int = LAYERS) -> np.ndarray:
    """Truth of models, and of an untrained network of half their level: (models + 1, L)."""
    means = np.clip(generator.normal(0.4, spread, (models + 1, layers)), 0.05, 0.95)
    means[-1] = 0.2
    return means


def draw(truth: str, generator: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """Scores, what they were drawn from (models, L), and the level of chance."""
    chance = 0.1
    means = around(generator, 3, 0.02)
    make = answers
    if truth == "three tied":
        means[:3] = means[0]
    elif truth == "clear winner":
        means[0] += 0.3
    elif truth == "like untrained":
        means[:3] = means[3]
    elif truth == "below chance":
        chance = 0.5
    elif truth == "many layers":
        means = around(generator, 6, 0.0, layers=12)
    elif truth == "graded scores":
        means[:3], make = means[0], graded
    scores = make(generator, means, n)
    if truth == "identical":
        means[1], scores["b"] = means[0], scores["a"]
    return scores, means, chance


TRUTHS = (
    "identical", "three tied", "nearly tied", "clear winner", "like untrained", "below chance", "many layers",
    "graded scores",
)  # fmt: skip


@pytest.fixture(scope="module")
def simulated() -> dict[str, dict[str, np.ndarray]]:
    """For each truth, how often a model was taken, and how often another was as good, for each number of units."""
    found = {}
    for number, truth in enumerate(TRUTHS):
        generator = np.random.default_rng(number)
        taken, wrong = np.zeros(len(COUNTS), int), np.zeros(len(COUNTS), int)
        for which in (turn % len(COUNTS) for turn in range(DRAWS)):
            scores, means, chance = draw(truth, generator, COUNTS[which])
            decision = decided(scores, chance)
            if decision.kind == "take":
                leader = list(scores).index(decision.leader)
                taken[which] += 1
                wrong[which] += means[leader].max() <= max(np.delete(means, leader, 0).max(), chance)
        found[truth] = {"taken": taken, "wrong": wrong}
    return found


@pytest.mark.parametrize("truth", TRUTHS)
def test_take_is_wrong_in_at_most_one_case_of_twenty(simulated: dict[str, dict[str, np.ndarray]], truth: str) -> None:
    """Wrong: the model taken has no higher best layer than everything else. For each number of units, too."""
    wrong = simulated[truth]["wrong"]
    assert wrong.sum() <= 0.05 * DRAWS
    assert (wrong <= 0.05 * DRAWS / len(COUNTS)).all()


def test_of_ten_thousand_draws_few_are_wrong_and_a_clear_winner_is_mostly_found(
    simulated: dict[str, dict[str, np.ndarray]],
) -> None:
    draws, each = DRAWS * len(TRUTHS), DRAWS / len(COUNTS)
    assert draws == 10_000
    assert sum(found["wrong"].sum() for found in simulated.values()) <= 0.05 * draws
    winner = simulated["clear winner"]
    assert (winner["wrong"] <= 0.05 * winner["taken"]).all()  # of what was said, not only of all draws
    assert winner["taken"][0] == 0  # four units
    assert winner["taken"][-1] > 0.75 * each  # a hundred


# -- what the margin and the number of units do ---------------------------------------------------------------------


def pairs(generator: np.random.Generator, difference: float, n: int) -> dict[str, np.ndarray]:
    """Two models of graded scores whose difference has this mean, and a spread of 0.08."""
    hard = generator.normal(0.6, 0.1, (n, 1))
    one, other = hard + generator.normal(0, 0.06, (2, n, 1))
    return {"a": one + difference, "b": other, UNTRAINED: hard - 0.4}


@pytest.mark.parametrize(
    ("difference", "taken", "tied"),
    [(0.0, (0, 0.05), (0.9, 1)), (MARGIN, (0.9, 1), (0, 0.05)), (3 * MARGIN, (1, 1), (0, 0))],
)
def test_the_margin_divides_ties_from_too_little_data_and_never_decides_who_is_taken(
    difference: float, taken: tuple[float, float], tied: tuple[float, float]
) -> None:
    """600 units: the interval is a third of the margin. A difference as large as the margin is hardly called a tie."""
    generator = np.random.default_rng(0)
    kinds = [decided(pairs(generator, difference, 600)).kind for _ in range(200)]
    assert taken[0] <= kinds.count("take") / 200 <= taken[1]
    assert tied[0] <= kinds.count("tied") / 200 <= tied[1]


def test_few_units_are_never_called_a_tie_even_of_equal_models() -> None:
    generator = np.random.default_rng(0)
    kinds = [decided(pairs(generator, 0.0, 60)).kind for _ in range(200)]
    assert kinds.count("undecided") > 180


@pytest.mark.parametrize("critical", [1.96, 2.5, 3.2, 4.0])
def test_the_fewest_units_are_those_that_decide_if_they_all_agree(critical: float) -> None:
    """Against the interval in full: n equal differences and the two made-up ones, as a plain mean of n + 2 numbers."""

    def clear(differences: np.ndarray) -> bool:
        most, n = np.abs(differences).max(), len(differences)
        whole = np.append(differences, [most, -most])
        freedom = stats.t.isf(stats.norm.sf(critical), n - 1)
        return bool(whole.mean() > freedom * whole.std(ddof=1) / np.sqrt(n + 2))

    least = fewest(critical)
    assert clear(np.full(least, 0.3))
    assert not clear(np.full(least - 1, 0.3))
    generator = np.random.default_rng(0)
    assert not any(clear(generator.uniform(low, 1, least - 1)) for low in np.linspace(-1, 1, 200))


def test_the_interval_is_that_of_a_mean_of_two_more_units() -> None:
    scores = answers(np.random.default_rng(0), levels(0.7, 0.6, 0.2), n=40)
    found = decided(scores)
    difference = found.next
    assert difference is not None
    a, b = (cross_fitted(scores[name], divisions(40)) for name in (found.leader, difference.name))
    most = np.abs(a - b).max()
    whole = np.append(a - b, [most, -most])
    assert (difference.low + difference.high) / 2 == pytest.approx(whole.mean())
    reach = (difference.high - difference.low) / 2 / (whole.std(ddof=1) / np.sqrt(42))
    assert reach > stats.t.isf(0.025, 39)  # more than one comparison's


def test_as_many_units_as_are_said_to_be_missing_decide_what_was_open() -> None:
    """Drawn anew from the same truth, with as many units as were said: in most cases a forecast can be right, and where
    it was not, twice as many are enough."""
    forecasts, right, late = 0, 0, 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        truth = levels(0.8, 0.6, 0.2)
        found = decided(answers(generator, truth, n=60))
        if found.kind == "undecided" and found.more is not None:
            forecasts += 1
            kinds = [decided(answers(generator, truth, n=times * (60 + found.more))).kind for times in (1, 2)]
            right += kinds[0] == "take"
            late += kinds[1] != "take"
    assert forecasts > 20
    assert right > forecasts / 2
    assert late < forecasts / 5
