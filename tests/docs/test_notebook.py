"""The notebook runs from its first cell to its last, in an empty folder, and shows what it promises."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples/five-minutes.ipynb"


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_what_the_notebook_imports_is_there() -> None:
    """Quick, so that a name that moves is noticed at once."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    parts = [part for cell in cells for part in ast.parse("".join(cell["source"])).body]
    imports = [part for part in parts if isinstance(part, ast.Import | ast.ImportFrom)]
    assert len(imports) > 5
    exec(compile(ast.Module(imports, []), str(NOTEBOOK), "exec"), {})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2
    assert not [output for output in shown if output.output_type == "error"]
    (last,) = notebook.cells[-2].outputs
    assert "global" in last.data["text/plain"]
    assert "local" not in last.data["text/plain"]  # no head of an untrained network is
    nbformat.write(notebook, tmp_path / "ran.ipynb")
