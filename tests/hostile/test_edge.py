"""The edge of the program: whatever happens inside a command, people get one sentence and the right exit status."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from vitscope import cli
from vitscope.core.errors import BadData, VitscopeError, printable, shorten
from vitscope.core.say import say

# A command of the tests' own, run through the real application in a process of its own.
DRIVER = """
import sys, types
module = types.ModuleType("vitscope.commands.wait")
def wait():
    import time
    print("ready", flush=True)
    time.sleep(60)
module.wait = wait
sys.modules["vitscope.commands.wait"] = module
from vitscope import cli
cli.COMMANDS["wait"] = "Wait."
cli.main(["wait"])
"""


def run_failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *words: str) -> int:
    def app(*_words: object, **_settings: object) -> None:
        raise error

    monkeypatch.setattr(cli, "make_app", lambda _chosen: app)
    with pytest.raises(SystemExit) as ended:
        cli.main(["attention", *words])
    return int(str(ended.value.code))


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (VitscopeError("there is no such model: choose another"), 2, "there is no such model: choose another"),
        (OSError(errno.ENOSPC, "No space left on device", "out/a.parquet"), 2, "the disk is full (out/a.parquet)"),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 2, "Permission denied (out)"),
        (MemoryError(), 1, "the memory of this machine does not suffice"),
        (RecursionError("maximum recursion depth exceeded"), 1, "RecursionError"),
        (OSError(errno.EIO, "Input/output error"), 1, "Input/output error"),
        (KeyError("x" * 10_000_000), 1, "KeyError"),
        (ValueError("first\nsecond\nthird"), 1, "first second third"),
        (AssertionError(), 1, "AssertionError"),
        (KeyboardInterrupt(), 130, "stopped; what was written stays"),
        (cli.Terminated(), 143, "stopped; what was written stays"),
    ],
)
def test_one_sentence_and_a_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Any, status: int, said: str
) -> None:
    assert run_failing(monkeypatch, error) == status
    shown = capsys.readouterr()
    assert said in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert len(shown.err) < 1200
    assert "Traceback" not in shown.err
    assert not shown.out
    assert ("--traceback" in shown.err) == (status == 1)


def test_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_failing(monkeypatch, ZeroDivisionError("half of nothing"), "--traceback") == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "ZeroDivisionError: half of nothing" in shown


def test_traceback_after_a_double_dash_is_a_word_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(cli, "make_app", lambda _chosen: lambda words, **_settings: seen.extend(words))
    cli.main(["models", "--", "--traceback"])
    assert seen == ["models", "--", "--traceback"]


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143)],
)
def test_signals_are_answered(number: signal.Signals, status: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert errors.startswith("stopped; what was written stays")
    assert len(errors.splitlines()) == 1


def test_paths_are_not_markup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_failing(monkeypatch, BadData("there is no /data/[/x]/[bold]a[/bold]:smile: here"))
    assert "/data/[/x]/[bold]a[/bold]:smile: here" in capsys.readouterr().err
    say("wrote /data/[/x]/[red]:smile:")
    assert capsys.readouterr().out == "wrote /data/[/x]/[red]:smile:\n"


def test_messages_are_one_printable_line_of_bounded_length() -> None:
    name = "a\nb\x1b[31m\udcff" + "k" * 10_000_000
    for error in (VitscopeError(f"no '{name}' here"), BadData(name)):
        assert str(error).isprintable()
        assert len(str(error)) < 1100
    assert shorten("k" * 10_000_000) == "k" * 60 + " ... " + "k" * 60
    assert printable("\u202eevil") == "\\u202eevil"


def test_names_that_the_terminal_cannot_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an ASCII terminal a foreign name is spelled out instead of ending the program."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", screen)
    assert run_failing(monkeypatch, BadData("there is no caf\u00e9")) == 2
    screen.flush()
    assert screen.buffer.getvalue() == b"error: there is no caf\\xe9\n"
