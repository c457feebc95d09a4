"""Joint values: all combinations of values that some variables can have at one position of an input.

**Rule.** Let F be variables and let v1, ..., vk be functions of F. Every combination of values of v1, ..., vk at a
position of an input on which the program is defined is the image of a combination of values of F in which the position
is less than the length and every s-op that is a function of F is defined. Proof: take the values of F at that position.
The program is defined on the input, so every s-op is defined at every position; a position of an input is less than its
length. So enumerating F, dropping the other combinations and mapping the rest misses nothing. If a variable can be
computed in two ways, both give its value, so combinations where they differ are dropped, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from tracr_check.program import Program
from tracr_check.variables import Env, Truth, Var
from tracr_check.verdict import need

__all__ = ["FINE", "LIMIT", "joint_values"]

LIMIT = 4_000_000
FINE = 40_000
OVERHEAD = 300  # cells that could be computed in the time that listing takes for each variable of the program
Dead = Mapping[Var, Truth]


def _order(variable: Var) -> tuple[int, str]:
    """An order of variables: names first, then numbers."""
    return (variable, "") if isinstance(variable, int) else (-1, variable)


def joint_values(
    program: Program, names: Iterable[Var], dead: Dead | None = None, limit: int = LIMIT, few: int = FINE
) -> Env:
    """The joint values of variables: from all that they are functions of if these are few, else from themselves.

    `dead` marks values that are known not to occur.
    """
    program.spend(OVERHEAD * (len(program.ways) + 1))
    wanted = sorted(set(names), key=_order)
    fine = sorted(frozenset().union(*(program.leaves(one) for one in wanted)) if wanted else (), key=_order)
    coarse: list[Var] = []
    for one in sorted(wanted, key=lambda one: program.derivable(one, frozenset(wanted) - {one})):  # functions last
        if not program.derivable(one, frozenset(coarse)):
            coarse.append(one)
    chosen = fine if _count(program, fine) <= max(few, _count(program, coarse)) else coarse
    size = _count(program, chosen)
    need(size <= limit, f"{size:,} joint values of {', '.join(map(program.name, chosen))}")
    program.spend(size * len(chosen))
    env = _defined(program, _enumerated(program, chosen), wanted)
    return env.where(~gone[env.codes[name]] for name, gone in (dead or {}).items() if name in env.codes)


def _count(program: Program, names: Iterable[Var]) -> int:
    return math.prod(program.sizes[one] for one in names)


def _enumerated(program: Program, names: list[Var]) -> Env:
    """All combinations of values, with positions that are less than the length."""
    sizes = [program.sizes[one] for one in names]
    grid = np.indices(sizes).reshape(len(sizes), -1) if names else np.zeros((0, 1), np.int64)
    env = Env(grid.shape[1], dict(zip(names, grid, strict=True)), tuple(names))
    if "I" in env.codes and "L" in env.codes:
        return env.at(env.codes["I"] < env.codes["L"] + program.lengths[0])
    return env


def _defined(program: Program, env: Env, wanted: list[Var]) -> Env:
    """The rows on which every s-op that is a function of the enumerated variables is defined."""
    memo: dict[Var, bool] = {}
    have = frozenset(env.codes)
    if have:
        for number in program.partial:
            if program.derivable(number, have, memo):
                env = env.where([program.codes(number, env) >= 0])
        env = _agreeing(program, env, have)
    return env.where([program.codes(one, env) >= 0 for one in wanted])


def _agreeing(program: Program, env: Env, have: frozenset[Var]) -> Env:
    """The rows on which all ways to compute a variable from the enumerated ones agree."""
    for one, ways in program.ways.items():
        known = [way for way in ways if all(program.derivable(name, have) for name in way.of)] if len(ways) > 1 else []
        if len(known) + (one in have) > 1:
            codes = program.codes(one, env)
            env = env.where([program.computed(one, way, env) == codes for way in known])
    return env
