"""The browser that page tests drive. `python -m tests.browser` sets one up: `make test` does it first.

What answers on the PATH is used. Otherwise root on Debian or Ubuntu gets the system's package, and everybody else (and
an Ubuntu whose package is only a pointer to a snap) Playwright's own build. Where none can be had, tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no browser to open the page in: install chromium, or run `playwright install --with-deps chromium`"


def find_browser() -> str | None:
    """The first browser that runs here, or None."""
    on_path = (shutil.which(name) for name in NAMES)
    return next((path for path in on_path if path and _answers(path)), None) or _playwrights_own()


def set_up_browser() -> str | None:
    """The browser that is there, or one that was just installed, or None."""
    root = os.geteuid() == 0
    if (found := find_browser()) is None and root and shutil.which("apt-get"):
        _try(["apt-get", "update", "-qq"])
        wait = ["-o", "DPkg::Lock::Timeout=300"]  # somebody else may be installing: a fresh machine often does
        _try(["apt-get", *wait, "install", "-y", "-qq", "--no-install-recommends", "chromium"])
        found = find_browser()
    if found is None:
        _try([sys.executable, "-m", "playwright", "install", *(["--with-deps"] if root else []), "chromium"])
        found = find_browser()
    return found


def _playwrights_own() -> str | None:
    """Asked in a process of its own: where a browser runs already, Playwright cannot be started twice."""
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    path = done.stdout.strip()
    return path if path and _answers(path) else None


def _answers(path: str) -> bool:
    """Whether it runs: Ubuntu's package without its snap, or a build without its libraries, is found but does not."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _try(command: list[str]) -> None:
    """Run it where it can be run; whether it helped is seen by looking for the browser again."""
    print("+", *command, flush=True)
    try:
        subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL)
    except OSError as error:
        print(error, file=sys.stderr)


if __name__ == "__main__":
    print(set_up_browser() or f"{MISSING}; its tests will be skipped")
