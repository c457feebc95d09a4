"""The program's value of every variable on the inputs of a run.

The interpreter computes the values; the weights have no part in it. Under `run(set=...)` they are the values of the
program with the given variables replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, UnknownName
from tracr.ir.program import Tables
from tracr.model.replaced_program import evaluate_replaced
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.spelling import did_you_mean
from tracr.values import Value, short_repr

if TYPE_CHECKING:
    from tracr.model.replacing import Replacement
    from tracr.model.running import RunnableModel

__all__ = ["VariableValues", "values_of"]

Rows = list[list[Value]]


class VariableValues(Mapping[str, list[Any]]):
    """The values of each variable by its label: one per token of an input, or a list of those for each input.

    They have the form of the run's output: positions that hold PAD give PAD. Each is computed when it is asked for. A
    variable that has no value on an input, because the program raises there, is refused.

    Args:
        program: the program; with replaced variables, as it was written, if that is known.
        labels: for each variable, the label of the s-op that has its values; equal variables share one.
        batch: the inputs.
        given: the codes of replaced variables.
        padded: the length of each input with PAD; `pad` is the token.
        single: whether there is one input, not a batch.
    """

    def __init__(
        self,
        program: Tables,
        labels: Mapping[str, str],
        batch: Batch,
        given: Mapping[int, NDArray[Any]],
        padded: Sequence[int],
        pad: Value,
        single: bool,
    ) -> None:
        self._program, self._labels, self._batch, self._given = program, dict(labels), batch, given
        self._padded, self._pad, self._single = padded, pad, single
        self._nodes = {node.label: node.id for node in program.sops.values()}

    def __getitem__(self, label: str) -> list[Any]:
        rows = self.rows(label)
        shown = [row + [self._pad] * (length - len(row)) for row, length in zip(rows, self._padded, strict=True)]
        return shown[0] if self._single else shown

    def rows(self, label: str) -> Rows:
        """The values of a variable for each input, without PAD."""
        if not isinstance(label, str) or label not in self._labels:
            hint = did_you_mean(str(label), self._labels, f"it has {', '.join(self._labels)}")
            raise UnknownName(f"the program has no variable {short_repr(label)}", hint=hint)
        own = self._labels[label]
        if own not in self._nodes:
            raise InputError(
                f"the value of {label} is not known: the compiler removed it, and a saved model has the rest only",
                hint="compile the program again",
            )
        number = self._nodes[own]
        return self._together.values(number) if self._together is not None else self._alone(label, number)

    @cached_property
    def _together(self) -> Evaluation | None:
        """All s-ops; `None` if some have no value on an input, or some are given: these are computed one by one."""
        if self._given:
            return None
        found = evaluate_batch(self._program, self._batch)
        return None if found.errors.any() else found

    def _alone(self, label: str, number: int) -> Rows:
        """The values of one s-op; only the s-ops that it depends on are computed, because others may raise."""
        alone = replace(self._program, outputs=((label, number),))
        found = evaluate_replaced(alone, self._batch, self._given)
        if found.errors.any():
            row = int(np.flatnonzero(found.errors)[0])
            where = "this input" if self._single else f"input {row}"
            raise InputError(
                f"{label} has no value on {where}: the program raises there, or never computes it with the values "
                "that were set",
                hint="leave this input out, or ask for a variable that it is computed from",
            )
        return found.values(number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __repr__(self) -> str:
        return f"VariableValues({', '.join(self._labels)})"


def values_of(
    model: RunnableModel,
    inputs: Sequence[Sequence[Value]],
    padded: Sequence[int],
    *,
    single: bool,
    replaced: Replacement | None = None,
) -> VariableValues:
    """The values on inputs without PAD; `padded` has their lengths with PAD."""
    known = model.program
    program, given = (known.written or known, {}) if replaced is None else (replaced.written, replaced.written_given)
    traced = [node.label for node in model.graph.nodes if not node.is_selector]
    there = {node.label for node in program.sops.values()}
    every = dict.fromkeys([*traced, *(node.label for node in known.sops.values())])
    labels = {label: label if label in there else known.shared.get(label, label) for label in every}
    batch = Batch.of(inputs, model.options.vocab)
    return VariableValues(program, labels, batch, given, padded, model.options.pad, single)
