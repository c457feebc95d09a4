"""The nodes and edges of a model, read off its weights.

A node writes a slot (a dimension of the residual stream) if a weight of its output matrix there is not zero, and reads
one if a weight of an input matrix is not. An edge is a variable some slots of which are written by an earlier node and
read by a later one. Which head and which neurons belong together, and what slots mean, the construction says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.trace import unique_labels
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.errors import TracrError
from tracr.model.ground_truth.data import FINEST, Attends, Edge, GroundTruth, Node, Place, Written, places

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["ground_truth_of"]

SPECIAL = {
    BOS: "1 at the BOS position, 0 elsewhere",
    PAD: "1 at PAD positions, 0 elsewhere",
    ONE: "1 at every position",
}
NEARLY_ALL = 1 - 1e-4  # of the attention, for a key to be the only one

Array = NDArray[Any]
Slots = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """A node under construction: the slots it writes, and those each of its inputs reads."""

    node: Node
    writes: Slots
    reads: dict[str, Slots]


def ground_truth_of(model: CompiledModel) -> GroundTruth:
    """Nodes and edges of a model; those of a variant are the compiled model's, along other directions."""
    wiring = _Wiring(model.plain)
    return GroundTruth(model, tuple(part.node for part in wiring.parts), tuple(wiring.edges()))


