"""Whether float32 suffices: an estimate of the rounding errors of every step.

A number of the size z has an error of up to about z/2²², for a sum of a few terms. The neurons of a step subtract two
numbers of the size z = (H + T) (u/margin) (largest σ/σ), so that a step that is on writes 1 with the error z/(2²² 2H).
A step that reads such dimensions must not notice their errors: these must stay below a quarter of its margin. Errors of
steps that are on together are added as independent ones are, at four standard deviations. The smallest σ is measured
on a sample of inputs. Therefore this is an estimate and no proof; `Injected.check` measures the answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tracr.errors import PrecisionError
from tracr.graft.injection.building import HALF
from tracr.graft.injection.circuit import Dim, InjectedCircuit, NeuronStep
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.sizes import Scales

__all__ = ["refuse_rounding"]

UNIT = 2.0**-22
DEVIATIONS = 4 / math.sqrt(3)  # an error that is uniform up to e has the standard deviation e/√3
Written = list[tuple[Mapping[Dim, float], float]]
"""What each step of a variable writes, with its error."""


def refuse_rounding(host: GPT2Host, circuit: InjectedCircuit, scales: Scales) -> None:
    """Refuse a circuit that float32 may be too coarse for."""
    written: dict[str, Written] = {}
    for part in sorted(circuit.neurons, key=lambda part: part.layer):
        norm = 2 * part.layer + 1
        spread = scales.largest[norm] / scales.smallest[norm] * (HALF + host.tail) / (2 * HALF)
        for step in part.steps:
            noise = _noise(step, written)
            if noise > step.margin / 4:
                raise PrecisionError(
                    f"float32 is too coarse to compute {part.variable}: errors of about {noise:.1g} are possible where "
                    f"a step must tell {2 * step.margin:.1g} apart",
                    hint="use a smaller max_seq_len, or variables with fewer values",
                )
        written[part.variable] = [(one.writes, UNIT * spread * one.farthest / one.margin) for one in part.steps]


def _noise(step: NeuronStep, written: Mapping[str, Written]) -> float:
    """The error of what a step reads, and of the sum itself."""
    largest: dict[str, float] = {}
    for (group, _), weight in step.reads.items():
        largest[group] = max(largest.get(group, 0.0), abs(weight))
    read = sum(_read_error(step, written[group]) for group in largest if group in written)
    return read + UNIT * sum(largest.values())


def _read_error(step: NeuronStep, written: Written) -> float:
    """The error of a variable in the sum that a step reads. Of steps that write no differences, one is on at a time."""
    errors = [
        abs(sum(weight * step.reads.get(dim, 0.0) for dim, weight in writes.items())) * error
        for writes, error in written
    ]
    together = any(weight < 0 for writes, _ in written for weight in writes.values())
    return DEVIATIONS * math.hypot(*errors) if together else max(errors, default=0.0)
