"""What a command imports before it does anything: the waiting that everybody feels."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys
{code}
print("modules", *sorted({{name.partition(".")[0] for name in sys.modules}}), len(sys.modules), file=sys.stderr)
"""
COMMAND = """
sys.argv = ["vitscope", *{arguments}]
from vitscope.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
CASES = [  # code, packages that must not be there, at most so many modules
    ("import vitscope", {"torch", "timm", "torchvision", "polars", "matplotlib", "numpy"}, 150),
    (COMMAND.format(arguments=["--help"]), {"torch", "timm", "torchvision", "polars", "matplotlib"}, 500),
    (COMMAND.format(arguments=["--version"]), {"torch", "timm", "torchvision", "polars", "matplotlib"}, 500),
    (COMMAND.format(arguments=["models"]), {"timm", "torchvision", "polars", "matplotlib", "sklearn"}, 2000),
    ("from vitscope.pipeline.engines.local import Worker\nfrom vitscope import Attention, Features", {"sklearn"}, 4000),
]


@pytest.mark.parametrize(("code", "absent", "most"), CASES, ids=["import", "help", "version", "models", "worker"])
def test_what_is_not_needed_is_not_imported(code: str, absent: set[str], most: int) -> None:
    run = subprocess.run([sys.executable, "-c", RUN.format(code=code)], capture_output=True, text=True, check=True)
    *packages, count = run.stderr.splitlines()[-1].split()[1:]
    assert not absent & set(packages)
    assert int(count) <= most
