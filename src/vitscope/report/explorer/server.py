"""The explorer's server: 127.0.0.1 only, an unguessable token in every address, and nobody else's pages let in."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vitscope.core.errors import VitscopeError
from vitscope.core.say import say
from vitscope.data.decode import BadImage
from vitscope.report.explorer.arrays import MEDIA
from vitscope.report.explorer.choice import LONGEST, Refused
from vitscope.report.explorer.jobs import Busy, Job, Worker
from vitscope.report.explorer.page import live_page, model_data
from vitscope.report.explorer.session import MOST_BYTES, NotYet, Session, Unknown

HOST = "127.0.0.1"
PULSE = 0.1  # seconds between looks at whether a client is still there
STINT = 0.3  # seconds of preparing things before the page hears of it
SOON, LATER = 0, 1  # urgencies: what is looked at, and what is prepared

Handler = Callable[[Request], Awaitable[Response]]


class Guard:
    """Lets in who knows the token and comes from this server's own page; everybody else learns nothing.

    A page of another site can send requests here, but with its own Origin; a name that was pointed at this machine
    (DNS rebinding) arrives with its own Host.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.start = app, f"/{token}/"
        self.hosts = {f"{HOST}:{port}".encode(), f"localhost:{port}".encode()}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self.app({**scope, "path": scope["path"][len(self.start) - 1 :]}, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope.get("headers", ()):
            headers.setdefault(name, []).append(value)
        if scope["type"] != "http" or len(hosts := headers.get(b"host", [])) != 1 or hosts[0] not in self.hosts:
            return _words("this server has another name", 421)
        if any(origin not in self.origins for origin in headers.get(b"origin", [])):
            return _words("this page may not ask here", 403)
        if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
            return _words("this page may not ask here", 403)
        path = scope["path"].encode()
        if not secrets.compare_digest(path[: len(self.start)], self.start.encode()):
            return _words("there is nothing here", 404)
        return None


def _words(text: str, status: int) -> Response:
    return JSONResponse({"error": text}, status)


class Explorer:
    """The answers. Everything heavy is a job of the worker; nothing blocks the event loop."""

    def __init__(self, session: Session) -> None:
        self.session, self.worker = session, Worker()
        self._decoding = asyncio.Semaphore(2)  # uploads in memory at once

    def app(self, token: str, port: int) -> ASGIApp:
        routes = [
            ("/", self.page, "GET"),
            ("/images", self.upload, "POST"),
            ("/models", self.model, "POST"),
            ("/pictures/{model:int}/{name}", self.picture, "GET"),
            ("/thumbs/{model:int}/{name}", self.picture, "GET"),
            ("/traces/{model:int}/{name}", self.trace, "GET"),
            ("/banks/{model:int}", self.bank, "GET"),
            ("/neighbours/{model:int}/{name}/{layer:int}/{patch:int}", self.neighbours, "GET"),
            ("/segmentations/{model:int}/{name}", self.segmentation, "GET"),
            ("/status", self.status, "GET"),
        ]

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            yield
            await asyncio.to_thread(self.worker.close)

        starlette = Starlette(
            routes=[Route(path, self._told(handler), methods=[method]) for path, handler, method in routes],
            lifespan=lifespan,
        )
        return Guard(starlette, token, port)

    def _told(self, handler: Handler) -> Handler:
        """The handler with every failure as one sentence, without a path of this machine."""

        async def told(request: Request) -> Response:
            try:
                response = await handler(request)
            except ClientDisconnect:
                return Response(status_code=499)
            except TooLong as error:
                refused = _words(str(error), 413)
                refused.headers["connection"] = "close"  # or the rest would be read and thrown away
                return refused
            except (Unknown, Refused) as error:
                return _words(str(error), 404)
            except NotYet as error:
                return _words(str(error), 409)
            except BadImage as error:
                return _words(f"this image {error.reason}", 422)
            except Busy:
                return _words("too much was asked at once: try again in a moment", 503)
            except VitscopeError as error:
                say(str(error), label="explorer:", style="red", to_errors=True)
                return _words("this cannot be done; the terminal says why", 422)
            except Exception as error:
                say(f"{type(error).__name__}: {error}", label="explorer:", style="red", to_errors=True)
                return _words("something unexpected happened; the terminal says what", 500)
            response.headers["cache-control"] = "no-store"
            response.headers["x-content-type-options"] = "nosniff"
            response.headers["referrer-policy"] = "no-referrer"
            response.headers["cross-origin-resource-policy"] = "same-origin"
            return response

        return told

    async def page(self, request: Request) -> Response:
        page, policy = await asyncio.to_thread(live_page, self.session)
        return HTMLResponse(page, headers={"content-security-policy": policy})

    async def upload(self, request: Request) -> Response:
        """The body is the file, nothing else."""
        async with self._decoding:
            data = await _body(request, MOST_BYTES)
            name = await asyncio.to_thread(self.session.upload, data)
        return JSONResponse({"name": name})

    async def model(self, request: Request) -> Response:
        """The body is what somebody typed; the answer, what the page has to know of the model, and its number."""
        text = (await _body(request, 4 * LONGEST)).decode("utf-8", "replace")

        def found(_stop: Callable[[], bool]) -> dict[str, Any]:
            number = self.session.add(text)
            (data,) = model_data([self.session.spec(number)], self.session.calls)
            return {"number": number, "model": data}

        return JSONResponse(await self._outcome(request, self.worker.submit(("model", text), found, SOON)))

    async def picture(self, request: Request) -> Response:
        small = request.url.path.startswith("/thumbs/")
        model, name = request.path_params["model"], request.path_params["name"]
        data = await asyncio.to_thread(self.session.picture, name, model, small=small)
        return Response(data, media_type="image/jpeg")

    async def trace(self, request: Request) -> Response:
        model, name = request.path_params["model"], request.path_params["name"]
        return await self._worked(request, ("trace", model, name), lambda stop: self.session.trace(model, name, stop))

    async def bank(self, request: Request) -> Response:
        """A few more images of the gallery go through the model; how many have, and the kinds of heads at the end."""
        model = request.path_params["model"]

        def grow(_stop: Callable[[], bool]) -> dict[str, Any]:
            bank, start = self.session.bank(model), time.monotonic()
            bank.grow(lambda: time.monotonic() - start > STINT or self.worker.pressed(LATER))
            kinds = None if bank.kinds is None else bank.kinds.tolist()
            return {"done": bank.done, "planned": bank.planned, "kinds": kinds}

        job = self.worker.submit(("bank", model), grow, LATER)
        return JSONResponse(await self._outcome(request, job))

    async def neighbours(self, request: Request) -> Response:
        asked = tuple(request.path_params[key] for key in ("model", "name", "layer", "patch"))
        return await self._worked(request, ("near", *asked), lambda _stop: self.session.neighbours(*asked))

    async def segmentation(self, request: Request) -> Response:
        asked = tuple(request.path_params[key] for key in ("model", "name"))
        return await self._worked(request, ("segment", *asked), lambda _stop: self.session.segmentation(*asked))

    async def status(self, request: Request) -> Response:
        return JSONResponse({"waiting": self.worker.waiting, "bytes": self.session.used})

    async def _worked(self, request: Request, key: tuple[Any, ...], work: Callable[..., bytes]) -> Response:
        return Response(await self._outcome(request, self.worker.submit(key, work, SOON)), media_type=MEDIA)

    async def _outcome(self, request: Request, job: Job) -> Any:
        """Wait for a job as long as the client does: who went away wants nothing any more."""
        future = asyncio.wrap_future(job.future)
        try:
            while not future.done():
                await asyncio.wait([future], timeout=PULSE)
                if not future.done() and await request.is_disconnected():
                    raise ClientDisconnect
            return future.result()
        finally:
            self.worker.leave(job)
            future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody asks again


class TooLong(VitscopeError):
    """More was sent than is taken."""


async def _body(request: Request, most: int) -> bytes:
    """What was sent. Too long a body is left before it is read, or where it grows too long."""
    size = f"{most >> 20} MB" if most >> 20 else f"{most} bytes"
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > most:
        raise TooLong(f"this may have {size} at most")
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise TooLong(f"this may have {size} at most")
    return bytes(data)


def bound_socket(port: int = 0) -> socket.socket:
    """A listening place on the loopback address; port 0 is any free one."""
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((HOST, port))
    except OSError as error:
        place.close()
        raise VitscopeError(f"port {port} cannot be used ({error.strerror}): choose another --port") from error
    return place


def serve(session: Session, *, port: int = 0, opened: Callable[[str], None]) -> None:
    """Answer until Ctrl-C. opened: is told the address as soon as it answers."""
    import uvicorn

    place, token = bound_socket(port), secrets.token_urlsafe(24)
    port = place.getsockname()[1]
    app = Explorer(session).app(token, port)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, proxy_headers=False, ws="none",
        limit_concurrency=128, timeout_keep_alive=30, timeout_graceful_shutdown=2,
    )  # fmt: skip

    class Told(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            opened(f"http://{HOST}:{port}/{token}/")

    Told(config).run(sockets=[place])
