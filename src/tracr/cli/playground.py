"""`tracr playground`: a web page to write RASP in, for one user or a class."""

from __future__ import annotations

import threading
import webbrowser
from typing import Annotated

import typer

__all__ = ["playground"]

LEAST_MEMORY = 256 * 1024**2


def playground(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 lets other computers connect.")
    ] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, metavar="N", help="Programs compiled at the same time; by default one per processor."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="The longest time for one program.")] = 10.0,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The memory of one worker process.")] = "1GB",
    proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The address of a reverse proxy; its X-Forwarded-For is then believed."),
    ] = None,
) -> None:
    """Serve the playground: write RASP in the browser and see its transformer. Needs: pip install 'tracr[web]'.

    Only this computer can connect, unless --host says otherwise. Programs are compiled in worker processes with limits
    on time and memory; no Python code from the page is executed. Ctrl-C stops the server.

    Example: tracr playground --open
    """
    from dataclasses import replace

    from tracr.extras import need
    from tracr.ir.budget import as_bytes
    from tracr.playground.limits import ServerLimits

    size = as_bytes(memory)
    if size < LEAST_MEMORY:
        raise typer.BadParameter(f"{memory} is too little for a worker; give 256MB or more", param_hint="--memory")
    for library in ("starlette", "uvicorn"):
        need(library, extra="web")
    from tracr.playground.serving import serve

    limits = ServerLimits()
    limits = replace(limits, workers=workers or limits.workers, seconds=seconds, memory=size)

    def ready(address: str) -> None:
        print(f"The playground is at {address} (Ctrl-C stops it)", flush=True)  # for logs, too
        if show:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # some browsers block

    serve(host, port, limits, proxy=proxy, ready=ready)
