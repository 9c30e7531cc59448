"""`vitscope explore` as people type it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from PIL import Image

from vitscope.cli import main


def test_a_newcomer_is_there_within_seconds_and_leaves_with_ctrl_c() -> None:
    words = [sys.executable, "-m", "vitscope.cli", "explore", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", said)
            assert found, said
            with urllib.request.urlopen(found.group(), timeout=60) as answer:
                page = answer.read().decode()
            assert '"name":"zoo/dino"' in page
            process.send_signal(signal.SIGINT)
            deadline = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            assert process.returncode == 130
        finally:
            process.kill()


def test_help_needs_neither_torch_nor_a_server() -> None:
    code = (
        "import sys\nfrom vitscope.cli import main\n"
        "try: main(['explore', '--help'])\nexcept SystemExit: pass\n"
        "print([name for name in ('torch', 'starlette', 'uvicorn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip().endswith("[]"), done.stdout[-200:]


def failing(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence of a command that ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "vitscope.report.explorer.server", raising=False)
    for name in [name for name in sys.modules if name.startswith("starlette.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert "pip install 'vitscope[explore]'" in failing(["explore", "--no-browser"], capsys)


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "does not exist" in failing(["explore", "--no-browser", "--images", str(tmp_path / "none")], capsys)
    assert "provenance.json is missing" in failing(["explore", "--no-browser", "--run", str(tmp_path)], capsys)
    (tmp_path / "bad.png").write_bytes(b"nothing")
    told = failing(["explore", "zoo/dino", "--export", str(tmp_path / "p.html"), str(tmp_path / "bad.png")], capsys)
    assert "not an image" in told
    assert not (tmp_path / "p.html").exists()


def test_a_run_of_a_single_command_brings_its_models(photos: Path, tmp_path: Path) -> None:
    """It has no study file to name them: its table does."""
    from vitscope.api import load_results
    from vitscope.commands.explore import _specs
    from vitscope.commands.options import ModelOptions

    main(["tasks", "zoo/mae", "--knn", str(photos), "--out", str(tmp_path / "run"), "--no-page", "--figures", "none",
          "--no-probe"])  # fmt: skip
    specs, _ = _specs([], load_results(tmp_path / "run"), ModelOptions())
    assert specs[0].name == "zoo/mae"
    assert [spec.name for spec in specs].count("zoo/mae") == 1


def test_exports_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.effect_noise((80, 60), 90).convert("RGB").save(tmp_path / "a.png")
    main(["explore", "zoo/dino", "--export", str(tmp_path / "sub" / "page.html"), str(tmp_path / "a.png")])
    page = (tmp_path / "sub" / "page.html").read_text()
    assert '"source":"frozen"' in page
    assert 'id="trace-0-f0"' in page
    main(["explore", "zoo/mae", "--export", str(tmp_path / "networks.html")])
    assert '"source":"networks"' in (tmp_path / "networks.html").read_text()
    assert "MB)" in capsys.readouterr().out
