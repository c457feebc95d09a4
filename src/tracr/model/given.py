"""Reads `run(set={variable: values})`; shapes, types and values are checked before the model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.ir.domains import Domain, Finite
from tracr.rasp.expressions import RASPExpr
from tracr.values import Value, is_number, short_repr

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["check_values", "given_codes", "given_rows"]

EXAMPLE = 'write, for example, set={"is_a": [True, False]}'


def given_rows(
    model: DesignedModel, changes: object, lengths: Sequence[tuple[int, int]], single: bool
) -> dict[str, list[list[Value]]]:
    """The values of each variable, a row for each input, without the values for PAD.

    `lengths` has the length of each input without and with PAD.
    """
    if not isinstance(changes, Mapping):
        raise InputError(f"set must map variables to values, not {short_repr(changes)}", hint=EXAMPLE)
    found = {}
    for key, values in changes.items():
        label = _label(model, key)
        rows = [values] if single else _listed(label, values, "a list of values for each input")
        if len(rows) != len(lengths):
            raise InputError(
                f"{label} has values for {len(rows)} inputs, but there are {len(lengths)} inputs",
                hint="give a list of values for each input",
            )
        found[label] = [_row(label, row, *both) for row, both in zip(rows, lengths, strict=True)]
    return found


def _label(model: DesignedModel, key: object) -> str:
    if isinstance(key, str):
        return key
    hint = EXAMPLE
    if isinstance(key, RASPExpr):
        labels = [model.graph.nodes[number].label for number, expr in enumerate(model.expressions) if expr is key]
        hint = f"write its label, {(labels or [key.name])[0]!r}"
    raise InputError(f"a variable is named by its label, a string, not by {short_repr(key)}", hint=hint)


def _listed(label: str, values: Any, wanted: str) -> list[Any]:
    """A sequence, array or tensor as a list."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list | tuple | str):
        return list(values)
    raise InputError(f"{label} needs {wanted}, not {short_repr(values)}", hint=EXAMPLE)


def _row(label: str, values: Any, tokens: int, padded: int) -> list[Value]:
    row = _listed(label, values, "a list of values, one for every token")
    if len(row) not in (tokens, padded):
        raise InputError(
            f"{label} needs a value for every token: {tokens} of them, not {len(row)}",
            hint="to leave the variable unchanged at a token, give the value that it has there",
        )
    return [value.tolist() if hasattr(value, "tolist") else value for value in row[:tokens]]


def check_values(label: str, domain: Domain, rows: Sequence[Sequence[Value]]) -> None:
    """Refuse values that are not in a variable's domain."""
    for value in (value for row in rows for value in row):
        try:
            known = value in domain.index if isinstance(domain, Finite) else domain.holds(_number(value))
        except TypeError:  # not hashable
            known = False
        if not known:
            raise InputError(f"{label} cannot be {short_repr(value)}", hint=f"its values are {domain}")


def given_codes(domain: Domain, rows: Sequence[Sequence[Value]]) -> NDArray[Any]:
    """Codes (numbers for an interval, NaN for `None`) [input, position] of values that were checked; 0 at PAD."""
    shape = len(rows), max(map(len, rows), default=0)
    codes = np.zeros(shape, dtype=np.int32 if isinstance(domain, Finite) else np.float64)
    for number, row in enumerate(rows):
        code = domain.index.__getitem__ if isinstance(domain, Finite) else _number
        codes[number, : len(row)] = list(map(code, row))
    return codes


def _number(value: Value) -> NDArray[np.float64]:
    """A value as a number: NaN for `None`, infinity for any other value that is not a number."""
    if value is None:
        return np.array(np.nan)
    return np.array(float(value) if is_number(value) else np.inf)
