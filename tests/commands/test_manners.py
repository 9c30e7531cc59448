"""How the command behaves whatever it is asked to do: what it says, in which colours, and what it leaves behind."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.features.made import write_images
from vitscope.cli import COMMANDS, main, make_app
from vitscope.core import progress
from vitscope.core.say import set_level

MODEL = "random:vit_tiny_patch16_224"
SMALL = ("--size", "32", "--no-page", "--figures", "none")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    set_level("normal")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "photos", 16, classes=2)


def knn(photos: Path, out: Path, *more: str) -> None:
    main(["tasks", MODEL, "--knn", str(photos), "--no-probe", "--out", str(out), *SMALL, *more])


def failing(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    assert isinstance(end.value.code, int)
    return end.value.code


# -- what is said --------------------------------------------------------------------------------------------------


def test_progress_says_which_task_of_which_model(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    knn(photos, tmp_path / "out")
    said = capsys.readouterr().err
    assert "- knn of Untrained vit_tiny_patch16_224 on photos" in said


@pytest.mark.parametrize("processes", [1, 2])
def test_verbose_tells_every_step_and_its_time(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], processes: int
) -> None:
    knn(photos, tmp_path / "out", "--verbose", "--processes", str(processes))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith(" s")]
    assert len(lines) == 3  # both lists, and the votes
    assert all(line.startswith("knn of Untrained vit_tiny_patch16_224 on photos: ") for line in lines)


def test_quiet_says_nothing_but_errors(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knn(photos, tmp_path / "out", "--quiet")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")
    assert (tmp_path / "out/table.md").exists()
    assert failing("--quiet", "tasks", MODEL, "--knn", tmp_path / "nowhere") == 2
    assert "nowhere does not exist" in capsys.readouterr().err
    main(["results", str(tmp_path / "out"), "--measure", "knn_bank", "--quiet"])  # what was asked for is said
    assert "knn_bank" in capsys.readouterr().out


def test_the_last_of_quiet_and_verbose_counts_and_the_next_command_knows_of_neither(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    knn(photos, tmp_path / "out", "--verbose", "--quiet")
    assert capsys.readouterr() == ("", "")
    knn(photos, tmp_path / "out")
    assert "results: " in capsys.readouterr().out


def on_a_terminal(words: list[str], **environment: str) -> bytes:
    """What a command writes to a terminal of its own."""
    here, there = pty.openpty()
    variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    variables |= {"TERM": "xterm-256color", "COLUMNS": "100"} | environment
    subprocess.run(
        [sys.executable, "-m", "vitscope.cli", *words], stdout=there, stderr=there, env=variables, check=False
    )
    os.close(there)
    found = b""
    try:
        while part := os.read(here, 65536):
            found += part
    except OSError:  # the end, as Linux tells it
        pass
    os.close(here)
    return found


def test_no_color_means_none() -> None:
    words = ["nonsense"]
    assert b"\x1b[1;31m" in on_a_terminal(words)
    plain = on_a_terminal(words, NO_COLOR="1")
    assert b"nonsense" in plain
    assert not any(f"\x1b[{code}".encode() in plain for code in ("31", "1;31", "38", "33"))


# -- completion ----------------------------------------------------------------------------------------------------


def test_a_shell_completes_commands_options_and_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion"])
    script = tmp_path / "vitscope.bash"
    script.write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        typed = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}"
        code = f'source {script}; {typed}; _vitscope; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return set(subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout.split())

    assert set(COMMANDS) <= completed("vitscope", "")
    assert completed("vitscope", "re") == {"results"}
    assert {"--knn", "--davis"} <= completed("vitscope", "tasks", "--")
    assert completed("vitscope", "results", "--format", "") == {"csv", "md", "latex"}


# -- what is left behind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["missing", "empty", "unclassed", "model"])
def test_a_command_that_fails_leaves_no_empty_folders(photos: Path, tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    for part, name in (("train", "a"), ("val", "b")):  # nobody knows what is asked for
        write_images(tmp_path / "unclassed" / part, 4, classes=1)
        (tmp_path / "unclassed" / part / "class0").rename(tmp_path / "unclassed" / part / name)
        write_images(tmp_path / "unclassed" / part / "shared", 4, classes=1)
    data = {"missing": "missing", "model": photos}.get(what, tmp_path / what)
    model = "zoo/nobody" if what == "model" else MODEL
    before = set(tmp_path.rglob("*"))
    assert failing("tasks", model, "--knn", data, "--out", tmp_path / "new/deep/out", *SMALL) == 2
    left = set(tmp_path.rglob("*")) - before
    assert not [path for path in left if path.is_dir() and not any(path.iterdir())]
    if what != "unclassed":
        assert not left


def test_folders_made_in_vain_go_and_others_stay(tmp_path: Path) -> None:
    from vitscope.core.files import clear_unused, make_folder, write_text
    from vitscope.pipeline.store import Store

    (tmp_path / "mine").mkdir()
    make_folder(tmp_path / "mine")
    Store(tmp_path / "a/b/store", "title")
    make_folder(tmp_path / "a/full")
    write_text(tmp_path / "a/full/something.txt", "here")
    clear_unused()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "a", "a/full", "a/full/something.txt", "mine",
    ]  # fmt: skip


def test_a_folder_of_another_command_or_study_is_refused(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    knn(photos, out, "--quiet")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    study = tmp_path / "study.toml"
    study.write_text(f'title = "t"\nout = "{out}"\nmodels = [{{name = "{MODEL}", size = 32}}]\n'
                     f'[data.images]\npath = "{photos}"\n')  # fmt: skip
    for words in (["attention", MODEL, "--images", photos, "--out", out, *SMALL], ["run", study]):
        assert failing(*words) == 2
        assert "holds another study ('vitscope tasks'): choose another folder" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_figures_of_earlier_results_do_not_stay_among_those_of_later_ones(tmp_path: Path, photos: Path) -> None:
    from vitscope.core.results import Label, Results, tidy
    from vitscope.report.figures import DRAWN, draw_figures

    def results(*models: str) -> Results:
        import torch

        found = Results()
        for model in models:
            label = Label(model, "other", "d", "p")
            values = torch.tensor([0.2, 0.5], dtype=torch.float64)
            found.extend([tidy(label, "knn_top1", values, axes=("layer",), variant="cls k=20", n=9)])
            found.extend([tidy(label, "probe_top1", values, axes=("layer",), variant="cls", n=9)])
        return found

    first = {path.name for path in draw_figures(results("A"), tmp_path)}
    (tmp_path / "mine.png").write_bytes(b"mine")
    only = results("A")
    only.table = only.table.filter(only.table["measure"] == "knn_top1")
    second = {path.name for path in draw_figures(only, tmp_path)}
    assert second
    assert {path.name for path in tmp_path.iterdir()} == second | {"mine.png", DRAWN}
    assert set(json.loads((tmp_path / DRAWN).read_text())) == second - {"index.html"}
    assert first >= second
    (tmp_path / DRAWN).write_text('["../../etc/passwd", 7]')  # somebody else's: nothing outside is touched
    assert {path.name for path in draw_figures(only, tmp_path)} == second


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_words_for_every_option(name: str) -> None:
    command = make_app(name)[name]
    silent = [
        argument.name
        for argument in command.assemble_argument_collection(parse_docstring=True)
        if argument.show and not argument.parameter.help
    ]
    assert not silent
