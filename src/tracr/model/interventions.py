"""Setting a variable: write the code of another value where the variable lives, and run on from there.

What must come out is what the interpreter computes with the same variable replaced. So where the embedding writes
functions of a variable too, those are set with it. A variable that was folded lives nowhere; it is set in what its
readers compute with it, through the maps that they read it with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Finite
from tracr.compiler.typed import Linear, Lookup, PairLookup, Typed
from tracr.compiler.vectorised import evaluate_batch
from tracr.craft.linear import ONE, LinearMap
from tracr.craft.variables import Variable
from tracr.errors import InputError
from tracr.rasp.values import Value, is_number

if TYPE_CHECKING:
    from tracr.compiler.construct import Construction
    from tracr.model.compiled import CompiledModel
    from tracr.model.forward import Hook

__all__ = ["Folded", "Location", "folded", "locations", "setting_hook"]


@dataclass(frozen=True, eq=False)
class Location:
    """Where a variable lives: its directions, and the activation in which its writer has just written them."""

    variable: Variable
    slots: NDArray[np.intp]
    hook: str


def locations(construction: Construction) -> dict[str, Location]:
    """The location of every s-op that owns directions, by its label; scratch variables are not s-ops."""
    typed = construction.schedule.circuit.typed
    written = {source.variable: "hook_embed" for source in construction.schedule.circuit.embedded}
    for number, layer in enumerate(construction.layers):
        for components, hook in ((layer.heads, "hook_resid_mid"), (layer.mlps, "hook_resid_post")):
            for component in components:
                written.update({variable: f"blocks.{number}.{hook}" for variable, _ in component.writes})
    return {
        variable.label: Location(variable, slots, written[variable])
        for variable, slots in construction.slots.items()
        if variable in written and variable.node is not None and variable.label == typed.sops[variable.node].label
    }


@dataclass(frozen=True, eq=False)
class Reading:
    """One input of a reader: the activation it computes (a head or neurons of it), and how a folded variable is in."""

    hook: str
    place: tuple[Any, ...]
    matrix: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Folded:
    """A variable without directions: what it is read from, and all that read it."""

    variable: Variable
    linear: LinearMap
    readings: tuple[Reading, ...]

    @property
    def made_of(self) -> tuple[str, ...]:
        """The labels of the variables that are read in its place."""
        return tuple(part.label for part in self.linear.blocks if part.node is not None)

    def check(self, construction: Construction) -> None:
        """Refuse to set what cannot be set for each of its readers, and for them alone."""
        for head in (head for layer in construction.layers for head in layer.heads):
            if self.variable in head.blurred:
                raise InputError(
                    f"{self.variable.label} was folded, and a head that reads it was merged with one that does not "
                    f"({head.label}), so it cannot be set",
                    hint='compile with passes={"merge_heads": False}',
                )
        used = np.any([reading.matrix.any(axis=1) for reading in self.readings], axis=0) if self.readings else False
        for variable, block in self.linear.blocks.items():
            if variable is ONE:
                continue
            slots = construction.slots.get(variable, np.full(variable.size, -1))
            if (block[slots < 0] * used).any():
                raise InputError(
                    f"{self.variable.label} was folded, and not all that it is made of is left: it cancels in what "
                    f"reads it ({variable.label} is not there)",
                    hint='compile with passes={"factor": False} or passes={"fold": False}, or at level 1',
                )


def folded(construction: Construction) -> dict[str, Folded]:
    """Every s-op that was folded, by its label."""
    circuit = construction.schedule.circuit
    readings: dict[Variable, list[Reading]] = {variable: [] for variable in circuit.folded}

    def note(linear: LinearMap, hook: str, *place: Any) -> None:
        for variable, block in linear.through.items():
            readings[variable].append(Reading(hook, place, block))

    for number, layer in enumerate(construction.layers):
        for place, head in enumerate(layer.heads):
            for name, linear in zip("qkv", head.maps, strict=True):
                note(linear, f"blocks.{number}.attn.hook_{name}", place, slice(0, linear.width))
        start = 0
        for part in layer.mlps:
            note(part.read, f"blocks.{number}.mlp.hook_pre", slice(start, start + part.read.width))
            start += part.read.width
    start = 0
    for (_, variable), linear in zip(circuit.outputs, circuit.unembedded, strict=True):
        logits = linear if variable.codebook is None else linear.then(variable.codebook.T)
        note(logits, "logits", slice(start, start + logits.width))
        start += logits.width
    return {
        variable.label: Folded(variable, linear, tuple(readings[variable]))
        for variable, linear in circuit.folded.items()
        if variable.node is not None and variable.label == circuit.typed.sops[variable.node].label
    }


def setting_hook(
    model: CompiledModel, changes: Mapping[str, Sequence[Any]], inputs: Sequence[Sequence[Value]], single: bool
) -> Hook:
    """A hook that writes the given values; `changes` maps a variable to a value per token (of each input)."""
    lengths = [len(tokens) for tokens in inputs]
    known, without = locations(model.construction), folded(model.construction)
    writes: dict[str, list[tuple[Location, NDArray[Any]]]] = {}
    through: dict[Variable, tuple[Folded, NDArray[Any]]] = {}
    rows = {label: [values] if single else values for label, values in changes.items()}
    for label, values in rows.items():
        absorbed = model.circuit.typed.absorbed.get(label)
        if absorbed is not None:
            raise InputError(
                f"{label} cannot be set: the optimiser made it {absorbed}",
                hint='compile with passes={"simplify": False, "fuse": False, "sums": False}, or at level 1',
            )
        if label not in known and label not in without:
            names = ", ".join([*known, *without])
            raise InputError(f"no variable {label!r} that could be set", hint=f"there are {names or 'none'}")
        if label in known:
            codes = _codes(known[label].variable, model, values, lengths)
            writes.setdefault(known[label].hook, []).append((known[label], codes))
        else:
            one = without[label]
            one.check(model.construction)
            through[one.variable] = one, _codes(one.variable, model, values, lengths)
    variables = {label: (known.get(label) or without[label]).variable for label in rows}
    for location, codes in _following(known, model.typed, variables, rows, inputs):
        writes.setdefault(location.hook, []).append((location, codes))
    there = _Writes(model, writes)
    elsewhere = _Through(model, through) if through else None

    def hook(name: str, tensor: NDArray[Any]) -> NDArray[Any] | None:
        changed = there.at(name, tensor)
        if elsewhere is not None:
            changed = elsewhere.at(name, tensor if changed is None else changed)
        return changed

    return hook


class _Writes:
    """Setting variables that have directions: right after whatever writes them."""

    def __init__(self, model: CompiledModel, writes: Mapping[str, list[tuple[Location, NDArray[Any]]]]) -> None:
        self.basis, self.writes = model.basis, writes

    def at(self, name: str, tensor: NDArray[Any]) -> NDArray[Any] | None:
        """The activation with what is to be set in it, if there is something."""
        embedded = self.writes.get("hook_embed", ()) if name == "hook_pos_embed" else ()
        if name not in self.writes and not embedded:
            return None
        changed, basis = np.array(tensor), self.basis
        # positions are added to tokens: what the one writes the other leaves alone
        everything = [*((location, 0.0 * codes) for location, codes in embedded), *self.writes.get(name, ())]
        for location, codes in everything:
            live = location.slots >= 0
            held = basis.get(changed[:, 1:], location.slots[live])
            wanted = np.where(np.isnan(codes[..., live]), held, codes[..., live])
            changed[:, 1:] = basis.put(changed[:, 1:], location.slots[live], wanted)
        return changed


class _Through:
    """Setting variables that were folded: each reader gets the difference to what it reads in their place."""

    def __init__(self, model: CompiledModel, through: Mapping[Variable, tuple[Folded, NDArray[Any]]]) -> None:
        self.model, self.through = model, through
        self.readings: dict[str, list[tuple[Variable, Reading]]] = {}
        for variable, (one, _) in through.items():
            for reading in one.readings:
                self.readings.setdefault(reading.hook, []).append((variable, reading))
        self.stream: NDArray[Any] = np.zeros(0)

    def at(self, name: str, tensor: NDArray[Any]) -> NDArray[Any] | None:
        """The activation of a reader with the differences in it."""
        if name == "hook_pos_embed":
            self.stream = self.stream + tensor
        elif name == "hook_embed" or name.rpartition(".")[2].startswith("hook_resid_"):
            self.stream = tensor
        if name not in self.readings:
            return None
        changed = np.array(tensor)
        differences = self._differences()
        for variable, reading in self.readings[name]:
            changed[(slice(None), slice(1, None), *reading.place)] += differences[variable] @ reading.matrix
        return changed

    def _differences(self) -> dict[Variable, NDArray[Any]]:
        """What the set variables are more than what is read in their place; one may be read through another."""
        found: dict[Variable, NDArray[Any]] = {}
        for variable in self.model.circuit.folded:
            if variable in self.through:
                one, codes = self.through[variable]
                held = self._read(one.linear)
                for earlier, block in one.linear.through.items():
                    if earlier in found:
                        held = held + found[earlier] @ block
                found[variable] = np.where(np.isnan(codes), 0.0, codes - held)
        return found

    def _read(self, linear: LinearMap) -> NDArray[Any]:
        slots_of, basis = self.model.construction.slots, self.model.basis
        total: NDArray[Any] = np.zeros((*self.stream[:, 1:].shape[:2], linear.width))
        for variable, block in linear.blocks.items():
            if variable in slots_of:
                slots = slots_of[variable]
                total = total + basis.get(self.stream[:, 1:], slots[slots >= 0]) @ block[slots >= 0]
            elif variable is ONE:
                total = total + block[0]
        return total


def _following(
    known: Mapping[str, Location],
    typed: Typed,
    variables: Mapping[str, Variable],
    changes: Mapping[str, Sequence[Sequence[Value]]],
    inputs: Sequence[Sequence[Value]],
) -> Iterator[tuple[Location, NDArray[Any]]]:
    """The other embedded variables that are functions of those set, with their coordinates."""
    given = {label: typed.sops[_node(variables[label])] for label in changes}
    reached = {node.id for node in given.values()}
    for node in typed.sops.values():
        if isinstance(node.op, Lookup | PairLookup | Linear) and not reached.isdisjoint(node.inputs):
            reached.add(node.id)
    embedded = [location for label, location in known.items() if label not in changes and location.hook == "hook_embed"]
    following = [location for location in embedded if _node(location.variable) in reached]
    if not following:
        return
    replaced: dict[int, NDArray[Any]] = {}
    for label, node in given.items():
        if isinstance(node.domain, Finite):
            codes = replaced[node.id] = np.zeros((len(inputs), max(map(len, inputs))), dtype=np.int32)
            for number, row in enumerate(changes[label]):
                codes[number, : len(row)] = [node.domain.index[value] for value in row]
    first, pad = typed.options.vocab[0], typed.options.pad
    evaluation = evaluate_batch(
        typed, [[first if token == pad else token for token in row] for row in inputs], replaced
    )
    for location in following:
        domain = typed.sops[_node(location.variable)].domain
        assert isinstance(domain, Finite)
        rows = np.array([location.variable.code(value) for value in domain.values])
        codes = evaluation.codes[_node(location.variable)]
        there = (codes >= 0) & evaluation.batch.valid
        yield location, np.where(there[..., None], rows[np.maximum(codes, 0)], np.nan)


def _node(variable: Variable) -> int:
    assert variable.node is not None
    return variable.node


def _codes(
    variable: Variable, model: CompiledModel, rows: Sequence[Sequence[Value]], lengths: Sequence[int]
) -> NDArray[Any]:
    """Coordinates [input, position, direction] of the values; NaN at padding, which is left as it is."""
    assert variable.node is not None
    domain = model.typed.sops[variable.node].domain
    codes = np.full((len(lengths), max(lengths, default=0), variable.size), np.nan)
    if len(rows) != len(lengths) or any(len(row) != length for row, length in zip(rows, lengths, strict=True)):
        raise InputError(
            f"{variable.label} needs a value for every token: {list(lengths)}, not {[len(row) for row in rows]}",
            hint="give a list with a value for each token",
        )
    for number, row in enumerate(rows):
        for position, value in enumerate(row):
            fits = value in domain.index if isinstance(domain, Finite) else value is None or is_number(value)
            if not fits:
                raise InputError(f"{variable.label} cannot be {value!r}", hint=f"its values are {domain}")
            codes[number, position] = variable.code(value)
    return codes
