"""The command: `vitscope --help`, and the one place where errors become words and exit statuses.

2    what was asked for cannot be done (bad input, a full disk): one sentence with the remedy
1    something nobody foresaw: one sentence, and `--traceback` shows where it happened
130  stopped by Ctrl-C (SIGINT); 143 by SIGTERM; 141 when the reader of a pipe went away
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal, get_args

from cyclopts import App, CycloptsError, Parameter, convert

from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.reading import user_path
from vitscope.core.say import Level, say, set_level

COMMANDS = {
    "demo": "Run the complete study on the built-in zoo and world.",
    "init": "Write a commented study file to start from.",
    "explore": "Look through models, live: drop in a photo, click a patch.",
    "run": "Run a study, or go on with it: only what is new is computed.",
    "results": "Print the results of a run as CSV, Markdown or LaTeX.",
    "models": "List the models that have names, and how to get their weights.",
    "datasets": "List the official datasets, check copies of them, and how to get them.",
    "attention": "How: where heads look, how far, and what kind of head each is.",
    "heads": "List the kind of every head, and check it against the paper's own labels.",
    "features": "What: similarity of layers and models, clusters, residual streams.",
    "look": "Your own photos as models see them: components, likeness, attention.",
    "extract": "Write pooled features of all layers to a store.",
    "tasks": "Why: downstream tasks at every layer, and the best layers.",
    "menagerie": "Render the built-in world in the layouts of official datasets.",
    "teach": "Teach a ViT on your own images, in one of six ways.",
    "completion": "Print a script that lets a shell complete commands and options.",
}

TRACEBACK = "--traceback"
LEVELS: dict[str, Level] = {"--quiet": "quiet", "--verbose": "verbose"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
SAID = 400  # characters of what a library says


def make_app(chosen: str = "") -> App:
    """The command with its subcommands, each imported only when it is used, so that --help is quick.

    The list of commands shows one line for each; the chosen one shows its whole docstring.
    """
    app = App(
        name="vitscope",
        help="See what a Vision Transformer became through the way it was taught.",
        help_epilogue=f"Any command takes --quiet (errors alone), --verbose (every step and its time) and {TRACEBACK} "
        "(where an error happened).",
        suppress_keyboard_interrupt=False,  # or nobody learns that what was written stays
        version_flags=["--version"],
        default_parameter=Parameter(negative_iterable=(), converter=_typed),
    )
    for number, (name, text) in enumerate(COMMANDS.items()):
        line = {} if name == chosen else {"help": text}
        place = completion if name == "completion" else f"vitscope.commands.{name}:{name}"
        app.command(place, name=name, sort_key=number, **line)
    return app


def completion(shell: Literal["bash", "zsh", "fish"] = "bash", /) -> None:
    """Print a script that lets a shell complete commands and options with the tab key.

    bash: write it to ~/.local/share/bash-completion/completions/vitscope; zsh: to a file _vitscope in a folder of
    $fpath; fish: to ~/.config/fish/completions/vitscope.fish.

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    print(make_app().generate_completion(prog_name="vitscope", shell=shell), end="")


def _typed(kind: Any, words: Sequence[Any]) -> Any:
    """What was typed, as an argument's type: 1.5 is no whole number and is not rounded to one; paths are possible."""
    kinds = {kind, *get_args(kind)}
    if kinds & {int, list[int]} and not all(re.fullmatch(r"[+-]?[0-9]{1,40}", word.value) for word in words):
        raise ValueError(f"{shorten(words[0].value, 40)} is not a whole number")
    value = convert(kind, words)
    if isinstance(value, Path):
        return user_path(value)
    return [user_path(item) for item in value] if kinds & {list[Path]} else value


class Terminated(BaseException):
    """SIGTERM, raised like Ctrl-C, so that files are closed, locks given back and workers ended on the way out."""


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = words[: words.index("--")] if "--" in words else words
    if show := TRACEBACK in options:
        words.remove(TRACEBACK)
    said = [word for word in options if word in LEVELS]
    for word in said:
        words.remove(word)
    set_level(LEVELS[said[-1]] if said else "normal")
    for stream in (sys.stdout, sys.stderr):  # names of files may hold what the terminal's encoding does not
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _terminable():
            app = make_app(words[0] if words else "")
            app(words, exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        _clear_away()
        status = _tell(error)
        if show:
            traceback.print_exception(error)
        sys.exit(status)


def _clear_away() -> None:
    """A command that failed leaves no empty folders. Without the module that makes folders none was made."""
    if files := sys.modules.get("vitscope.core.files"):
        files.clear_unused()


def _tell(error: BaseException) -> int:
    """Say what happened in one sentence; the exit status that goes with it."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that closing it does not fail again
        return 128 + signal.SIGPIPE
    if isinstance(error, (KeyboardInterrupt, Terminated)):
        say("stopped; what was written stays, and the same command goes on from there", to_errors=True)
        return 128 + (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
    if isinstance(error, VitscopeError):
        return _error(str(error), 2)
    if isinstance(error, CycloptsError):
        _error(shorten(_complaint(error), SAID), 2)
        say("`vitscope --help` and `vitscope COMMAND --help` say what there is.", to_errors=True)
        return 2
    if isinstance(error, OSError) and error.errno in FULL:
        return _error(f"the disk is full{_where(error)}: make room and run the same command again", 2)
    if isinstance(error, OSError) and error.errno in READ_ONLY:
        return _error(f"{error.strerror}{_where(error)}: choose a place that can be read and written", 2)
    if isinstance(error, MemoryError):
        why = "the memory of this machine does not suffice: use a smaller model, image size or batch"
    else:
        said = " ".join(str(error).split())
        why = f"something unexpected happened: {type(error).__name__}" + (f": {shorten(said, SAID)}" if said else "")
    return _error(f"{why} ({TRACEBACK} shows where; what was written stays)", 1)


def _complaint(error: CycloptsError) -> str:
    """What is wrong with what was typed; of a setting that pydantic refuses, its name and the reason alone."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return " ".join(str(error).split())
    first = errors()[0]
    return f"--{'.'.join(map(str, first['loc'])).replace('_', '-')}: {first['msg'].removeprefix('Value error, ')}"


def _error(sentence: str, status: int) -> int:
    say(sentence, label="error:", style="red", to_errors=True)
    return status


def _where(error: OSError) -> str:
    return f" ({shorten(os.fsdecode(error.filename))})" if isinstance(error.filename, (str, bytes)) else ""


@contextmanager
def _terminable() -> Iterator[None]:
    """Within it, SIGTERM raises `Terminated` in this process, once; a second one ends it at once."""
    owner = os.getpid()

    def terminate(number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() != owner:  # a forked worker has this handler too, and no business with it
            os.kill(os.getpid(), number)
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # not the main thread: whoever called us minds the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    main()
