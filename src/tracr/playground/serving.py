"""The server process: starts, serves, and stops without losing a request."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tracr.errors import InputError
from tracr.playground.app import Playground
from tracr.playground.connections import ConnectionSweeper
from tracr.playground.limits import ServerLimits
from tracr.playground.workers import prepare

__all__ = ["serve"]

TICKS = 10  # uvicorn's `on_tick` is called about ten times a second


class PlaygroundServer(uvicorn.Server):
    """uvicorn, with a gentle stop and without patience for slow connections.

    After SIGTERM or Ctrl-C, new requests get the status 503; the server ends when those before are answered.
    """

    def __init__(self, config: uvicorn.Config, playground: Playground, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._playground, self._ready = playground, ready
        self._sweeper = ConnectionSweeper(playground.limits)
        self._deadline = 0.0

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; true ends the server."""
        if counter % TICKS == 0:
            self._sweeper.sweep(self.server_state.connections)
        if self._playground.stopping and (self._playground.idle or time.monotonic() > self._deadline):
            self.should_exit = True
        return bool(await super().on_tick(counter))

    async def main_loop(self) -> None:
        """Called when the server accepts connections."""
        self._ready()
        await super().main_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop gently; a second signal stops at once."""
        if self._playground.stopping:
            self.should_exit = self.force_exit = True
        self._playground.stopping = True
        self._deadline = time.monotonic() + self._playground.limits.stopping


def serve(
    host: str, port: int, limits: ServerLimits, *, proxy: str | None = None, ready: Callable[[str], None] = print
) -> None:
    """Serve the playground until SIGTERM or Ctrl-C; `ready` is called with its address.

    Args:
        host: the address to listen on.
        port: the port; 0 for any free one.
        limits: what requests may use.
        proxy: the address of a reverse proxy, whose X-Forwarded-For header names the browsers; `None`: there is none.
        ready: called when the server accepts connections.
    """
    prepare()
    _allow_many_files()
    listener = _listen(host, port)
    playground = Playground(limits)
    config = uvicorn.Config(
        playground.app,
        loop="asyncio",
        http=H11Protocol,
        ws="none",
        lifespan="on",
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        timeout_keep_alive=int(limits.idle),
        timeout_graceful_shutdown=5,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    PlaygroundServer(config, playground, lambda: ready(address)).run([listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"the server cannot listen on {host}, port {port}: {error.strerror or error}",
            hint="choose another port with --port; --port 0 takes a free one",
        ) from None


def _allow_many_files() -> None:
    """Allow as many open connections as the system lets this process have."""
    import resource  # not on Windows, where `prepare` refuses

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
