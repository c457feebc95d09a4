"""Whether float32 suffices: an estimate of the rounding errors of every step.

A number of the size z has an error of about z/2²², for a sum of a few terms. The neurons of a step subtract two
numbers of the size z = (H + T) (far/margin) (largest σ/σ), so that the written dimension has the relative error
z/(2²² 2H). A step that reads this dimension must not notice it: the errors of what it reads must stay below a quarter
of its margin. The smallest σ is measured on inputs, not proved; therefore this is an estimate. `Injected.check`
measures the answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracr.errors import PrecisionError
from tracr.graft.injection.building import HALF
from tracr.graft.injection.circuit import Circuit, Neurons, Step
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.sizes import Scales

__all__ = ["refuse_rounding"]

UNIT = 2.0**-22


def refuse_rounding(host: GPT2Host, circuit: Circuit, scales: Scales) -> None:
    """Refuse a circuit that float32 may be too coarse for."""
    errors = {group.name: UNIT if group.name.endswith(" (raw)") else 0.0 for group in circuit.groups}
    for part in sorted(circuit.neurons, key=lambda part: part.layer):
        for step in part.steps:
            noise = _noise(step, errors)
            if noise > step.margin / 4:
                raise PrecisionError(
                    f"float32 is too coarse to compute {part.variable}: errors of about {noise:.1g} are possible where "
                    f"a step must tell {2 * step.margin:.1g} apart",
                    hint="use a smaller max_seq_len, or variables with fewer values",
                )
        errors[part.variable] = max(
            errors.get(part.variable, 0.0), *(_written(host, one, part, scales) for one in part.steps), 0.0
        )


def _noise(step: Step, errors: Mapping[str, float]) -> float:
    """The error of what a step reads: of one dimension of each group, and of the sum itself."""
    worst: dict[str, float] = {}
    for (group, _), weight in step.reads.items():
        worst[group] = max(worst.get(group, 0.0), abs(weight) * errors.get(group, 0.0))
    return sum(worst.values()) + UNIT * step.farthest


def _written(host: GPT2Host, step: Step, part: Neurons, scales: Scales) -> float:
    norm = 2 * part.layer + 1
    spread = scales.largest[norm] / scales.smallest[norm]
    return UNIT * (HALF + host.tail) / (2 * HALF) * step.farthest / step.margin * spread
