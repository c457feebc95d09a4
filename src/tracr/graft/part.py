"""Parts: components of compiled models, as explanations of components of other models.

A part is a head of a compiled model, one group of neurons, or all neurons of a layer ("blocks.0.mlp"). It reads some
variables of its program and writes others. Its weights are the compiled ones, restricted to the dimensions that it
reads and writes. The structure of an input (which position is BOS, which hold PAD) is not a variable: a graft knows it
from the ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import as_list
from tracr.craft.linear import BOS, ONE, PAD
from tracr.errors import TracrError, UnknownName
from tracr.ground_truth.wiring import read_slots, written_slots
from tracr.model.compiled import CompiledModel
from tracr.rasp.annotations import Encoding
from tracr.spelling import did_you_mean
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.craft.variables import Variable

__all__ = ["Part", "PartVariable", "PartWeights", "part_list", "part_names", "parts_of", "streams_before"]

Array = NDArray[np.float64]
Slots = tuple[int, ...]
STRUCTURE = (BOS, PAD, ONE)


@dataclass(frozen=True)
class PartVariable:
    """A variable that a part reads or writes: its label, its kind, and its dimensions in the compiled model."""

    label: str
    kind: Literal["number", "one-hot"]
    slots: Slots


@dataclass(frozen=True, eq=False)
class PartWeights:
    """The matrices of a part, over the dimensions that it reads (`slots`) and writes (`writes`).

    A head has Q, K, V and O; neurons have `in` and `out`. `bias` has those of Q, K, V and `in`.
    """

    slots: Slots
    writes: Slots
    matrices: dict[str, Array]
    bias: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Part:
    """A component of a compiled model.

    Args:
        model: the compiled model; a variant or a compressed model has other weights, and is refused.
        name: the component: "blocks.0.attn.0", "blocks.0.mlp.1" (a group of neurons), "blocks.0.mlp" (all of them).
        program: the name of the program, for tables.
    """

    model: CompiledModel
    name: str
    program: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.model, CompiledModel):
            raise TracrError("a part is a component of a compiled model", hint="pass tracr.compile(...), or its plain")
        known = part_names(self.model)
        if self.name not in known:
            hint = did_you_mean(str(self.name), known, f"it has {', '.join(known) or 'no components'}")
            raise UnknownName(f"the model has no component {self.name!r}", hint=hint)

    @property
    def kind(self) -> Literal["head", "mlp"]:
        """Whether it is a head or neurons."""
        return "head" if ".attn." in self.name else "mlp"

    @property
    def layer(self) -> int:
        """Its layer in the compiled model."""
        return int(self.name.split(".")[1])

    @property
    def title(self) -> str:
        """The program and the component, for tables."""
        return f"{self.program or self.model.outputs[0].name} {self.name}"

    @property
    def sentence(self) -> str:
        """What it does, in words."""
        names = [name for name in self.model.explanations if f"{name}.".startswith(f"{self.name}.")]
        return "; ".join(self.model.explanations[name].sentence for name in names)

    @cached_property
    def weights(self) -> PartWeights:
        """Its matrices."""
        own = self.model.parameters.layers[self.layer]
        if self.kind == "head":
            head = int(self.name.split(".")[3])
            full = {"Q": own.W_Q[head], "K": own.W_K[head], "V": own.W_V[head]}
            bias = {"Q": own.b_Q[head], "K": own.b_K[head], "V": own.b_V[head]}
            out, into = "O", own.W_O[head]
        else:
            span = self.span
            full, bias = {"in": own.W_in[:, span]}, {"in": own.b_in[span]}
            out, into = "out", own.W_out[span]
        slots = tuple(sorted({slot for matrix in full.values() for slot in read_slots(matrix)}))
        writes = written_slots(into)
        matrices = {name: np.asarray(matrix[list(slots)], np.float64) for name, matrix in full.items()}
        matrices[out] = np.asarray(into[:, list(writes)], np.float64)
        return PartWeights(slots, writes, matrices, {name: np.asarray(one, np.float64) for name, one in bias.items()})

    @property
    def span(self) -> slice:
        """Its neurons among those of the layer."""
        groups = [one for one in self.model.layout.schedule.neurons() if one.layer == self.layer]
        mine = [one for one in groups if self.name in (one.name, f"blocks.{self.layer}.mlp")]
        return slice(mine[0].start, mine[-1].stop)

    @cached_property
    def inputs(self) -> tuple[PartVariable, ...]:
        """The variables that it reads, in the order of their dimensions."""
        return self._variables(self.weights.slots, before=True)

    @cached_property
    def outputs(self) -> tuple[PartVariable, ...]:
        """The variables that it writes, in the order of their dimensions."""
        return self._variables(self.weights.writes, before=False)

    def _variables(self, slots: Slots, *, before: bool) -> tuple[PartVariable, ...]:
        time = 2 * self.layer + (self.kind == "mlp") - before
        found: dict[Variable, list[int]] = {}
        for direction in self.model.layout.directions:
            if direction.slot in slots and direction.held(time) and direction.variable not in STRUCTURE:
                found.setdefault(direction.variable, []).append(direction.slot)
        return tuple(
            PartVariable(one.label, "number" if one.encoding is Encoding.NUMERICAL else "one-hot", tuple(sorted(own)))
            for one, own in found.items()
        )

    @cached_property
    def structure(self) -> dict[str, Array]:
        """The codes over `slots` of a token (without its variables), of BOS, and of PAD."""
        slots = self.weights.slots
        found = {name: np.zeros(len(slots)) for name in ("token", "pad")}
        place = {slot: number for number, slot in enumerate(slots)}
        for direction in self.model.layout.directions:
            if direction.variable is ONE and direction.slot in place:
                found["token"][place[direction.slot]] = found["pad"][place[direction.slot]] = 1.0
            if direction.variable is PAD and direction.slot in place:
                found["pad"][place[direction.slot]] = 1.0
        found["bos"] = _codes_at_bos(self)
        return found

    def __repr__(self) -> str:
        reads, writes = (", ".join(one.label for one in side) for side in (self.inputs, self.outputs))
        return f"Part({self.title}: {reads or 'nothing'} -> {writes})"


def part_names(model: CompiledModel) -> list[str]:
    """The names of all parts of a model: heads, groups of neurons, and all neurons of a layer."""
    schedule = model.layout.schedule
    groups = [placed.name for placed in schedule.neurons() if not placed.group.clears]
    whole = dict.fromkeys(name.rpartition(".")[0] for name in groups)
    return [*(placed.name for placed in schedule.heads()), *whole, *groups]


def parts_of(model: CompiledModel, program: str = "") -> list[Part]:
    """The parts of a compiled model; a group of neurons that is alone in its layer is the layer's whole MLP."""
    if not isinstance(model, CompiledModel):
        raise TracrError(
            f"parts are components of a compiled model, not of {short_repr(model)}",
            hint="pass tracr.compile(...), its plain, or twin.teacher",
        )
    names = part_names(model)
    groups = [name for name in names if re.fullmatch(r"blocks\.\d+\.mlp\.\d+", name)]
    alone = {name for name in groups if sum(one.startswith(name.rpartition(".")[0] + ".") for one in groups) == 1}
    return [Part(model, name, program) for name in names if name not in alone]


