"""Sets a variable during a forward pass: writes the code of another value, and continues the pass.

The result must be that of the interpreter with the same variable replaced (`replacing.py`). Therefore, if the embedding
also writes functions of the variable, these are set too. A folded variable has no directions; it is set in the
activations of its readers, through the maps with which they read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import ONE, LinearMap
from tracr.craft.numerics import OUTPUT_TOLERANCE
from tracr.craft.variables import Variable
from tracr.errors import InputError
from tracr.ir.domains import Finite
from tracr.model.given import given_rows
from tracr.model.interventions import Folded, Location, Reading, folded, locations
from tracr.model.replacing import replace_variables
from tracr.nearness import same_value
from tracr.values import Value, short_repr

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["Intervention"]

Floats = NDArray[Any]


class Intervention:
    """Variables of a model set to other values on a batch of inputs: a hook for the forward pass.

    Args:
        model: the model.
        changes: a mapping from a variable to a value for each token (of each input, if not `single`).
        inputs: the inputs without PAD.
        padded: the length of each input with PAD.
        single: whether there is one input, not a batch.
        checked: whether `check` compares the outputs with the program's: for the compiler's own weights.
    """

    def __init__(
        self,
        model: DesignedModel,
        changes: object,
        inputs: Sequence[Sequence[Value]],
        padded: Sequence[int],
        *,
        single: bool,
        checked: bool,
    ) -> None:
        lengths = [(len(tokens), length) for tokens, length in zip(inputs, padded, strict=True)]
        self.model, self.width, self.checked = model, max(padded, default=0), checked
        self.replaced = replace_variables(model, given_rows(model, changes, lengths, single), inputs)
        known = {_node(location.variable): location for location in locations(model.program, model.layout).values()}
        without = {_node(one.variable): one for one in folded(model.program, model.layout).values()}
        given = self.replaced.given
        writes = [
            (known[number], self._coordinates(known[number].variable, given[number]))
            for number in given
            if number in known
        ]
        through = [without[number] for number in given if number not in known]
        self.writes = _Writes(model, [*writes, *self._following(known)])
        self.through = _Through(
            model, {one.variable: (one, self._coordinates(one.variable, given[_node(one.variable)])) for one in through}
        )

    def __call__(self, name: str, tensor: Floats) -> Floats:
        """The activation with what is to be set in it."""
        return self.through.at(name, self.writes.at(name, tensor))

    def _coordinates(self, variable: Variable, codes: NDArray[Any]) -> Floats:
        """The coordinates of an s-op's codes, [input, position, direction]; NaN at PAD, which is left unchanged."""
        domain, valid = self.replaced.program.sops[_node(variable)].domain, self.replaced.expected.batch.valid
        found = np.full((len(codes), self.width, variable.size), np.nan)
        if isinstance(domain, Finite):
            rows = np.array([variable.code(value) for value in domain.values])
            found[:, : codes.shape[1]][valid] = rows[codes[valid]]
        else:
            held = [variable.code(None if number != number else number) for number in codes[valid].tolist()]
            found[:, : codes.shape[1]][valid] = np.reshape(held, (-1, variable.size))
        return found

    def _following(self, known: Mapping[int, Location]) -> Iterator[tuple[Location, Floats]]:
        """The other embedded variables that are functions of those set, with their coordinates."""
        given, expected = self.replaced.given, self.replaced.expected
        reached = set(given)
        for node in self.model.program.sops.values():
            if not reached.isdisjoint(node.inputs):
                reached.add(node.id)
        for number, location in known.items():
            if location.hook == "hook_embed" and number in reached and number not in given and number in expected.codes:
                codes = np.broadcast_to(expected.codes[number], expected.batch.codes.shape)
                yield location, self._coordinates(location.variable, codes)

    def check(self, logits: Floats) -> None:
        """Refuse if the outputs differ from those of the program with these values, for any reason.

        Other weights than the compiler's own, of a variant or edited, are not checked.
        """
        if not self.checked:
            return
        expected = self.replaced.expected
        valid = expected.batch.valid
        for output, (_, number) in zip(self.model.outputs, expected.program.outputs, strict=True):
            got = output.unrounded(logits[:, 1 : valid.shape[1] + 1][valid]).tolist()
            wanted = [value for row in expected.values(number) for value in row]
            for one, other in zip(got, wanted, strict=True):
                if not same_value(other, one, OUTPUT_TOLERANCE):
                    raise InputError(
                        f"with these values of {', '.join(self.replaced.labels)}, the model gives {short_repr(one)} "
                        f"but the program gives {short_repr(other)}",
                        hint="compile at level 0, where each operation has its own component",
                    )


