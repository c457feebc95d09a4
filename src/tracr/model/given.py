"""Reading `run(set={variable: values})`: shapes, kinds and values are checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Domain, Finite
from tracr.compiler.trace import Graph
from tracr.errors import InputError
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.values import Value, is_number, short_repr

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["given_codes", "given_rows"]

EXAMPLE = 'such as set={"is_a": [True, False]}'


def given_rows(
    model: CompiledModel, changes: object, lengths: Sequence[tuple[int, int]], single: bool
) -> dict[str, list[list[Value]]]:
    """The values of each variable, a row for each input; `lengths` are those of the inputs without and with PAD.

    Values for PAD are left out.
    """
    if not isinstance(changes, Mapping):
        raise InputError(f"set must map variables to values, not {short_repr(changes)}", hint=EXAMPLE)
    found = {}
    for key, values in changes.items():
        label = _label(model, key)
        rows = [values] if single else _listed(label, values, "a list of values for each input")
        if len(rows) != len(lengths):
            raise InputError(
                f"{label} has values for {len(rows)} inputs, there are {len(lengths)}",
                hint="give a list of values for each input",
            )
        found[label] = [_row(label, row, *both) for row, both in zip(rows, lengths, strict=True)]
    return found


def _label(model: CompiledModel, key: object) -> str:
    if isinstance(key, str):
        return key
    hint = EXAMPLE
    if isinstance(key, RASPExpr):
        nodes = model.graph.nodes if isinstance(model.graph, Graph) else ()
        labels = [node.label for node in nodes if node.expr is key]
        hint = f"write its label, {(labels or [key.name])[0]!r}"
    raise InputError(f"a variable is named by its label, a string, not by {short_repr(key)}", hint=hint)


def _listed(label: str, values: Any, wanted: str) -> list[Any]:
    """A sequence as a list: arrays and tensors of any framework too."""
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
            hint="where nothing is to change, give the value that it has",
        )
    return [value.tolist() if hasattr(value, "tolist") else value for value in row[:tokens]]


def given_codes(label: str, domain: Domain, rows: Sequence[Sequence[Value]]) -> NDArray[Any]:
    """Codes (numbers for an interval, NaN for `None`) [input, position]; 0 behind the tokens."""
    finite = isinstance(domain, Finite)
    codes = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int32 if finite else np.float64)
    for number, row in enumerate(rows):
        codes[number, : len(row)] = [_code(label, domain, value) for value in row]
    return codes


def _code(label: str, domain: Domain, value: Value) -> float:
    if isinstance(domain, Finite):
        try:
            return domain.index[value]
        except (KeyError, TypeError):  # not there, or not hashable
            raise _refused(label, domain, value) from None
    number = np.nan if value is None else float(value) if is_number(value) else np.inf
    if not domain.holds(np.array(number)):
        raise _refused(label, domain, value)
    return number


def _refused(label: str, domain: Domain, value: object) -> InputError:
    return InputError(f"{label} cannot be {short_repr(value)}", hint=f"its values are {domain}")
