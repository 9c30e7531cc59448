"""Every command, every file argument, the same evil files: one sentence and status 2, or success; never a traceback.

Commands and arguments are found by looking at the application, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.conftest import make_photos
from tests.support.commands import run_command
from tests.support.hostile import evil_files
from vitscope import cli

MODEL = "random:zoo/dino"
SECONDS, BYTES = 30, 1 << 30
# What a command needs beside the argument under test; `photos` is a folder of images.
NEEDED: dict[str, list[str]] = {
    "demo": [],
    "init": [],
    "run": [],
    "results": [],
    "models": [],
    "datasets": [],
    "completion": [],
    "heads": [MODEL, "--images", "photos", "--out", "out"],
    "look": ["photos/class0/000.png", "--model", MODEL, "--out", "out"],
    "explore": [MODEL, "--export", "page.html", "photos/class0/000.png"],  # without it, a server until Ctrl-C
    "attention": [MODEL, "--images", "photos", "--out", "out", "--no-page", "--figures", "none"],
    "features": [MODEL, "--images", "photos", "--out", "out", "--no-page", "--figures", "none", "--seeds", "1"],
    "extract": [MODEL, "--images", "photos", "--out", "out"],
    "tasks": [MODEL, "--knn", "photos", "--out", "out", "--no-page", "--figures", "none", "--no-probe"],
    "menagerie": ["--out", "out", "--train", "2", "--val", "2"],
    "teach": ["mae", "--images", "photos", "--out", "out", "--arch", "vit_tiny_patch16_224"],
}
NEEDED["menagerie"] += [
    word for name in ("coco", "parts", "individuals", "pairs", "videos") for word in (f"--{name}", "0")
]
NEEDED["teach"] += ["--size", "32", "--epochs", "0.1", "--batch", "2"]
WORDS: tuple[str, ...] = (
    "\udcff\x1b[31m[/x]",
    "",
    " ",
    "a\nb",
    "$\\frac{$",
    "k" * 100_000,
    "~nosuchuser",
    "/dev/zero",
    "../../etc/passwd",
)
WORDS += (
    "=1+1",
    "nan",
    "1e999",
    "hf-hub:timm/vit_tiny_patch16_224",
    "=" + "[" * 5000,
    "depth=" + "9" * 5000,
    "cuda:99",
)
SUFFIXES = {"study": ".toml", "config": ".toml", "models": ".toml", "labels": ".csv", "images": ".txt", "show": ".png"}
SUFFIXES |= {"masks": ".json", "spair": ".json", "weights": ".safetensors"}


def arguments(command: str) -> list[Any]:
    return list(cli.make_app(command)[command].assemble_argument_collection())


def is_of(kind: type, hint: Any) -> bool:
    return hint is kind or any(is_of(kind, inner) for inner in get_args(hint))


def file_arguments() -> Iterator[tuple[str, str]]:
    """(command, argument): options as they are typed, positional ones by their bare name."""
    for command in cli.COMMANDS:
        for argument in arguments(command):
            if is_of(Path, argument.hint) or argument.name.lower() in ("models", "*models"):
                yield command, argument.name


def number_arguments() -> Iterator[tuple[str, str]]:
    for command in cli.COMMANDS:
        for argument in arguments(command):
            if is_of(int, argument.hint) and not is_of(bool, argument.hint):
                yield command, argument.name


def text_arguments() -> Iterator[tuple[str, str]]:
    for command in cli.COMMANDS:
        for argument in arguments(command):
            if is_of(str, argument.hint) and argument.name.lower() not in ("models", "*models"):
                yield command, argument.name


def decimal_arguments() -> Iterator[tuple[str, str]]:
    for command in cli.COMMANDS:
        for argument in arguments(command):
            if is_of(float, argument.hint) and not is_of(int, argument.hint):
                yield command, argument.name


def words_for(command: str, name: str, value: str) -> list[str]:
    """The words of a command with one argument replaced by `value`."""
    words = list(NEEDED[command])
    if not name.startswith("-"):
        if name.lower().strip("*") == "models":
            words = [value if word == MODEL else word for word in words]
        else:
            words = [value, *words]
    elif name in words:
        words[words.index(name) + 1] = value
    else:
        words += [name, value]
    return [command, *words]


def test_every_command_is_fed() -> None:
    assert set(NEEDED) == set(cli.COMMANDS)
    found = set(file_arguments())
    expected = {
        ("run", "STUDY"),
        ("results", "RUN"),
        ("tasks", "--spair"),
        ("features", "--labels"),
        ("teach", "--config"),
        ("teach", "--weights"),
        ("attention", "--show"),
        ("attention", "MODELS"),
        ("init", "PATH"),
        *(
            (command, "--out")
            for command in set(NEEDED) - {"init", "results", "models", "datasets", "completion", "explore"}
        ),
    }
    assert expected <= found, f"missing: {expected - found}; found: {sorted(found)}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images and a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    make_photos(folder / "photos", count=6)
    words = ["attention", MODEL, "--images", "photos", "--out", "run", "--no-page", "--figures", "none"]
    assert run_command(words, cwd=folder).status == 0
    return folder


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that nobody else can have: with it, the explorer ends where it would begin to serve."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        yield str(place.getsockname()[1])


def try_words(command: str, name: str, folder: Path, values: Sequence[str], taken: str) -> None:
    """Run the command with each text in the place of one argument. Runs are looked at, and not made anew each time."""
    wrong = []
    for value in values:
        words = words_for(command, name, value)
        if command in ("heads", "results") and name.startswith("-"):
            words = [command, "run", name, value]
        if command == "explore":
            words = [command, MODEL, name, value, "--port", taken]
        ended = run_command(words, seconds=SECONDS, cwd=folder)
        if ended.problem:
            wrong.append(f"{value[:40]!r}: {ended.problem}: {ended.err[-300:]}")
    assert not wrong, "\n".join(wrong)


def feed(command: str, name: str, folder: Path, taken: str, kinds: tuple[str, ...] = ()) -> None:
    """Run the command with each evil file in the place of one argument."""
    make_photos(folder / "photos", count=6)
    wrong = []
    evil = evil_files(folder / "evil", SUFFIXES.get(name.strip("-*").lower(), ""))
    for kind in kinds or evil:
        if command == "demo" and kind in ("missing", "folder", "half"):
            continue  # a place like any other: the demo would run
        words = words_for(command, name, str(evil[kind]))
        if command == "explore" and name in ("--images", "--run"):  # which an export does not read
            words = [command, MODEL, name, str(evil[kind]), "--port", taken]
        ended = run_command(words, seconds=SECONDS, cwd=folder)
        if problem := ended.problem or ("took too much memory" if ended.peak > BYTES else ""):
            wrong.append(f"{kind}: {problem}: {ended.err[-300:]}")
    assert not wrong, "\n".join(wrong)
    assert not (folder / "sprung").exists()


def count(command: str, name: str, folder: Path, values: tuple[str, ...]) -> None:
    """Run the command with each of these in the place of a whole number: none of them is one that it takes."""
    make_photos(folder / "photos", count=6)
    wrong = []
    for value in values:
        ended = run_command(words_for(command, name, value), seconds=SECONDS, cwd=folder)
        if ended.problem or ended.status != 2:
            wrong.append(f"{value[:40]}: {ended.problem or ended.status}: {ended.err[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("command", "name"), file_arguments())
def test_a_pipe(command: str, name: str, tmp_path: Path, taken: str) -> None:
    feed(command, name, tmp_path, taken, ("pipe",))


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), file_arguments())
def test_evil_files(command: str, name: str, tmp_path: Path, taken: str) -> None:
    feed(command, name, tmp_path, taken)


@pytest.mark.parametrize(("command", "name"), text_arguments())
def test_a_text_that_no_terminal_should_show(command: str, name: str, finished: Path, taken: str) -> None:
    try_words(command, name, finished, WORDS[:1], taken)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), text_arguments())
def test_strange_texts(command: str, name: str, finished: Path, taken: str) -> None:
    try_words(command, name, finished, WORDS, taken)


@pytest.mark.parametrize(("command", "name"), number_arguments())
def test_half_a_number(command: str, name: str, tmp_path: Path) -> None:
    count(command, name, tmp_path, ("1.5",))


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), number_arguments())
def test_numbers_that_are_none(command: str, name: str, tmp_path: Path) -> None:
    count(command, name, tmp_path, ("-1", "9" * 30, "9" * 5000, "nan", "inf", "", "one"))


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), decimal_arguments())
def test_decimals_that_are_none(command: str, name: str, tmp_path: Path) -> None:
    count(command, name, tmp_path, ("-1", "nan", "inf", "-inf", "1e999", "9" * 5000, "", "one"))


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_words_that_no_command_knows(command: str, tmp_path: Path) -> None:
    strange = (
        ["--nonsense"],
        ["--out"],
        ["a"] * 50,
        ["--" + "k" * 100_000],
        ["\udcff\x1b[31m"],
        ["--images", "x", "y"],
    )
    for words in strange:
        if command == "models" and words == ["a"] * 50:
            continue
        ended = run_command([command, *words], seconds=SECONDS, cwd=tmp_path)
        # any word is a file name to `init`
        assert ended.status == 2 or (command == "init" and not words[0].startswith("-")), (words[0][:40], ended)
        assert not ended.problem, (words[0][:40], ended)
        assert not re.search(r"\x1b\[31m", ended.err.replace("\x1b[31merror", ""))
