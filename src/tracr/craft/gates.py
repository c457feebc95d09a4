"""Parts of the constructions: biases, gates, constants, rows of values that are not numbers, and error bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracr.craft.formats import FLOAT32, Format
from tracr.craft.linear import BOS, ONE, LinearMap, NumberRead, present
from tracr.craft.mlps import Units
from tracr.craft.numerics import LANES, Noise, U
from tracr.craft.variables import Array
from tracr.values import Value

__all__ = ["Others", "bias_of", "constant_row", "gated", "other_rows", "rounding", "sum_error"]

Others = Mapping[Value, Array]  # rows for the values that are not numbers


def bias_of(weights: Array) -> LinearMap:
    """The map that adds a bias to each neuron."""
    return LinearMap.of(ONE, weights[None, :])


def rounding(rows: Array, to: Format) -> float:
    """The largest change of a number by rounding it to the format."""
    if to.short:
        return float(np.abs(to.nearest(rows) - rows).max(initial=0.0))
    return U * float((rows.astype(np.float32) != rows).any()) * float(np.abs(rows).max(initial=0.0))


def gated(read: NumberRead, neurons: LinearMap, ceiling: Array, bias: Array | None = None) -> LinearMap:
    """Neurons, with a bias if given, that are off at BOS and where the value is not a number.

    Elsewhere the gate adds 0, and nothing is rounded.
    """
    biased = {} if bias is None else {ONE: bias[None, :]}
    gated = neurons + LinearMap({**biased, BOS: -ceiling[None, :]}, neurons.width)
    missing = read.missing()
    return gated if missing is None else gated + missing.then(-ceiling[None, :])


def constant_row(read: NumberRead, written: Array, to: Format = FLOAT32) -> Units:
    """A fixed row at every position that holds a number: one neuron, relu(1 - bos - none)."""
    source, missing = present(), read.missing()
    if missing is not None:
        source = source + missing.then(np.array([[-1.0]]))
    return Units(source, written[None, :], Noise(error=rounding(written, to)))


def other_rows(read: NumberRead, rows: Others) -> list[Units]:
    """A fixed row for each value that is not a number; written at most once if several flags mark the same value."""
    flags: dict[Value, list[LinearMap]] = {}
    for value, flag in read.flags:
        if value in rows:
            flags.setdefault(value, []).append(flag)
    units = []
    for value, maps in flags.items():
        total, written = maps[0], rows[value][None, :]
        for flag in maps[1:]:
            total = total + flag
        units.append(Units(total, written, Noise()))
        if len(maps) > 1:  # min(1, total) = relu(total) - relu(total - 1)
            units.append(Units(total + bias_of(np.array([-1.0])), -written, Noise()))
    return units


def sum_error(weights: Array, largest: float, span: float) -> Array:
    """Error of the sums over neurons of weights [neuron, output] times hidden values.

    A hidden value is the difference of two numbers up to `largest`, each rounded, and is at most `span` itself. The
    error of a sum of k products up to P is that of the roundings of its partial sums; the sum is assumed to run in at
    least `LANES` lanes. One of the products may clear the slot's earlier contents, up to 1, to which the sum is added
    (`residual/slot_reuse.py`).
    """
    count = (weights != 0).sum(axis=0) + 1
    total = weights.sum(axis=0)
    return np.asarray(2 * U * total * largest + (7 + count / LANES) * U * (total * span + 1))