def part_list(name: str, parts: Any) -> list[Part]:
    """A part, or several, as a list."""
    found = [parts] if isinstance(parts, Part) else as_list(name, parts)
    for one in found:
        if not isinstance(one, Part):
            raise TracrError(
                f"{name} has {short_repr(one)}, which is no part",
                hint="pass graft.Part(model, name), or parts of graft.parts_of(model)",
            )
    return found


def _codes_at_bos(part: Part) -> Array:
    """The codes over `slots` at the BOS position, which are the same for every input."""
    stream = streams_before(part.model, [part.model.vocabulary.tokens[:1] * part.model.vocabulary.shortest])
    hook = f"blocks.{part.layer}.hook_resid_{'pre' if part.kind == 'head' else 'mid'}"
    return np.asarray(stream[hook][0, 0, list(part.weights.slots)], np.float64)


def streams_before(model: CompiledModel, inputs: Sequence[Sequence[Any]]) -> dict[str, Array]:
    """The residual stream before every sub-layer, and what heads and neurons write, in float64."""
    kept = ("hook_resid_pre", "hook_resid_mid", "attn.hook_z", "mlp.hook_post")
    seen: dict[str, Array] = {}

    def keep(name: str, tensor: Array) -> None:
        if name.endswith(kept):
            seen[name] = tensor

    with np.errstate(under="ignore"):
        model.forward(model.parameters, model.encode([list(one) for one in inputs]), hook=keep)
    return seen
