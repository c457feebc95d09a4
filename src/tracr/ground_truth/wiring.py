"""Finds the nodes and edges of a model in its weights.

A node writes a slot (a dimension of the residual stream) if its output matrix has a nonzero weight there. It reads a
slot if an input matrix has a nonzero weight there. There is an edge for a variable if an earlier node writes some of
its slots and a later node reads them. The layout says which heads and neurons belong together and what slots mean.

If slots are cleared and used again (level 2), a reader of the new variable also reads the old variable's writer and the
clearing neurons, which add up to 0. These edges are marked as cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.errors import TracrError
from tracr.explaining.components import embedded
from tracr.explaining.roles import Explanation
from tracr.ground_truth.data import (
    FINEST,
    Attends,
    Edge,
    FoldedVariable,
    GroundTruth,
    HookPlace,
    ModelNode,
    Written,
    places,
)
from tracr.ir.graph import unique_labels
from tracr.ir.layout import Direction
from tracr.ir.schedule import PlacedHead, PlacedNeurons
from tracr.runtime.forward import forward, pattern_of

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["ground_truth_of", "read_slots", "written_slots"]

SPECIAL = {
    BOS: "1 at the BOS position, 0 elsewhere",
    PAD: "1 at PAD positions, 0 elsewhere",
    ONE: "1 at every position",
}
NEARLY_ALL = 1 - 1e-4  # a key with this share of the attention counts as the only one

Array = NDArray[Any]
Slots = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """A node with its time, the slots it writes (or clears), and the slots each of its inputs reads."""

    node: ModelNode
    time: int
    writes: Slots
    reads: dict[str, Slots]
    clears: bool = False


@dataclass(frozen=True)
class _Carried:
    """The content of a slot: a part of a variable, written (or cleared) by a node, and perhaps cancelled since."""

    writer: int
    variable: Variable
    cancelled: bool


def ground_truth_of(model: DesignedModel) -> GroundTruth:
    """The nodes and edges of a model. Those of a variant are the compiled model's, along other directions."""
    wiring = _Wiring(model.plain)
    return GroundTruth(model, tuple(part.node for part in wiring.parts), tuple(wiring.edges()), wiring.folded())


