"""A browser for the page's tests: Chromium or Chrome, without a screen and without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, sync_playwright

from tests.browser import MISSING, find_browser
from tests.report.constructed import outcome
from vitscope.findings.outcome import StudyOutcome
from vitscope.report.page import write_page

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 20_000  # milliseconds, on a busy machine


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = find_browser()
    if chromium is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS), timeout=60_000)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def complete_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The constructed study as a file."""
    return write_page(outcome(), tmp_path_factory.mktemp("page") / "report.html")


Opener = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, complete_page: Path, tmp_path: Path) -> Iterator[Opener]:
    """Open a study's page (the constructed one if none is given); errors and requests on the way fail the test."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def opener(study: StudyOutcome | None = None, *, width: int = 1400, dark: bool = False) -> Page:
        path = complete_page if study is None else write_page(study, tmp_path / "report.html")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        address = path.as_uri()
        watch(page, address, troubles)
        page.goto(address)
        return page

    yield opener
    for context in contexts:
        context.close()
    assert not troubles, troubles


def watch(page: Page, address: str, troubles: list[str]) -> None:
    """Note every error, warning, dialog and request that is not the page itself."""

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            troubles.append(message.text)

    def dialog(opened: Dialog) -> None:
        troubles.append(f"dialog: {opened.message}")
        opened.dismiss()

    def request(sent: Request) -> None:
        if not sent.url.startswith("data:") and sent.url.split("#")[0] != address:
            troubles.append(sent.url)

    page.on("console", console)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", dialog)
    page.on("request", request)
