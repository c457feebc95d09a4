"""The schedule found by a solver, as JSON. With it, loading needs no solver and gives the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracr.compiler.layers.assign import in_sublayers
from tracr.ir.circuit import Circuit
from tracr.ir.schedule import LIMIT, OPTIMAL, PlacedCircuit, Schedule
from tracr.saving.json_reader import Reader

__all__ = ["read_schedule", "schedule_json"]


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    """The sub-layer of every component, and the solver's report."""
    return {"sublayers": list(schedule.placement.times), "status": schedule.status, "fewest": schedule.fewest}


def read_schedule(reader: Reader) -> Callable[[Circuit], PlacedCircuit]:
    """A function from a circuit to the schedule written by `schedule_json`."""
    given = reader.object(("sublayers", "status", "fewest"))
    places = given["sublayers"].items()
    times = [place.integer(0, 2 * len(places) - 1) for place in places]
    status, fewest = given["status"].choice((OPTIMAL, LIMIT)), given["fewest"].integer()

    def schedule_of(circuit: Circuit) -> PlacedCircuit:
        given["sublayers"].items(count=len(circuit.components))
        return in_sublayers(circuit, times, status, fewest)

    return schedule_of