class _Wiring:
    def __init__(self, model: DesignedModel) -> None:
        self.model = model
        variables = list(model.layout.slots)
        named = [_special_label(model, variable) or variable.label for variable in variables]
        self.names = dict(zip(variables, unique_labels(named), strict=True))
        self.turns: list[list[Direction]] = [[] for _ in range(model.layout.width)]
        for direction in model.layout.directions:
            self.turns[direction.slot].append(direction)

    def held(self, slot: int, time: int) -> Direction:
        """The direction that a slot holds after a sub-layer."""
        turns = self.turns[slot]
        if len(turns) == 1:
            return turns[0]
        return next(direction for direction in turns if direction.held(time))

    @cached_property
    def parts(self) -> list[_Part]:
        """All nodes, in the order in which they compute."""
        bare = list(self._parts())
        fixed = self._fixed_positions(bare)
        for number, part in enumerate(bare):
            if part.node.id in fixed:
                bare[number] = replace(part, node=replace(part.node, attends=fixed[part.node.id]))
        return bare

    def _parts(self) -> Iterator[_Part]:
        weights = self.model.parameters
        for name, matrix, what in (("embed", weights.W_E, "token"), ("pos_embed", weights.W_pos, "position")):
            slots = written_slots(matrix)
            says = f"The {what} embedding writes {self._list(slots, -1)}"
            output = HookPlace(f"hook_{name}")
            yield self._part(name, "embedding", -1, slots, {}, says, self._embedding(slots), output=output)
        schedule = self.model.schedule
        placed = [*map(self._head, schedule.heads()), *map(self._neurons, schedule.neurons())]
        yield from sorted(placed, key=lambda part: part.time)
        slots = read_slots(weights.W_U)
        outputs = ", ".join(output.name for output in self.model.outputs)
        layers = len(weights.layers)
        end = 2 * layers
        says = f"The unembedding reads {outputs} off {self._list(slots, end)}"
        source = HookPlace(f"blocks.{layers - 1}.hook_resid_post" if layers else "")
        output, inputs = HookPlace("logits"), (("in", source),)
        role = Explanation(("read_out",), f"reads out {outputs}")
        yield self._part("unembed", "unembedding", end, (), {"in": slots}, says, role, output=output, inputs=inputs)

    def _head(self, placed: PlacedHead) -> _Part:
        number, place, _ = placed
        weights = self.model.parameters.layers[number]
        slots = written_slots(weights.W_O[place])
        reads = {
            "q": read_slots(weights.W_Q[place]),
            "k": read_slots(weights.W_K[place]),
            "v": read_slots(weights.W_V[place]),
        }
        role = self.model.explanations[placed.name]
        says = f"Head {place} of layer {number} writes {self._list(slots, 2 * number)}: {role.sentence}"
        return self._part(placed.name, "head", 2 * number, slots, reads, says, role, number, place)

    def _neurons(self, placed: PlacedNeurons) -> _Part:
        number, group, span = placed.layer, placed.group, (placed.start, placed.stop)
        weights, own = self.model.parameters.layers[number], slice(*span)
        slots, reads = written_slots(weights.W_out[own]), {"in": read_slots(weights.W_in[:, own])}
        several, clears = placed.stop - placed.start > 1, bool(group.clears)
        which = f"Neurons {placed.start} to {placed.stop - 1}" if several else f"Neuron {placed.start}"
        verb, s = "clear" if clears else "write", "" if several else "s"
        listed = self._list(slots, 2 * number + (not clears))
        role = self.model.explanations[placed.name]
        says = f"{which} of layer {number} {verb}{s} {listed}{'' if clears else f': {role.sentence}'}"
        time = 2 * number + 1
        return self._part(placed.name, "neurons", time, slots, reads, says, role, number, neurons=span, clears=clears)

    def _part(
        self,
        name: str,
        kind: str,
        time: int,
        slots: Slots,
        reads: dict[str, Slots],
        says: str,
        role: Explanation,
        layer: int | None = None,
        head: int | None = None,
        neurons: tuple[int, int] | None = None,
        output: HookPlace = HookPlace(""),  # noqa: B008  a frozen value
        inputs: tuple[tuple[str, HookPlace], ...] = (),
        clears: bool = False,
    ) -> _Part:
        writes = tuple(
            Written(self.names[variable], *self._expression(variable), held)
            for variable, held in self._by_variable(slots, time - clears).items()
        )
        sentence = role.sentence[:1].upper() + role.sentence[1:]
        if layer is not None:
            output, inputs = places(kind, layer, head, neurons, FINEST)
        node = ModelNode(
            name,
            kind,
            layer,
            head,
            neurons,
            writes,
            full_stop(says),
            output,
            inputs,
            None,
            clears,
            role.roles,
            full_stop(sentence),
        )
        return _Part(node, time, slots, reads, clears)

    def _embedding(self, slots: Slots) -> Explanation:
        """What an embedding writes, without BOS, PAD and the constant one."""
        variables = [one for one in self._by_variable(slots, -1) if one not in SPECIAL]
        written = ", ".join(embedded(self.model.program, one) for one in variables)
        return Explanation(("embed",), f"writes {written or 'nothing'}")

    def _expression(self, variable: Variable) -> tuple[str, str]:
        """The expression of a variable and its source line."""
        if variable.node is None:
            return SPECIAL.get(variable, variable.label), ""
        node = self.model.program.sops[variable.node]
        return node.source, node.origin

    def _by_variable(self, slots: Slots, time: int) -> dict[Variable, Slots]:
        found: dict[Variable, list[int]] = {}
        for slot in slots:
            found.setdefault(self.held(slot, time).variable, []).append(slot)
        return {variable: tuple(held) for variable, held in found.items()}

    def _list(self, slots: Slots, time: int) -> str:
        return ", ".join(self.names[variable] for variable in self._by_variable(slots, time)) or "nothing"

    def edges(self) -> Iterator[Edge]:
        """Every variable that some slots carry from a writer to a later reader, in the order of the readers."""
        writers: dict[int, list[_Carried]] = {}
        waiting: list[tuple[int, _Part]] = []  # written in this sub-layer, read from the next one on
        stage = None
        for number, part in enumerate(self.parts):
            if (part.node.kind, part.node.layer) != stage:
                stage = (part.node.kind, part.node.layer)
                for earlier, writer in sorted(waiting, key=lambda item: not item[1].clears):
                    self._write(writers, earlier, writer)
                waiting = []
            yield from self._edges_into(part, writers)
            waiting.append((number, part))

    def _write(self, writers: dict[int, list[_Carried]], number: int, part: _Part) -> None:
        """Record the writes of a node; one that clears slots cancels their content."""
        for slot in part.writes:
            earlier = writers.setdefault(slot, [])
            if part.clears:
                earlier[:] = [replace(one, cancelled=True) for one in earlier]
            elif not all(one.cancelled for one in earlier):
                raise TracrError(
                    "two components of the model write one dimension", hint="use the weights of the compiler"
                )
            variable = self.held(slot, part.time - part.clears).variable
            earlier.append(_Carried(number, variable, part.clears))

    def _edges_into(self, part: _Part, writers: dict[int, list[_Carried]]) -> Iterator[Edge]:
        for into, place in part.node.inputs:
            carried: dict[_Carried, list[int]] = {}
            for slot in part.reads[into]:
                for one in writers.get(slot, ()):
                    carried.setdefault(one, []).append(slot)
            for one, slots in sorted(carried.items(), key=lambda item: (item[0].writer, item[1])):
                source = self.parts[one.writer].node
                positions = self._positions(part.node.attends) if into == "v" else None
                yield Edge(
                    source.id,
                    part.node.id,
                    into,
                    self.names[one.variable],
                    tuple(slots),
                    source.output,
                    place,
                    positions,
                    one.cancelled,
                )

    def folded(self) -> tuple[FoldedVariable, ...]:
        """The folded variables: what is read in their place, and the inputs that read it."""
        schedule = self.model.layout.schedule
        inputs = [
            (f"{placed.name}.{name}", schedule.folded_in(linear))
            for placed in schedule.heads()
            for name, linear in zip("qkv", placed.head.maps, strict=True)
        ]
        inputs += [(placed.name, schedule.folded_in(placed.group.read)) for placed in schedule.neurons()]
        inputs += [("unembed", linear) for linear in schedule.unembedded_through]
        return tuple(
            FoldedVariable(
                variable.label,
                *self._expression(variable),
                tuple(self.names[part] for part in linear.blocks if part in self.names and part not in SPECIAL),
                tuple(dict.fromkeys(name for name, read in inputs if variable in read.blocks)),
            )
            for variable, linear in schedule.folded.items()
        )

    def _positions(self, attends: Attends | None) -> tuple[tuple[int, int], ...] | None:
        """The (source, target) positions of a head with a fixed pattern, on the longest input."""
        if attends is None:
            return None
        longest, causal = self.model.program.lengths[1], self.model.options.causal
        return tuple((attends.key(query, longest, causal=causal), query) for query in range(longest + 1))

    def _fixed_positions(self, parts: list[_Part]) -> dict[str, Attends]:
        """The heads whose queries and keys depend only on the position, and which attend to one key per query."""
        heads = self._positional_heads(parts)
        if not heads:
            return {}
        patterns = self._patterns(set(heads.values()))
        found = {name: self._fixed(patterns[place]) for name, place in heads.items()}
        return {name: attends for name, attends in found.items() if attends is not None}

    def _positional_heads(self, parts: list[_Part]) -> dict[str, tuple[int, int]]:
        """Layer and number of the heads whose queries and keys depend only on the position."""
        known = {direction for turns in self.turns for direction in turns if direction.variable in SPECIAL}

        def depends(part: _Part, *inputs: str) -> bool:
            """Whether inputs also read anything other than the position."""
            slots = (slot for into in inputs for slot in part.reads[into])
            return not known.issuperset(self.held(slot, part.time - 1) for slot in slots)

        heads: dict[str, tuple[int, int]] = {}
        for part in parts:
            elementwise = part.node.kind == "neurons" and not depends(part, "in")
            if (elementwise and not part.clears) or part.node.id == "pos_embed":
                known.update(self.held(slot, part.time) for slot in part.writes)
            elif part.node.kind == "head" and not depends(part, "q", "k"):
                assert part.node.layer is not None and part.node.head is not None
                heads[part.node.id] = part.node.layer, part.node.head
        return heads

    def _patterns(self, heads: set[tuple[int, int]]) -> dict[tuple[int, int], Array]:
        """The attention patterns [length, query, key] of some heads (layer, number), on one input of each length."""
        vocabulary, parameters = self.model.vocabulary, self.model.cast(np.float32)
        lengths = range(vocabulary.shortest, vocabulary.longest + 1)
        ids = np.full((len(lengths), vocabulary.longest + 1), vocabulary.pad_id)
        ids[:, 0] = vocabulary.bos_id
        for row, length in enumerate(lengths):
            ids[row, 1 : length + 1] = 0
        causal = self.model.options.causal
        with np.errstate(invalid="ignore"):  # as in `model.forward`
            before = {layer: forward(parameters, ids, np, causal=causal, stop=layer) for layer, _ in heads}
            return {
                (layer, head): pattern_of(parameters.layers[layer], head, before[layer], causal=causal)
                for layer, head in heads
            }

    def _fixed(self, patterns: Array) -> Attends | None:
        """The rule that patterns [length, query, key] follow, if every query attends to one key."""
        shortest, longest = self.model.program.lengths
        causal = self.model.options.causal
        seen: dict[tuple[int, int], int] = {}
        for pattern, length in zip(patterns, range(shortest, longest + 1), strict=True):
            for query in range(1, length + 1):
                key = int(pattern[query].argmax())
                if pattern[query, key] < NEARLY_ALL:
                    return None
                seen[query, length] = key
        offsets = sorted(range(1 - longest, longest), key=lambda offset: (abs(offset), offset))
        candidates = [Attends(offset=offset) for offset in offsets]
        candidates += [Attends(position=position) for position in range(longest + 1)]
        for attends in candidates:
            if all(attends.key(query, length, causal=causal) == key for (query, length), key in seen.items()):
                return attends
        return None


def _special_label(model: DesignedModel, variable: Variable) -> str:
    """The label of BOS, PAD or the constant one in the residual stream."""
    if variable not in SPECIAL:
        return ""
    return next(one.label for one in model.layout.directions if one.variable is variable)


def full_stop(text: str) -> str:
    """A text with a full stop, unless it ends with dots."""
    return text if text.endswith("...") else f"{text}."


def written_slots(matrix: Array) -> Slots:
    """The dimensions that a matrix [..., d_model] writes."""
    return tuple(np.flatnonzero(matrix.any(axis=0)).tolist())


def read_slots(matrix: Array) -> Slots:
    """The dimensions that a matrix [d_model, ...] reads."""
    return tuple(np.flatnonzero(matrix.any(axis=1)).tolist())
