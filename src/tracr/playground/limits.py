"""The limits of the server, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.threads import processors

__all__ = ["ServerLimits"]

MB = 1024**2


@dataclass(frozen=True)
class ServerLimits:
    """What one request, one browser and one address may use.

    Attributes:
        workers: workers for quick requests.
        slow_workers: workers for slow requests, with a lower priority.
        quick: a request that needs more than this many seconds is slow, and starts again in the slow lane.
        seconds: the longest time of a slow request; then its worker is killed. Both are seconds of a processor (by the
            clock on systems that do not tell).
        memory: the address space of a worker, in bytes.
        requests: a worker is replaced after this many requests, so that its caches cannot grow without end.
        body: the largest body of a request, in bytes.
        body_seconds: the longest time that a client may take to send a body.
        reply: the largest answer, in bytes.
        waiting: the most requests that wait, in all.
        waiting_of_address: the most requests of one address that wait.
        running_of_browser: the most requests of one browser that are worked on at the same time.
        rate, burst: requests per second of one browser, on average and in advance.
        address_rate, address_burst: the same for all browsers of one address: a school has one address.
        connections: the most open connections of one address. Those above it are closed, those without a request first.
        idle: a connection without a complete request is closed after this many seconds.
        unread: a connection whose client does not read its answer is closed after this many seconds.
        stopping: after SIGTERM, the server waits at most this many seconds for running requests.
    """

    workers: int = processors()
    slow_workers: int = 4
    quick: float = 0.5
    seconds: float = 10.0
    memory: int = 1024 * MB
    requests: int = 1_000
    body: int = 128 * 1024
    body_seconds: float = 10.0
    reply: int = 32 * MB
    waiting: int = 400
    waiting_of_address: int = 250
    running_of_browser: int = 2
    rate: float = 8.0
    burst: int = 40
    address_rate: float = 400.0
    address_burst: int = 1_200
    connections: int = 500
    idle: float = 20.0
    unread: float = 60.0
    stopping: float = 30.0
