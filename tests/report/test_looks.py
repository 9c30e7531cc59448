"""Looks of models: seen on paper and on dark screens, told apart, and never mistaken for a kind of head."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab, rgb2xyz

from vitscope.core.teachings import TEACHINGS
from vitscope.report.attention_figures import KIND_COLOURS
from vitscope.report.looks import OWN, ModelStyle, luminance, model_styles, text_colour

GROUNDS = {"colour": ("#fdfcf9", "#f5f3ed", "#ffffff"), "dark": ("#12141b", "#1a1d27")}  # of the page, by theme


def channels(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def light(colour: str) -> float:
    """Relative luminance by another library."""
    return float(rgb2xyz(channels(colour))[1])


def contrast(a: str, b: str) -> float:
    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


def apart(a: str, b: str) -> float:
    return float(deltaE_ciede2000(rgb2lab(channels(a)), rgb2lab(channels(b))))


def many_models() -> dict[str, ModelStyle]:
    known = [(f"{key} {number}", key) for key in TEACHINGS for number in range(4)]
    runs = [(f"{run} {key} @ {step}", key) for key in TEACHINGS for run in "ab" for step in (1, 20, 300, 4000)]
    return model_styles([*known, *runs])


@pytest.mark.parametrize("colour", ["#0072B2", "#E69F00", "#123456", "#ffffff", "#000000"])
def test_luminance_is_that_of_another_library(colour: str) -> None:
    assert luminance(colour) == pytest.approx(light(colour), abs=2e-4)


@pytest.mark.parametrize("theme", GROUNDS)
def test_every_mark_stands_out_from_every_ground(theme: str) -> None:
    for style in many_models().values():
        for ground in GROUNDS[theme]:
            assert contrast(getattr(style, theme), ground) >= 3, (style.title, ground)


def test_words_in_the_colour_of_a_teaching_can_be_read_on_paper() -> None:
    assert min(contrast(text_colour(key), "#ffffff") for key in TEACHINGS) >= 4.5


def test_a_series_goes_from_pale_to_dark_in_the_order_of_steps() -> None:
    titles = ["run @ 1000", "run @ 20", "run @ 300"]
    styles = model_styles([(title, "mae") for title in titles])
    by_step = [styles[title] for title in ("run @ 20", "run @ 300", "run @ 1000")]
    lights = [light(style.colour) for style in by_step]
    assert lights == sorted(lights, reverse=True)
    assert [light(style.dark) for style in by_step] == sorted(light(style.dark) for style in by_step)
    assert {style.shape for style in by_step} == {"diamond"}
    assert model_styles([("alone @ 7", "mae")])["alone @ 7"].series == ""


def test_models_of_which_nothing_is_known_have_colours_and_shapes_of_their_own() -> None:
    styles = model_styles([(f"mine {number}", "other") for number in range(8)])
    assert len({style.colour for style in styles.values()}) == 8
    assert len({style.shape for style in styles.values()}) == 8
    assert min(apart(a, b) for a, b in combinations(OWN, 2)) > 10


def test_no_two_models_look_alike() -> None:
    looks = [(style.colour, style.shape, style.dash, style.filled) for style in many_models().values()]
    assert len(set(looks)) == len(looks)


def test_kinds_of_heads_are_not_painted_like_teachings() -> None:
    for kind, colour in KIND_COLOURS.items():
        assert min(apart(colour, teaching.colour) for teaching in TEACHINGS.values()) > 12, kind
    assert min(apart(a, b) for a, b in combinations(KIND_COLOURS.values(), 2)) > 20