class _Wiring:
    def __init__(self, model: CompiledModel) -> None:
        self.model = model
        variables = list(model.construction.slots)
        named = [_special_label(model, variable) or variable.label for variable in variables]
        self.names = dict(zip(variables, unique_labels(named), strict=True))
        self.variable = [direction.variable for direction in model.construction.directions]

    @cached_property
    def parts(self) -> list[_Part]:
        """All nodes, in the order in which they compute."""
        bare = list(self._parts())
        fixed = self._fixed_positions(bare)
        return [
            _Part(Node(**{**vars(part.node), "attends": fixed.get(part.node.id)}), part.writes, part.reads)
            for part in bare
        ]

    def _parts(self) -> Iterator[_Part]:
        weights, layers = self.model.parameters, self.model.construction.layers
        for name, matrix, what in (("embed", weights.W_E, "token"), ("pos_embed", weights.W_pos, "position")):
            slots = _written(matrix)
            says = f"The {what} embedding writes {self._list(slots)}."
            yield self._part(name, "embedding", slots, {}, says, output=Place(f"hook_{name}"))
        for number, (layer, w) in enumerate(zip(layers, weights.layers, strict=True)):
            for place, head in enumerate(layer.heads):
                slots = _written(w.W_O[place])
                reads = {"q": _read(w.W_Q[place]), "k": _read(w.W_K[place]), "v": _read(w.W_V[place])}
                says = f"Head {place} of layer {number} writes {self._list(slots)}: {head.what}."
                yield self._part(f"blocks.{number}.attn.{place}", "head", slots, reads, says, number, place)
            start = 0
            for place, group in enumerate(layer.mlps):
                stop = start + group.read.width
                slots, reads = _written(w.W_out[start:stop]), {"in": _read(w.W_in[:, start:stop])}
                which = f"Neurons {start} to {stop - 1}" if stop - start > 1 else f"Neuron {start}"
                verb = "write" if stop - start > 1 else "writes"
                says = f"{which} of layer {number} {verb} {self._list(slots)}: {group.what}."
                name = f"blocks.{number}.mlp.{place}"
                yield self._part(name, "neurons", slots, reads, says, number, neurons=(start, stop))
                start = stop
        slots = _read(weights.W_U)
        outputs = ", ".join(output.name for output in self.model.outputs)
        says = f"The unembedding reads {outputs} off {self._list(slots)}."
        source = Place(f"blocks.{len(layers) - 1}.hook_resid_post" if layers else "")
        yield self._part(
            "unembed", "unembedding", (), {"in": slots}, says, output=Place("logits"), inputs=(("in", source),)
        )

    def _part(
        self,
        name: str,
        kind: str,
        slots: Slots,
        reads: dict[str, Slots],
        says: str,
        layer: int | None = None,
        head: int | None = None,
        neurons: tuple[int, int] | None = None,
        output: Place = Place(""),  # noqa: B008  a frozen value
        inputs: tuple[tuple[str, Place], ...] = (),
    ) -> _Part:
        writes = tuple(
            Written(self.names[variable], *self._expression(variable), held)
            for variable, held in self._by_variable(slots).items()
        )
        node = Node(name, kind, layer, head, neurons, writes, says, output, inputs)
        if layer is not None:
            output, inputs = places(node, FINEST)
            node = Node(name, kind, layer, head, neurons, writes, says, output, inputs)
        return _Part(node, slots, reads)

    def _expression(self, variable: Variable) -> tuple[str, str]:
        """The expression a variable belongs to, and where that was written."""
        if variable.node is None:
            return SPECIAL.get(variable, variable.label), ""
        node = self.model.typed.sops[variable.node]
        return node.source, node.origin

    def _by_variable(self, slots: Slots) -> dict[Variable, Slots]:
        found: dict[Variable, list[int]] = {}
        for slot in slots:
            found.setdefault(self.variable[slot], []).append(slot)
        return {variable: tuple(held) for variable, held in found.items()}

    def _list(self, slots: Slots) -> str:
        return ", ".join(self.names[variable] for variable in self._by_variable(slots)) or "nothing"

    def edges(self) -> Iterator[Edge]:
        """Every variable that some slots carry from a writer to a later reader, in the order of the readers."""
        writers: dict[int, int] = {}  # from slot to the number of the part
        waiting: list[tuple[int, Slots]] = []  # written in this sub-layer, seen from the next one on
        stage = None
        for number, part in enumerate(self.parts):
            if (part.node.kind, part.node.layer) != stage:
                stage = (part.node.kind, part.node.layer)
                for earlier, slots in waiting:
                    if not writers.keys().isdisjoint(slots):
                        raise TracrError("two parts of the model write one dimension", hint="compile at level 0 or 1")
                    writers.update(dict.fromkeys(slots, earlier))
                waiting = []
            yield from self._edges_into(part, writers)
            waiting.append((number, part.writes))

    def _edges_into(self, part: _Part, writers: dict[int, int]) -> Iterator[Edge]:
        for into, place in part.node.inputs:
            carried: dict[tuple[int, Variable], list[int]] = {}
            for slot in part.reads[into]:
                if slot in writers:
                    carried.setdefault((writers[slot], self.variable[slot]), []).append(slot)
            for (writer, variable), slots in sorted(carried.items(), key=lambda item: (item[0][0], item[1])):
                source = self.parts[writer].node
                positions = self._positions(part.node.attends) if into == "v" else None
                yield Edge(
                    source.id,
                    part.node.id,
                    into,
                    self.names[variable],
                    tuple(slots),
                    source.output,
                    place,
                    positions,
                )

    def _positions(self, attends: Attends | None) -> tuple[tuple[int, int], ...] | None:
        """From which position to which a head with a fixed pattern moves values, on the longest input."""
        if attends is None:
            return None
        longest, causal = self.model.typed.lengths[1], self.model.options.causal
        return tuple((attends.key(query, longest, causal=causal), query) for query in range(longest + 1))

    def _fixed_positions(self, parts: list[_Part]) -> dict[str, Attends]:
        """The heads whose queries and keys depend on the position only, and attend to one key each."""
        known = {slot for slot, variable in enumerate(self.variable) if variable in SPECIAL}
        heads: dict[str, tuple[int, int]] = {}
        for part in parts:
            elementwise = part.node.kind == "neurons" and known.issuperset(part.reads["in"])
            if elementwise or part.node.id == "pos_embed":
                known.update(part.writes)
            elif part.node.kind == "head" and known.issuperset(part.reads["q"] + part.reads["k"]):
                assert part.node.layer is not None and part.node.head is not None
                heads[part.node.id] = part.node.layer, part.node.head
        if not heads:
            return {}
        patterns = self._patterns()
        found = {name: self._fixed(patterns[layer][:, head]) for name, (layer, head) in heads.items()}
        return {name: attends for name, attends in found.items() if attends is not None}

    def _patterns(self) -> dict[int, Array]:
        """The attention patterns [length, head, query, key] of each layer, on one input of each length."""
        vocabulary = self.model.vocabulary
        lengths = range(vocabulary.shortest, vocabulary.longest + 1)
        ids = np.full((len(lengths), vocabulary.longest + 1), vocabulary.pad_id)
        ids[:, 0] = vocabulary.bos_id
        for row, length in enumerate(lengths):
            ids[row, 1 : length + 1] = 0
        patterns: dict[int, Array] = {}

        def keep(name: str, tensor: Array) -> None:
            if name.endswith("hook_pattern"):
                patterns[int(name.split(".")[1])] = tensor

        self.model.logits(ids, hook=keep)
        return patterns

    def _fixed(self, patterns: Array) -> Attends | None:
        """What patterns [length, query, key] have in common, if every query attends to one key."""
        shortest, longest = self.model.typed.lengths
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


def _special_label(model: CompiledModel, variable: Variable) -> str:
    """The label of BOS, PAD and one as the residual stream has it."""
    if variable not in SPECIAL:
        return ""
    return model.construction.directions[int(model.construction.slots[variable][0])].label


def _written(matrix: Array) -> Slots:
    return tuple(np.flatnonzero(matrix.any(axis=0)).tolist())


def _read(matrix: Array) -> Slots:
    return tuple(np.flatnonzero(matrix.any(axis=1)).tolist())
