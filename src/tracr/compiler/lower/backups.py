"""A second computation of a variable, for readers that find the code of the first missing (`tracr.natural.backup`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.craft.linear import BOS, LinearMap, read_code
from tracr.craft.mlps import Units
from tracr.craft.numerics import Noise
from tracr.craft.variables import Variable
from tracr.errors import CompileError
from tracr.ir.program import SOpNode

__all__ = ["add_backup"]

ROUGH = 0.25  # the largest error of the sum of a code


def add_backup(builder: CircuitBuilder, node: SOpNode, lower: Callable[[SOpNode], None]) -> None:
    """Lower an s-op, that was lowered once, a second time; its readers read an MLP that chooses between both codes.

    The second computation comes in later layers than the first, so that no component computes a part of both.
    """
    first = builder.variable(node.id)
    why = _obstacle(builder, first)
    if why:
        raise CompileError(
            f"{node.label} {why}: a missing code would not be recognised",
            expression=node,
            hint="back up a variable with a one-hot code that a head or an MLP computes",
        )
    before = builder.count
    lower(replace(node, label=builder.fresh_label(f"{node.label}_backup")))
    second = builder.variable(node.id)
    builder.delay(before, first)
    label = builder.fresh_label(f"{node.label}_either")
    space = replace(first, label=label, at_bos=(), scratch=False)
    what = f"{node.label}; {second.label} where the code of {node.label} is missing"
    builder.holds(node, builder.write_mlp(space, _either(first, second), what))


def _obstacle(builder: CircuitBuilder, first: Variable) -> str:
    """Why a variable cannot have a backup; "" if it can."""
    if builder.is_embedded(first):
        return "is written by the embedding"
    if first.numerical:
        return "is a number, and 0 is a number too"
    if first.compact:
        return "is stored in bits"
    rough = first.noise.error + first.size * first.noise.cold > ROUGH
    return "has a code with a large error" if rough else ""


def _either(first: Variable, second: Variable) -> Units:
    """The code x of the first variable, or the code y of the second if x is zero: relu(x) + relu(y - 2 sum(x)).

    If x is a code, its sum is 1 up to `ROUGH`, and y - 2 sum(x) is at most 5/4 - 3/2. If x is zero, y is written.
    Nothing is written at BOS: a head writes its default there, which readers subtract. If the head is ablated, x
    therefore reads as minus the default, and the sum of x as -1.
    """
    own, total = read_code(first), np.full((first.size, first.size), -2.0)
    other = read_code(second) + own.then(total) + LinearMap.of(BOS, np.full((1, first.size), -4.0))
    noise = [max(pair) for pair in zip(_errors(first), _errors(second), strict=True)]
    return Units(own.beside(other), np.concatenate([np.eye(first.size)] * 2), Noise(*noise))


def _errors(variable: Variable) -> tuple[float, float]:
    return variable.noise.error, variable.noise.cold
