"""The rate of requests: one browser is limited, fifty behind one address are not in each other's way."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.playground.limits import ServerLimits
from tracr.playground.rate import Browser, RequestRate
from tracr.playground.replies import RefusedRequest

LIMITS = ServerLimits(rate=5, burst=10, address_rate=300, address_burst=600)


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def admitted(rate: RequestRate, browser: Browser, tries: int) -> int:
    """How many of some requests are let through."""
    refused: list[RefusedRequest] = []
    for _ in range(tries):
        try:
            rate.admit(browser)
        except RefusedRequest as error:
            refused.append(error)
    assert all(error.status == 429 and error.retry_after >= 1 for error in refused)
    return tries - len(refused)


def test_a_burst_passes_then_the_rate_holds() -> None:
    """The burst at once, then so many a second."""
    clock = Clock()
    rate, browser = RequestRate(LIMITS, clock), Browser("1.2.3.4", "tab")
    assert admitted(rate, browser, 100) == 10
    clock.now += 2
    assert admitted(rate, browser, 100) == 10
    clock.now += 1
    assert admitted(rate, browser, 100) == 5


def test_fifty_browsers_behind_one_address_work() -> None:
    """Each has its own burst."""
    rate = RequestRate(LIMITS, Clock())
    assert all(admitted(rate, Browser("1.2.3.4", f"tab {number}"), 10) == 10 for number in range(50))


def test_an_address_has_a_limit_too() -> None:
    """Inventing tabs does not help; other addresses are not affected."""
    rate = RequestRate(LIMITS, Clock())
    assert sum(admitted(rate, Browser("1.2.3.4", f"tab {number}"), 1) for number in range(2_000)) == 600
    assert admitted(rate, Browser("5.6.7.8", "tab"), 1) == 1


def test_without_a_tab_connections_count() -> None:
    """And without both only the address."""
    rate = RequestRate(LIMITS, Clock())
    assert admitted(rate, Browser("1.2.3.4", "", 5001), 20) == 10
    assert admitted(rate, Browser("1.2.3.4", "", 5002), 20) == 10
    assert admitted(rate, Browser("1.2.3.4", ""), 20) == 20


@given(st.lists(st.floats(0, 5), max_size=60))
def test_no_schedule_beats_the_rate(pauses: list[float]) -> None:
    """In any time, at most the burst and the rate times the time."""
    clock = Clock()
    rate, browser, passed = RequestRate(LIMITS, clock), Browser("1.2.3.4", "tab"), 0
    for pause in pauses:
        clock.now += pause
        passed += admitted(rate, browser, 4)
    assert passed <= LIMITS.burst + LIMITS.rate * sum(pauses) + 1e-6


def test_waiting_as_told_is_enough() -> None:
    """After Retry-After the request passes."""
    clock = Clock()
    rate, browser = RequestRate(LIMITS, clock), Browser("1.2.3.4", "tab")
    admitted(rate, browser, 50)
    with pytest.raises(RefusedRequest) as refused:
        rate.admit(browser)
    clock.now += refused.value.retry_after
    rate.admit(browser)
