"""Every code block of README and docs works for a reader with nothing but the package.

Python blocks are executed, one namespace per file. Of shell blocks, every `vitscope` line is parsed by the real
command, lines on the zoo and the menagerie are run (the quick ones always, the others as slow tests), and `make` lines
name targets. Readers render a whole world first; here a small one stands in its place.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from vitscope import Results
from vitscope.cli import main, make_app
from vitscope.pipeline.registry import ANALYSES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "shell", "console"}
SMALL = "--train 64 --val 32 --coco 4 --parts 8 --individuals 4 --encounters 3 --pairs 4 --videos 1 --frames 4"
OURS = ("zoo/", "world/", "study.toml", "runs/")  # words that need nothing of the reader's
QUICK = {"models", "init", "attention", "results"}


def blocks(document: Path, languages: set[str]) -> list[str]:
    return [text for language, text in BLOCK.findall(document.read_text()) if language in languages]


def shell_lines(document: Path) -> list[list[str]]:
    """The words of every command, comments left out and continued lines joined."""
    lines = (line for text in blocks(document, SHELL) for line in text.replace("\\\n", " ").splitlines())
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def can_be_run(words: list[str]) -> bool:
    command, *rest = words[1:]
    return words[0] == "vitscope" and (command in ("models", "init") or any(word.startswith(OURS) for word in rest))


def is_quick(words: list[str]) -> bool:
    """And not about something that a slow line before it writes."""
    return (words[1] in QUICK or "--dry-run" in words) and not any(word.startswith("runs/") for word in words)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("menagerie") / "world"
    main(["menagerie", "--out", str(folder), *SMALL.split()])
    return folder


@pytest.fixture
def readers_folder(tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a reader stands who rendered the world and ran the demo; what a block registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    known = dict(ANALYSES)
    (tmp_path / "world").symlink_to(world)
    Results().save(Path("runs/demo"))
    yield tmp_path
    ANALYSES.clear()
    ANALYSES.update(known)


def test_blocks_say_their_language() -> None:
    """A block without one is a drawing, such as a tree of folders; nothing to run may hide in it."""
    for document in DOCUMENTS:
        languages = {language for language, _ in BLOCK.findall(document.read_text())}
        assert languages <= {"", "python", "toml", "json", *SHELL}, document.name
        drawings = "\n".join(blocks(document, {""}))
        assert not re.search(r"^\s*(vitscope|make|import|from) ", drawings, re.MULTILINE), document.name


@pytest.mark.parametrize("name", [n for n, d in zip(NAMES, DOCUMENTS, strict=True) if blocks(d, {"python"})])
def test_python_blocks_run(readers_folder: Path, name: str) -> None:
    namespace: dict[str, object] = {}
    for text in blocks(ROOT / name, {"python"}):
        exec(compile(text, name, "exec"), namespace)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_names_a_command_with_its_options(name: str) -> None:
    for words in shell_lines(ROOT / name):
        if words[0] == "vitscope":
            make_app(words[1]).parse_args(words[1:], exit_on_error=False, print_error=False)
        elif words[0] == "make":
            dry = ["make", "--dry-run", "--no-print-directory", *words[1:]]
            subprocess.run(dry, cwd=ROOT, check=True, capture_output=True)
        else:
            pytest.fail(f"nothing here knows how to check `{shlex.join(words)}`")
        for word in words:
            if word.startswith("studies/"):
                assert (ROOT / word).is_file()


def run_lines(lines: list[list[str]]) -> None:
    for words in lines:
        try:
            main(words[1:])
        except SystemExit as stop:
            if stop.code:
                pytest.fail(f"`{shlex.join(words)}` ends with status {stop.code}")


@pytest.mark.parametrize("name", [n for n, d in zip(NAMES, DOCUMENTS, strict=True) if shell_lines(d)])
def test_quick_lines_on_the_zoo_and_the_menagerie_run(readers_folder: Path, name: str) -> None:
    run_lines([words for words in shell_lines(ROOT / name) if can_be_run(words) and is_quick(words)])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [n for n, d in zip(NAMES, DOCUMENTS, strict=True) if shell_lines(d)])
def test_all_lines_on_the_zoo_and_the_menagerie_run(readers_folder: Path, name: str) -> None:
    run_lines([words for words in shell_lines(ROOT / name) if can_be_run(words)])
