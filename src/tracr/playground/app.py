"""The routes of the playground."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tracr.playground.crew import Crew
from tracr.playground.headers import Asgi, with_headers
from tracr.playground.limits import ServerLimits
from tracr.playground.page_files import INDEX, PageFile, page_files
from tracr.playground.queue import FairQueue, Job
from tracr.playground.rate import Browser, RequestRate
from tracr.playground.replies import RefusedRequest, Reply, json_reply
from tracr.playground.requests import TASKS, read_task

__all__ = ["Playground"]

LONGEST_TAB = 64  # characters of the id of a tab that count
OWN = Browser("", "server")
LASTING = ("download", "format", "examples", "puzzles")  # tasks of which a newer request makes no older one stale
GONE = Reply(499, b"")  # nobody receives it

Handler = Callable[[Request], Awaitable[Response]]


class Playground:
    """The application: `app` is what a server such as uvicorn runs."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.stopping = False
        self._files = page_files()
        self._rate = RequestRate(limits)
        self._fixed: dict[str, asyncio.Future[Reply]] = {}
        routes = [
            Route("/", self._file, methods=["GET"]),
            Route("/static/{name}", self._file, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            *(Route(f"/api/{task}", self._task(task), methods=["POST"]) for task in TASKS),
            *(Route(f"/api/{task}", self._fixed_answer(task), methods=["GET"]) for task in ("examples", "puzzles")),
        ]
        handlers = {RefusedRequest: _refused, HTTPException: _not_found}
        self.app: Asgi = with_headers(Starlette(routes=routes, lifespan=self._running, exception_handlers=handlers))

    @contextlib.asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        """Start and end the workers with the server."""
        self._queue = FairQueue(self.limits)
        self._crew = Crew(self.limits, self._queue)
        try:
            yield
        finally:
            await self._crew.stop()

    @property
    def idle(self) -> bool:
        """Whether no request waits or is worked on."""
        return not self._queue.waiting and not self._queue.running

    # Answers without work

    async def _file(self, request: Request) -> Response:
        file = self._files.get(request.path_params.get("name", INDEX))
        if file is None:
            raise RefusedRequest("there is no such file", status=404, hint="the page is at /")
        return _file_response(file, request.headers.get("if-none-match", ""))

    async def _health(self, request: Request) -> Response:
        status = "stopping" if self.stopping else "ok"
        content = {
            "status": status,
            "workers": self._crew.alive,
            "waiting": self._queue.waiting,
            "running": self._queue.running,
        }
        return _response(json_reply(content, 503 if self.stopping else 200))

    # Answers of workers

    def _task(self, task: str) -> Handler:
        """The handler of the requests for a task."""

        async def handle(request: Request) -> Response:
            browser = _browser(request)
            self._admit(request, browser)
            fields = read_task(task, await self._body(request))
            return _response(await self._ask(browser, fields, request))

        return handle

    def _fixed_answer(self, task: str) -> Handler:
        """The handler for an answer that never changes: a worker makes it once."""

        async def handle(request: Request) -> Response:
            if task not in self._fixed or self._failed(task):
                self._fixed[task] = asyncio.ensure_future(self._ask(OWN, {"task": task}))
            return _response(await asyncio.shield(self._fixed[task]))

        return handle

    def _failed(self, task: str) -> bool:
        made = self._fixed[task]
        return made.done() and (made.exception() is not None or made.result().status != 200)

    def _admit(self, request: Request, browser: Browser) -> None:
        """Refuse requests from pages of other sites, while the server stops, and over the rate."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise RefusedRequest(
                "this request comes from the page of another site",
                status=403,
                hint="open the page of this server",
            )
        if self.stopping:
            raise RefusedRequest(
                "the server is restarting", status=503, hint="it answers again in a moment", retry_after=3
            )
        self._rate.admit(browser)

    async def _body(self, request: Request) -> bytes:
        """The body; refused if it is too large or comes too slowly."""
        most = self.limits.body
        large = RefusedRequest(f"the body is larger than {most:,} bytes", status=413, hint="shorten the program")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > most:
            raise large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise large
        except TimeoutError:
            raise RefusedRequest("the body came too slowly", status=408, hint="send it again") from None
        except ClientDisconnect:
            raise RefusedRequest("the connection ended before the body", status=400, hint="send it again") from None
        return bytes(body)

    async def _ask(self, browser: Browser, fields: dict[str, Any], request: Request | None = None) -> Reply:
        """The answer of a worker; the request is dropped if the client goes away."""
        reply = asyncio.get_running_loop().create_future()
        job = Job(browser, fields["task"], json.dumps(fields).encode("ascii"), reply, fields["task"] in LASTING)
        self._queue.put(job)
        gone: list[asyncio.Future[Any]] = [] if request is None else [asyncio.ensure_future(_until_gone(request))]
        try:
            await asyncio.wait([job.reply, *gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watching in gone:
                watching.cancel()
            if not job.reply.done():
                self._queue.discard(job)
                job.drop(GONE)
        return job.reply.result()


def _browser(request: Request) -> Browser:
    address, connection = request.client or ("", 0)
    tab = request.headers.get("x-tracr-tab", "")[:LONGEST_TAB]
    return Browser(address, tab, 0 if tab else connection)


async def _until_gone(request: Request) -> None:
    """Wait until the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _file_response(file: PageFile, known: str) -> Response:
    headers = {"Cache-Control": "no-cache", "ETag": file.tag}
    if known == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, file.status, headers, file.kind)


def _response(reply: Reply) -> Response:
    headers = {"Cache-Control": "no-store"}
    if reply.filename:
        headers["Content-Disposition"] = f'attachment; filename="{reply.filename}"'
    if reply.retry_after:
        headers["Retry-After"] = str(reply.retry_after)
    return Response(reply.body, reply.status, headers, reply.kind)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequest)
    return _response(error.reply)


async def _not_found(request: Request, error: Exception) -> Response:
    """No such path, or a method that it does not have."""
    assert isinstance(error, HTTPException)
    response = _response(
        RefusedRequest(error.detail, status=error.status_code, hint="docs/playground.md lists the requests").reply
    )
    response.headers.update(error.headers or {})
    return response
