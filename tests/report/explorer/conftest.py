"""A running explorer: the real server on 127.0.0.1, in a thread of its own, that ends with the tests."""

from __future__ import annotations

import http.client
import io
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
import uvicorn
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page

from tests.report.conftest import PATIENCE, watch
from vitscope.core.teachings import TEACHINGS
from vitscope.models.spec import resolve
from vitscope.report.explorer.gallery import menagerie_gallery
from vitscope.report.explorer.server import HOST, Explorer, bound_socket
from vitscope.report.explorer.session import Session

# every panel shows something of the image that is asked for
DRAWN = "vitscope.shown.length && vitscope.shown.every((one) => one.map && one.image === vitscope.state.image)"
TOKEN = "the-token-of-the-tests"
ZOO = ("dino", "mae", "fs")


@dataclass
class Running:
    """A server that answers at `address`, and the session behind it."""

    session: Session
    explorer: Explorer
    port: int
    address: str = ""
    server: Any = field(default=None, repr=False)

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        token: str = TOKEN,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Status and body of one request."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        try:
            connection.request(method, f"/{token}/{path}", body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def run_explorer(session: Session) -> Iterator[Running]:
    place = bound_socket()
    port = place.getsockname()[1]
    explorer = Explorer(session)
    config = uvicorn.Config(explorer.app(TOKEN, port), log_level="critical", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Running(session, explorer, port, f"http://{HOST}:{port}/{TOKEN}/", server)
    server.should_exit = True
    thread.join(timeout=20)
    assert not thread.is_alive()


def zoo_session(**options: Any) -> Session:
    specs = [resolve(f"zoo/{key}", title=TEACHINGS[key].title) for key in ZOO]
    return Session(specs, menagerie_gallery(6), device="cpu", **options)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    yield from run_explorer(zoo_session())


@pytest.fixture
def explore(browser: Browser) -> Iterator[Any]:
    """Open an address in Chromium; errors on the way fail the test. Requests to the page's own server are allowed."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def opener(address: str, *, width: int = 1400, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        parts = urlsplit(address)
        own = f"{parts.scheme}://{parts.netloc}/{TOKEN}/"
        watch(page, address.split("#")[0], troubles)
        page.on("response", lambda got: troubles.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        page.goto(address)
        until(page, DRAWN)
        troubles[:] = [one for one in troubles if not one.startswith((own, "blob:"))]
        return page

    yield opener
    for context in contexts:
        context.close()
    left = [one for one in troubles if not one.startswith((f"http://{HOST}", "blob:"))]
    assert not left, left


@pytest.fixture
def photo() -> Image.Image:
    """Smooth random colours, wider than high."""
    coarse = np.random.default_rng(7).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((180, 140), Image.Resampling.BICUBIC)


def as_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture
def photo_file(photo: Image.Image, tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    path.write_bytes(as_png(photo))
    return path


def until(page: Page, true: str) -> None:
    """Wait until an expression is true. Playwright's own way evaluates strings, which the page's policy forbids."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(true):
        assert time.monotonic() < deadline, true
        page.wait_for_timeout(30)


def shown_values(page: Page, position: int = 0) -> torch.Tensor:
    """The numbers that a panel was drawn from."""
    return torch.tensor(page.evaluate(f"Array.from(vitscope.shown[{position}].map.values)"))
