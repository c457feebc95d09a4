"""Decoys: variables of other programs that a model computes and that no output reads.

The program and the decoys are compiled together, as outputs of one model. Then the decoys are removed from the list of
outputs before the components are built, so that the unembedding has no logits for them. The compiler builds components
for every variable of the program, whether or not it is read; only the pass `prune` removes those that are not. It is
off in the new model, and so is `merge_heads`: a merged head could compute a decoy and a variable of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from numpy.typing import NDArray

from tracr.compiler.pipeline import compile_program, compile_tabulated
from tracr.compiler.program.share import drop_unused
from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.ir.graph import unique_labels
from tracr.ir.ops import ERROR, Aggregation, Lookup, PairLookup, Positions
from tracr.ir.program import Program, SOpNode
from tracr.ir.switches import PassName, level_of
from tracr.model.compiled import CompiledModel
from tracr.model.variants.variant_model import VariantModel
from tracr.rasp.expressions import SOp
from tracr.values import short_repr

__all__ = ["decoys"]

SWITCHED_OFF = (PassName.PRUNE, PassName.MERGE_HEADS)


def decoys(model: CompiledModel, programs: SOp | Sequence[SOp]) -> CompiledModel:
    """The model's program compiled again together with decoys: variables that are computed and that no output reads.

    Every decoy has its own dimensions, labels, nodes and edges, but there is no path from it to the unembedding. Parts
    that a decoy has in common with the program are computed once (from level 1 on). The new model has the options of
    `model`, but the passes `prune` and `merge_heads` are off; it can be saved and loaded. For a model whose second
    output reads these variables, compile both programs: `tracr.compile([a, b], ...)`.

    Args:
        model: a model compiled from expressions at level 0 or 1. Level 2 is refused: its passes remove and merge
            variables that are not read.
        programs: one or several s-ops. A decoy that is part of the program, that is constant, or that restricts the
            inputs more than the program does is refused.
    """
    _check_model(model)
    added = _listed(programs)
    names, keep = [name for name, _ in model.graph.outputs], len(model.graph.outputs)
    real = [cast(SOp, model.expressions[number]) for _, number in model.graph.outputs]
    outputs = dict(zip(unique_labels([*names, *("decoy" for _ in added)]), [*real, *added], strict=True))
    passes = [name for name in model.options.passes or () if name not in SWITCHED_OFF]
    joint = compile_program(outputs, replace(model.options, passes=passes))
    program = replace(joint.program, outputs=joint.program.outputs[:keep])
    graph = replace(joint.graph, outputs=joint.graph.outputs[:keep])
    compilation = replace(compile_tabulated(graph, program), expressions=joint.expressions)
    for sop, (_, number) in zip(added, joint.program.outputs[keep:], strict=True):
        _check_decoy(program, sop, number)
    made = CompiledModel(compilation, model.source)
    _check_inputs(model, made)
    return made


def _check_model(model: object) -> None:
    """Refuse a model that cannot have decoys."""
    if isinstance(model, VariantModel):
        raise TracrError("decoys are compiled, and this model has other weights", hint="use model.plain")
    if not isinstance(model, CompiledModel):
        raise TracrError(f"decoys need a compiled model, not a {type(model).__name__}", hint="use tracr.compile(...)")
    if not model.expressions:
        raise TracrError("a loaded model has no expressions to compile again", hint="compile the program again")
    if model.options.soft is not None or model.program.stored.backups:
        what = "softened" if model.options.soft else "compiled with a backup"
        raise TracrError(f"the model was {what}, and decoys are compiled anew", hint="make the decoys first")
    if model.options.level > 1:
        raise TracrError("level 2 removes or merges variables that no output reads", hint="compile with level=1")
    late = [name for name in model.options.passes or () if level_of(name) not in (0, 1)]
    if late:
        what = f"decoys are for models with the passes of level 0 or 1, and {late[0]} is on"
        raise TracrError(what, hint=f"compile without the pass {late[0]}")


def _listed(programs: Any) -> list[SOp]:
    """The s-ops of the decoys."""
    added = list(programs) if isinstance(programs, list | tuple) else [programs]
    if not added:
        raise TracrError("there is no decoy", hint="pass an s-op or a list of s-ops")
    for one in added:
        if not isinstance(one, SOp):
            raise TracrError(f"a decoy must be an s-op, not {short_repr(one)}", hint="pass an s-op or a list of s-ops")
    return added


def _check_decoy(program: Program, sop: SOp, number: int) -> None:
    """Refuse a decoy that the program computes itself, or that is constant."""
    name, node = short_repr(sop.name), program.sops[number]
    if number in drop_unused(program).sops:
        raise TracrError(f"the decoy {name} is computed by the program itself", hint="use another program as decoy")
    if isinstance(node.domain, Finite) and len(node.domain) == 1:
        raise TracrError(f"the decoy {name} is constant", hint="use a decoy with several values")


def _check_inputs(model: CompiledModel, made: CompiledModel) -> None:
    """Refuse decoys that restrict the lengths of inputs, or that may be undefined on some."""
    if made.program.lengths != model.program.lengths:
        shortest, longest = made.program.lengths
        raise TracrError(
            f"with the decoys, inputs must have {shortest} to {longest} tokens", hint="use decoys for the same lengths"
        )
    program = made.program
    for number in program.sops.keys() - drop_unused(program).sops.keys():
        if _may_raise(program, program.sops[number]):
            raise TracrError(
                f"{program.sops[number].source}, a part of a decoy, is not defined on all inputs",
                hint="use a decoy that is proved to be defined on all inputs",
            )


def _may_raise(program: Program, node: SOpNode) -> bool:
    """Whether one of the user's functions raises on some values, or equal values are assumed."""
    tables: list[NDArray[Any]] = [one.table for selector in node.op.selectors for one in program.literals(selector)]
    tables += [node.op.table] if isinstance(node.op, Lookup | PairLookup | Positions) else []
    assumed = isinstance(node.op, Aggregation) and node.op.assumed
    return bool(assumed) or any((table == ERROR).any() for table in tables)