def _node(variable: Variable) -> int:
    assert variable.node is not None
    return variable.node


class _Writes:
    """Sets variables that have directions, right after the component that writes them."""

    def __init__(self, model: DesignedModel, writes: Sequence[tuple[Location, Floats]]) -> None:
        self.basis = model.basis
        self.writes: dict[str, list[tuple[Location, Floats]]] = {}
        for location, codes in writes:
            self.writes.setdefault(location.hook, []).append((location, codes))

    def at(self, name: str, tensor: Floats) -> Floats:
        """The activation with what is to be set in it."""
        embedded = self.writes.get("hook_embed", ()) if name == "hook_pos_embed" else ()
        if name not in self.writes and not embedded:
            return tensor
        changed, basis = np.array(tensor), self.basis
        # the stream is the sum of both embeddings: a variable is set in the one that writes it
        everything = [*((location, 0.0 * codes) for location, codes in embedded), *self.writes.get(name, ())]
        for location, codes in everything:
            live = location.slots >= 0
            held = basis.get(changed[:, 1:], location.slots[live])
            wanted = np.where(np.isnan(codes[..., live]), held, codes[..., live])
            changed[:, 1:] = basis.put(changed[:, 1:], location.slots[live], wanted)
        return changed


class _Through:
    """Sets folded variables: adds to each reader's activation the difference between the set and the computed value."""

    def __init__(self, model: DesignedModel, through: Mapping[Variable, tuple[Folded, Floats]]) -> None:
        self.model, self.through = model, through
        self.readings: dict[str, list[tuple[Variable, Reading]]] = {}
        for variable, (one, _) in through.items():
            for reading in one.readings:
                self.readings.setdefault(reading.hook, []).append((variable, reading))
        self.stream: Floats = np.zeros(0)

    def at(self, name: str, tensor: Floats) -> Floats:
        """The activation of a reader with the differences in it."""
        if not self.through:
            return tensor
        if name == "hook_pos_embed":
            self.stream = self.stream + tensor
        elif name == "hook_embed" or name.rpartition(".")[2].startswith("hook_resid_"):
            self.stream = tensor
        if name not in self.readings:
            return tensor
        changed = np.array(tensor)
        differences = self._differences()
        for variable, reading in self.readings[name]:
            changed[(slice(None), slice(1, None), *reading.place)] += differences[variable] @ reading.matrix
        return changed

    def _differences(self) -> dict[Variable, Floats]:
        """The set values minus the values that readers compute instead; one variable may be read through another."""
        found: dict[Variable, Floats] = {}
        for variable in self.model.circuit.folded:
            if variable in self.through:
                one, codes = self.through[variable]
                held = self._read(one.linear)
                for earlier, block in one.through.blocks.items():
                    if earlier in found:
                        held = held + found[earlier] @ block
                found[variable] = np.where(np.isnan(codes), 0.0, codes - held)
        return found

    def _read(self, linear: LinearMap) -> Floats:
        slots_of, basis = self.model.layout.slots, self.model.basis
        total: Floats = np.zeros((*self.stream[:, 1:].shape[:2], linear.width))
        for variable, block in linear.blocks.items():
            if variable in slots_of:
                slots = slots_of[variable]
                total = total + basis.get(self.stream[:, 1:], slots[slots >= 0]) @ block[slots >= 0]
            elif variable is ONE:
                total = total + block[0]
        return total
