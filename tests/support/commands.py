"""Commands run as users run them, each in a process of its own, hundreds of them within seconds.

The processes are forked from one that has imported everything (multiprocessing's forkserver), so that a command costs
what it does and not what importing torch does.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRELOADED: tuple[str, ...] = (
    "vitscope.api",
    "vitscope.commands.tasks",
    "vitscope.commands.teach",
    "vitscope.commands.menagerie",
)
PRELOADED += ("vitscope.commands.models", "vitscope.commands.results", "vitscope.pipeline.study", "vitscope.cli")
PRELOADED += ("vitscope.report.page.write", "sklearn.cluster", "matplotlib.figure", "timm", "tests.support.commands")


@dataclass(frozen=True)
class Ended:
    """How a command ended: status is None if it had to be killed; peak: bytes of memory beyond what it began with."""

    status: int | None
    out: str
    err: str
    seconds: float
    peak: int

    @property
    def problem(self) -> str:
        """What is wrong with how a command with bad input ended: nothing, if one sentence and status 2 (or success)."""
        if self.status is None:
            return f"did not end within {self.seconds:.0f} s"
        if "Traceback" in self.err + self.out:
            return "showed a traceback"
        if self.status not in (0, 2):
            return f"ended with {self.status}"
        said = [line for line in self.err.splitlines() if line.startswith("error: ")]
        if self.status == 2 and (len(said) != 1 or len(said[0]) > 1100):
            return f"said {len(said)} sentences"
        return "" if all(line.isprintable() for line in said) else "said something that is not printable"


def run_command(
    words: Sequence[str | os.PathLike[str]],
    *,
    seconds: float = 60,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
) -> Ended:
    """`vitscope WORDS` in a process of its own, killed after so many seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with tempfile.TemporaryDirectory() as folder:
        settings = (folder, [os.fspath(word) for word in words], str(cwd or Path.cwd()), environment or {})
        process = context.Process(target=_run, args=settings)
        process.start()
        start = time.monotonic()
        process.join(seconds)
        spent = time.monotonic() - start
        ended = process.exitcode is not None
        if not ended:
            process.kill()
            process.join()
        written = [(Path(folder) / name) for name in ("out", "err", "peak")]
        out, err, peak = (p.read_text(encoding="utf-8", errors="replace") if p.exists() else "" for p in written)
        return Ended(process.exitcode if ended else None, out, err, spent, int(peak or 0))


def _run(folder: str, words: list[str], cwd: str, environment: dict[str, str]) -> None:
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    os.environ.update(environment)
    os.chdir(cwd)
    for number, name in ((1, "out"), (2, "err")):
        descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, number)
    # Python's own streams are made anew: those of this process may belong to whoever started the server.
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    import torch

    from vitscope import cli

    torch.set_num_threads(1)
    before, status = peak(), 0
    try:
        cli.main(words)
    except SystemExit as ended:
        code: Any = ended.code
        status = code if isinstance(code, int) else 0 if code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    Path(folder, "peak").write_text(str(peak() - before))
    os._exit(status)
