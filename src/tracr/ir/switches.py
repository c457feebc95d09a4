"""The optimiser's passes: what each does, and the level from which it is on, if any. Every one has its own switch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tracr.errors import CompileError
from tracr.spelling import did_you_mean

__all__ = ["PASSES", "Pass", "Switches", "enabled"]


class Pass(NamedTuple):
    """One optimisation; one without a level is on only where its switch is."""

    level: int | None
    does: str


PASSES = {
    "share": Pass(1, "equal expressions are computed once"),
    "constants": Pass(1, "what has one value is a constant, and a constant needs no direction to be read from"),
    "kinks": Pass(1, "neurons only where tables change: equal rows are one class, sums of inputs one number"),
    "rank": Pass(1, "heads as narrow as the rank of their selector"),
    "bits": Pass(1, "many values are stored in bits"),
    "prune": Pass(1, "what nothing reads is left out"),
    "merge_heads": Pass(1, "heads of a layer with one pattern become one"),
    "fold": Pass(2, "linear functions need no neurons: their readers read what they are made of"),
    "simplify": Pass(2, "operations on what is constant, or known from position and length, are left out"),
    "fuse": Pass(2, "a function of functions of one or two variables is one function"),
    "sums": Pass(2, "what depends on a weighted sum, as and/or do, is a function of one number"),
    "linear_tables": Pass(2, "tables that are weighted sums become weighted sums"),
    "match": Pass(2, "what only finds a key is a number, and finds it by its number"),
    "factor": Pass(2, "the embedding writes what is read of tokens and positions, not which they are"),
    "few_bits": Pass(2, "what is only copied and compared is stored in bits, however few the values"),
    "schedule": Pass(2, "components that can wait stand where the residual stream is narrowest"),
    "solve": Pass(None, "a constraint solver looks for the best schedule (extra `opt`)"),
    "share_neurons": Pass(2, "neurons of a layer that read the same become one"),
    "reuse": Pass(2, "a dimension that nobody reads any more holds another variable"),
}

Switches = Mapping[str, bool] | Collection[str] | None


def enabled(level: int, switches: Switches) -> tuple[str, ...]:
    """The passes that are on: those of the level, with some switched on or off; or exactly those listed.

    >>> enabled(1, {"share": False, "fold": True})
    ('constants', 'kinks', 'rank', 'bits', 'prune', 'merge_heads', 'fold')
    >>> enabled(0, None), enabled(0, ["share"])
    ((), ('share',))
    """
    if isinstance(switches, str) or not isinstance(switches, Mapping | Collection | None):
        raise CompileError(
            f"passes must map names to True or False, or list names, not {switches!r}", hint="passes={'fold': False}"
        )
    for name in () if switches is None else switches:
        if not isinstance(name, str) or name not in PASSES:
            hint = did_you_mean(str(name), PASSES, f"there are {', '.join(PASSES)}")
            raise CompileError(f"there is no pass {name!r}", hint=hint)
    if switches is not None and not isinstance(switches, Mapping):
        return tuple(name for name in PASSES if name in switches)
    chosen = switches or {}
    return tuple(name for name, one in PASSES.items() if chosen.get(name, one.level is not None and level >= one.level))
