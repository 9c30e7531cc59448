"""`python -m zoo`, from the root of the repository: train, pilot, status, ship, exam."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from cyclopts import App

import zoo
from vitscope.core.errors import VitscopeError
from zoo.driver import status, train
from zoo.exam.command import exam
from zoo.pilots import pilot
from zoo.shipping import ship

app = App(help=zoo.__doc__, help_format="plaintext")
for command in (train, pilot, status, ship, exam):
    app.command(command)


def step_back() -> None:
    """Let everything else go first. Linux weighs whole sessions too (autogroups): lowered if this one is its own."""
    os.nice(19)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text("19")


def main() -> None:
    step_back()
    try:
        app()
    except VitscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
