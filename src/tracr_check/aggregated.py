"""The program's definition of an aggregate: the mean of the selected values."""

from __future__ import annotations

import numpy as np

from tracr_check.variables import ERROR, Codes, SOp, Truth, snap

__all__ = ["aggregated", "default_code", "moved_codes"]


def moved_codes(source: SOp, target: SOp) -> Codes:
    """The code in the target of each value of the source, alone: of the number that is near, or of the equal value.

    A number that is not listed is unreached, any other value an error.
    """
    equal = np.array([target.index.get(value, ERROR) for value in source.values], np.int64)
    numeric = np.isfinite(source.numbers)
    near = snap(target, np.where(numeric, source.numbers, 0.0))
    return np.where(numeric & ((near >= 0) | (equal < 0)), near, equal)


def aggregated(source: SOp, target: SOp, chosen: Truth, held: Codes) -> Codes:
    """The mean of the selected values, by the program's definition: [query] from [query, key] and [key].

    Nothing selected: the default. One value: itself. Several that are not all numbers, or several keys where the
    program assumes one: undefined. Several numbers: the value of the target within 1e-9 of their mean, else unreached.
    """
    count = chosen.sum(1)
    numeric = np.isfinite(source.numbers)
    sums = chosen.astype(np.float64) @ np.where(numeric, source.numbers, 0.0)[held]
    others = chosen @ (~numeric[held]).astype(np.int64)
    alone = chosen @ moved_codes(source, target)[held]
    found = np.where(count == 1, alone, snap(target, sums / np.maximum(count, 1)))
    found = np.where(((others > 0) | bool(target.op["assumed"])) & (count > 1), ERROR, found)
    return np.where(count == 0, default_code(target), found)


def default_code(target: SOp) -> int:
    """The code of the default of an aggregate; negative if it is undefined where nothing is selected."""
    default = target.op["default"]
    return int(moved_codes(SOp(-1, "default", {"kind": "constant"}, (default,)), target)[0])
