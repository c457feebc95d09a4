"""Functional equality: can the program of a part tell another part from it?

A part T stands in its compiled model M. Another part P computes from the same inputs. Both have values at each token of
each input of the data; "in the same place" means at the same position of inputs of the same length. P is *equal to T in
the program* if

1. P says nothing that T does not say: in the same place, where T has one value P has one value;
2. P says all of T that any reader uses: where P has one value, the values that T has in the same place can be exchanged
   for each other, and every other component of M writes at every token what it wrote, and M's logits are the same.

What is exchanged in 2: at single tokens of each input, every value for every other (all of them); and at all tokens
together, values drawn at random, `DRAWS` times on each input, every second time while T computes on another input of
the same length than the rest of M (an interchange).

If 1 and 2 hold, no intervention on T that a twin is trained and admitted by, on these data, has another answer with P
than with T: which of both a trained component computes is not defined by its training. Neurons that only clear
dimensions for other variables write what they clear; they are not readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import InputError
from tracr.graft.observed import CodedValues, ObservedPart, observe, tokens_of, written_by
from tracr.graft.part import Part, part_names, streams_before
from tracr.runtime.forward import forward

__all__ = ["ProgramEquality", "compared_in_program", "equal_in_program"]

Array = NDArray[Any]
DRAWS = 8  # exchanges at all tokens of an input
SAME = 1e-4  # what components write is the same up to this
BATCH = 2_048


@dataclass(frozen=True)
class ProgramEquality:
    """How a part compares with the true one in the true one's program.

    - `says_more`: whether it has different values somewhere where the true part has one.
    - `exchanges`: how many values of the true part, that the part does not distinguish, were exchanged; `noticed`, how
      many exchanges changed what another component writes, or the logits.
    """

    says_more: bool
    exchanges: int
    noticed: int

    @property
    def equal(self) -> bool:
        """Whether the program cannot tell the parts apart, on the data."""
        return not self.says_more and not self.noticed


def equal_in_program(true: Part, part: Part, inputs: Sequence[Sequence[Any]], *, seed: int = 0) -> bool:
    """Whether the program of the true part cannot tell another part from it, on these inputs."""
    if not len(inputs):
        raise InputError("there are no inputs to compare parts on", hint="pass graft.inputs_of(model)")
    first, second = observe([true], inputs)[0], observe([part], inputs)[0]
    return compared_in_program(first, second.output, inputs, seed=seed).equal


def compared_in_program(
    true: ObservedPart, output: CodedValues, inputs: Sequence[Sequence[Any]], *, draws: int = DRAWS, seed: int = 0
) -> ProgramEquality:
    """Compare an output with that of a part, as the module's docstring says it.

    Args:
        true: the part, observed on the inputs.
        output: the values of the other part on the same inputs.
        inputs: the inputs.
        draws: exchanges at all tokens of each input.
        seed: of these.
    """
    bench = _Exchanges(true, output, [tuple(one) for one in inputs])
    if any(one.says_more for one in bench.places):
        return ProgramEquality(says_more=True, exchanges=0, noticed=0)
    exchanges = noticed = 0
    for rows, base, changed in (*bench.single(), *bench.together(whole("draws", draws), np.random.default_rng(seed))):
        exchanges += len(rows)
        noticed += int(bench.noticed(rows, base, changed).sum())
    return ProgramEquality(says_more=False, exchanges=exchanges, noticed=noticed)


@dataclass(frozen=True, eq=False)
class _Place:
    """A position of the inputs of one length: their rows, and which values of the true part are not distinguished."""

    rows: Array
    position: int
    members: dict[int, Array]
    says_more: bool


@dataclass(frozen=True, eq=False)
class _Exchanges:
    """A compiled model in which the values of one part are exchanged."""

    true: ObservedPart
    output: CodedValues
    inputs: Sequence[Any]

    @cached_property
    def real(self) -> NDArray[np.bool_]:
        return tokens_of(self.inputs)

    @cached_property
    def classes(self) -> Array:
        return self.true.output.classes

    @cached_property
    def streams(self) -> dict[str, Array]:
        return streams_before(self.true.part.model, self.inputs)

    @cached_property
    def codes(self) -> Array:
        """What the part writes for each of its values, not rounded."""
        written = written_by(self.true.part, self.streams)[:, 1:][self.real]
        return np.asarray(written[np.unique(self.classes[self.real], return_index=True)[1]])

    @cached_property
    def readers(self) -> list[Part]:
        """The components that may read what the part writes."""
        model, own = self.true.part.model, self.true.part
        names = [name for name in part_names(model) if ".attn." in name or name.count(".") == 3]
        after = 2 * own.layer + (own.kind == "mlp")
        parts = [Part(model, name) for name in names]
        return [one for one in parts if 2 * one.layer + (one.kind == "mlp") > after]

    @cached_property
    def places(self) -> list[_Place]:
        lengths, found = self.real.sum(axis=1), []
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for position in range(length):
                mine, other = self.classes[rows, position], self.output.classes[rows, position]
                pairs = np.unique(np.stack([other, mine]), axis=1)
                members = {int(value): pairs[1, pairs[0] == value] for value in np.unique(other)}
                found.append(_Place(rows, position, members, pairs.shape[1] > len(np.unique(mine))))
        return found

    def single(self) -> Iterator[tuple[Array, Array, Array]]:
        """Every exchange at one token: the rows, the values as they are, and with the exchange."""
        rows, positions, values = [], [], []
        for place in self.places:
            for value, members in place.members.items():
                mine = place.rows[self.output.classes[place.rows, place.position] == value]
                for member in members if len(members) > 1 else ():
                    other = mine[self.classes[mine, place.position] != member]
                    rows.append(other)
                    positions.append(np.full(len(other), place.position))
                    values.append(np.full(len(other), member))
        if rows:
            row, position, exchanged = (np.concatenate(one) for one in (rows, positions, values))
            changed = self.classes[row]
            changed[np.arange(len(row)), position] = exchanged
            yield row, self.classes[row], changed

    def together(self, draws: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array, Array]]:
        """Exchanges at all tokens: of the part's own values, and, every second time, of those on another input."""
        if all(len(members) == 1 for place in self.places for members in place.members.values()):
            return
        every = np.arange(len(self.inputs))
        for number in range(draws):
            source = every.copy()
            for place in self.places:
                if number % 2 and place.position == 0:
                    source[place.rows] = rng.permutation(place.rows)
            base, changed = self.classes[source], self.classes[source]
            for place in self.places:
                values = self.output.classes[source[place.rows], place.position]
                for value, members in place.members.items():
                    mine = place.rows[values == value]
                    changed[mine, place.position] = rng.choice(members, len(mine))
            yield every, base, changed

    def noticed(self, rows: Array, base: Array, changed: Array) -> NDArray[np.bool_]:
        """For each row, whether another component, or an answer, is changed by the values."""
        found = np.zeros(len(rows), dtype=bool)
        for first in range(0, len(rows), BATCH):
            chosen = slice(first, first + BATCH)
            real = self.real[rows[chosen]]
            one, other = (self.run(rows[chosen], values[chosen]) for values in (base, changed))
            for before, after in zip(one, other, strict=True):
                far = (np.abs(before - after) > SAME).any(axis=-1)[:, 1:]
                found[chosen] |= (far & real).any(axis=1)
        return found

    def run(self, rows: Array, values: Array) -> list[Array]:
        """What the readers write, and the logits, on inputs with these values of the part."""
        part, seen = self.true.part, dict[str, Array]()
        model = part.model
        delta = np.zeros_like(self.streams[f"blocks.{part.layer}.hook_resid_pre"][rows])
        here = np.nonzero(self.real[rows])
        change = self.codes[values[here]] - self.codes[self.classes[rows][here]]
        delta[here[0][:, None], here[1][:, None] + 1, list(part.weights.writes)] = change
        at = f"blocks.{part.layer}.hook_{'attn' if part.kind == 'head' else 'mlp'}_out"

        def hook(name: str, tensor: Array) -> Array | None:
            seen[name] = tensor
            return tensor + delta if name == at else None

        stream = self.streams[f"blocks.{part.layer}.hook_resid_pre"][rows]
        with np.errstate(under="ignore", invalid="ignore"):
            logits = forward(
                model.parameters,
                stream,
                np,
                causal=model.options.causal,
                hook=hook,
                norm=model.norm,
                start=part.layer,
            )
        return [*(written_by(one, seen) for one in self.readers), np.asarray(logits)]
