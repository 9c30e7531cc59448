"""The declared minima are true: nothing that vitscope relies on came later."""

from __future__ import annotations

import inspect
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import timm.models
import torch
from packaging.requirements import Requirement
from packaging.version import Version

from vitscope.core.errors import VitscopeError
from vitscope.models import load_model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FIRST = {  # what we use, and the release that brought it, as seen in the releases themselves
    "torch": "2.9.0",  # torch.optim.Muon
    "torchvision": "0.24.0",  # the release that belongs to torch 2.9
    "timm": "1.0.28",  # every loader asks for weights only; before 1.0.26 none did unless told
    "cyclopts": "4.0.0",  # commands given as import strings, result_action
}


def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def requirements() -> dict[str, Requirement]:
    extras = [line for lines in project()["optional-dependencies"].values() for line in lines]
    return {found.name.lower(): found for found in map(Requirement, [*project()["dependencies"], *extras])}


def minimum(requirement: Requirement) -> Version:
    (bound,) = (Version(s.version) for s in requirement.specifier if s.operator == ">=")
    return bound


@pytest.mark.parametrize("name", FIRST)
def test_the_minimum_has_what_is_used(name: str) -> None:
    assert minimum(requirements()[name]) >= Version(FIRST[name])


def test_what_is_tested_with_satisfies_what_is_declared() -> None:
    pins = map(Requirement, (ROOT / "constraints.txt").read_text().splitlines())  # some for Python 3.10 alone
    wrong = [
        f"{pin} for {asked}"
        for pin in pins
        if (asked := requirements().get(pin.name.lower())) and str(pin.specifier).lstrip("=") not in asked.specifier
    ]
    assert not wrong


def test_the_oldest_are_the_declared_minima() -> None:
    lines = [line for line in (ROOT / "constraints-min.txt").read_text().splitlines() if not line.startswith("#")]
    oldest = {pin.name.lower(): str(pin.specifier).lstrip("=") for pin in map(Requirement, lines)}
    running = {Requirement(line).name.lower() for line in project()["dependencies"]} - {"tomli"}  # of Python 3.10
    assert running <= oldest.keys()
    assert {name: minimum(requirements()[name]) for name in oldest} == {n: Version(v) for n, v in oldest.items()}


def test_muon_is_there() -> None:
    assert issubclass(torch.optim.Muon, torch.optim.Optimizer)


@pytest.mark.parametrize("name", ["load_state_dict", "load_checkpoint", "load_state_dict_from_hf"])
def test_timm_reads_weights_only(name: str) -> None:
    assert inspect.signature(getattr(timm.models, name)).parameters["weights_only"].default is True


class Intruder:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


def test_a_card_cannot_make_timm_run_what_is_in_a_file(tmp_path: Path) -> None:
    """Options of a card are timm's: `checkpoint_path` is the way by which a card could name a pickle."""
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Intruder(tmp_path / "it ran"), protocol=2))
    (tmp_path / "card.toml").write_text(
        f'name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "evil.pth"\n'
        f'[options]\ncheckpoint_path = "{tmp_path}/evil.pth"\n'
    )
    with pytest.raises((VitscopeError, pickle.UnpicklingError)):
        load_model(tmp_path / "card.toml")
    assert not (tmp_path / "it ran").exists()
