"""The names of the passes, in the order they run, and of the options, which change how passes work.

Every optimising pass and every option has a switch (`tracr.compile(passes={"fold": False})`) and an optimisation level
from which it is on. The passes themselves are in `compiler/pipeline.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from tracr.errors import CompileError
from tracr.spelling import did_you_mean

__all__ = ["OPTIONS", "PASSES", "OptionName", "PassName", "Switch", "SwitchName", "Switches", "enabled", "level_of"]


class PassName(StrEnum):
    """Every pass of the compiler, in the order they run."""

    FUSE_EXPRESSIONS = "fuse_expressions"
    TRACE = "trace"
    INFER = "infer"
    SHARE = "share"
    DROP_UNUSED = "drop_unused"
    ENCODE = "encode"
    SPLIT = "split"
    STORE = "store"
    SIMPLIFY = "simplify"
    FUSE = "fuse"
    SUMS = "sums"
    LOWER = "lower"
    EMBED_FUNCTIONS = "embed_functions"
    FOLD = "fold"
    PRUNE = "prune"
    FACTOR = "factor"
    ASSIGN = "assign"
    SCHEDULE = "schedule"
    SOLVE = "solve"
    STACK = "stack"
    MERGE_HEADS = "merge_heads"
    SHARE_NEURONS = "share_neurons"
    LAYOUT = "layout"
    REUSE = "reuse"
    ASSEMBLE = "assemble"


class OptionName(StrEnum):
    """Every option. An option changes how one or several passes work."""

    CONSTANTS = "constants"
    KINKS = "kinks"
    RANK = "rank"
    BITS = "bits"
    LINEAR_TABLES = "linear_tables"
    MATCH = "match"
    FEW_BITS = "few_bits"


SwitchName = PassName | OptionName


class Switch(NamedTuple):
    """The level from which a pass or an option is on (`None`: only when requested), and what it does."""

    level: int | None
    does: str


PASSES: Mapping[str, Switch] = {
    PassName.SHARE: Switch(1, "computes equal expressions once, unless that would take more layers"),
    PassName.SIMPLIFY: Switch(2, "removes operations whose result is constant or depends only on position and length"),
    PassName.FUSE: Switch(2, "composes nested functions of one or two variables into one function"),
    PassName.SUMS: Switch(2, "computes a function of several variables, such as a chain of and/or, from one sum"),
    PassName.FOLD: Switch(2, "removes linear functions by multiplying their matrices into those of their readers"),
    PassName.PRUNE: Switch(1, "removes components and dimensions that nothing reads"),
    PassName.FACTOR: Switch(
        2, "embeds only the features of tokens and positions that are read, not their one-hot codes"
    ),
    PassName.SCHEDULE: Switch(
        2, "moves components between layers so that fewer dimensions are in use at the same time"
    ),
    PassName.SOLVE: Switch(None, "finds the best assignment to layers with a constraint solver (extra `opt`)"),
    PassName.MERGE_HEADS: Switch(1, "merges the heads of a layer that have the same attention pattern"),
    PassName.SHARE_NEURONS: Switch(2, "merges the neurons of a layer that have the same input weights"),
    PassName.REUSE: Switch(2, "stores a new variable in the dimensions of one that is no longer read"),
}
"""The passes that can be switched on and off."""

OPTIONS: Mapping[str, Switch] = {
    OptionName.CONSTANTS: Switch(1, "a variable with only one value becomes a bias and needs no dimension"),
    OptionName.KINKS: Switch(1, "a table gets neurons only where its values change, not for each of its rows"),
    OptionName.RANK: Switch(
        1, "heads get the smallest d_head their selector allows; large comparisons may be split over heads"
    ),
    OptionName.BITS: Switch(1, "variables with very many values are stored in binary instead of one-hot"),
    OptionName.LINEAR_TABLES: Switch(
        2, "tables that equal a weighted sum of their inputs are computed as a weighted sum"
    ),
    OptionName.MATCH: Switch(2, "variables used only to look up a key are stored as one number"),
    OptionName.FEW_BITS: Switch(
        2, "variables that are only copied and compared are stored in binary, even with few values"
    ),
}
"""The options that can be switched on and off."""

Switches = Mapping[str, bool] | Collection[str] | None

FIRST_LEVEL = {str(name): one.level for name, one in (*PASSES.items(), *OPTIONS.items())}


def level_of(name: str) -> int | None:
    """The level from which a pass or an option is on."""
    return FIRST_LEVEL[name]


def enabled(level: int, switches: Switches) -> tuple[str, ...]:
    """The passes and options that are on: those of the level, changed by a mapping; or exactly those in a list.

    >>> enabled(1, {"share": False, "fold": True})
    ('fold', 'prune', 'merge_heads', 'constants', 'kinks', 'rank', 'bits')
    >>> enabled(0, None), enabled(0, ["share"])
    ((), ('share',))
    """
    _check_switches(switches, FIRST_LEVEL)
    if switches is not None and not isinstance(switches, Mapping):
        return tuple([name for name in FIRST_LEVEL if name in switches])
    chosen = switches or {}
    usual = {name: own is not None and level >= own for name, own in FIRST_LEVEL.items()}
    return tuple([name for name, on in usual.items() if chosen.get(name, on)])


def _check_switches(switches: Switches, names: Collection[str]) -> None:
    """Refuse switches that are neither a mapping nor a list of known names."""
    if isinstance(switches, str) or not isinstance(switches, Mapping | Collection | None):
        raise CompileError(
            f"passes must map names to True or False, or list names, not {switches!r}", hint="passes={'fold': False}"
        )
    for name in () if switches is None else switches:
        if not isinstance(name, str) or name not in names:
            raise _unknown(name, names)


def _unknown(name: object, names: Collection[str]) -> CompileError:
    if isinstance(name, str) and name in list(PassName):
        return CompileError(f"the pass {str(name)!r} has no switch", hint=f"there are {', '.join(names)}")
    hint = did_you_mean(str(name), names, f"there are {', '.join(names)}")
    return CompileError(f"there is no pass {name!r}", hint=hint)
