"""Compile a program and make a model of it: `tracr.compile`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from tracr.arguments import flag
from tracr.compiler.pipeline import compile_program
from tracr.errors import CompileError, ExpressionError
from tracr.ir.budget import as_bytes
from tracr.ir.graph import unique_labels
from tracr.ir.options import Options, as_vocabulary
from tracr.ir.passes import Pass, Watch
from tracr.ir.switches import Switches
from tracr.model.compiled import CompiledModel
from tracr.rasp.expressions import SOp
from tracr.values import Value, comparing_values, short_repr

__all__ = ["compile", "compile_model"]


def compile_model(outputs: Mapping[str, SOp], options: Options, watch: Watch | None = None) -> CompiledModel:
    """The model of some outputs; `watch` sees every pass and what it made."""
    return CompiledModel(compile_program(outputs, options, watch))


@comparing_values()
def compile(
    program: SOp | Sequence[SOp] | Mapping[str, SOp],
    vocab: Iterable[Value],
    max_seq_len: int,
    causal: bool = False,
    level: int = 1,
    *,
    bos: Value = "bos",
    pad: Value = "pad",
    strict: bool = False,
    max_values: int = 300_000,
    max_cells: int = 3_000_000,
    max_parameters: int = 250_000_000,
    gap: float = 256.0,
    passes: Switches = None,
    solve_seconds: float = 10.0,
    max_memory: int | str = "2GB",
    verify: bool = False,
    watch: Watch | None = None,
    check_each: bool = False,
) -> CompiledModel:
    """Compile a RASP program into a transformer.

    Args:
        program: an s-op; or several (a list, or a dict from names), which then share their work.
        vocab: the tokens inputs are made of: a string, a list or a set.
        max_seq_len: the longest input, BOS not counted.
        causal: mask attention to earlier positions; the program means what `rasp.causal_eval` says.
        level: 0 keeps the paper's structure (one operation, one component, a direction `one`); 1 also shares equal
            sub-expressions, merges heads and drops what nothing reads; 2 looks for the smallest model, in which not
            every variable of the program has directions of its own.
        bos: name of the beginning-of-sequence token, which the model adds by itself.
        pad: name of the padding token.
        strict: refuse whatever would otherwise be a warning or a recorded assumption.
        max_values: how many different numbers a mean may take where a nonlinear operation reads it.
        max_cells: how many calls of a user's function one table may take.
        max_parameters: the largest model to build.
        gap: how far below selected keys the attention logits of the others are. A smaller one softens the attention,
            for studies of training; the attention that leaks is part of the error bounds, so a program it would make
            wrong is refused.
        passes: single passes and options switched on or off, as {"fold": False}; or the list of those that are to be on
            instead of the level's. `tracr.PASSES` and `tracr.OPTIONS` say what each does.
        solve_seconds: how long the solver may look for the best schedule, with passes={"solve": True}: about seconds,
            but counted in its steps, so that the result is the same on every machine.
        max_memory: the memory that compiling may take, by its own estimate, in bytes or as "2GB"; about 256 MB more go
            to Python, numpy and tables of a fixed size. What would need more is refused before it is made.
        verify: compare the model with the program (`CompiledModel.verify`) before returning it.
        watch: a function that is called after every pass, with the pass and the value it made (which has `show()`).
        check_each: after every pass, check the invariants of its value, and on a sample of inputs that the program
            still computes the same; the first pass that is wrong is named.
    """
    outputs = _outputs(program)
    if watch is not None and not _takes_two(watch):
        what = f"watch must be a function of a pass and a value, not {short_repr(watch)}"
        raise CompileError(what, hint="watch=lambda one, value: print(one.name)")
    flag("verify", verify, error=CompileError)
    flag("check_each", check_each, error=CompileError)
    options = Options(
        as_vocabulary(vocab, max_memory),
        max_seq_len,
        causal,
        level,
        bos,
        pad,
        strict,
        max_values,
        max_cells,
        max_parameters,
        gap,
        passes,
        solve_seconds,
        max_memory=as_bytes(max_memory),
    )
    model = compile_model(outputs, options, _checking(outputs, options, watch) if check_each else watch)
    if verify:
        found = model.verify()
        if not found:
            raise CompileError(f"the compiled model is wrong: {found}", hint="this is a bug in tracr: please report it")
    return model


def _takes_two(function: object) -> bool:
    """Whether an object can be called with two arguments, as far as its signature says."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a built-in without a signature
        return True
    return True


def _checking(outputs: Mapping[str, SOp], options: Options, watch: Watch | None) -> Watch:
    """A watch that checks every pass, after `watch` saw it."""
    from tracr.model.check_passes import PassChecker  # only who checks needs it

    check = PassChecker(outputs, options)

    def both(one: Pass, value: object) -> None:
        if watch is not None:
            watch(one, value)
        check(one, value)

    return both


def _outputs(program: SOp | Sequence[SOp] | Mapping[str, SOp]) -> dict[str, SOp]:
    """The outputs by name."""
    if isinstance(program, Mapping):
        strange = [name for name in program if not isinstance(name, str)]
        if strange:
            what = f"the name of an output must be a string, not {short_repr(strange[0])}"
            raise ExpressionError(what, hint='write {"first": sop, "second": other}')
        outputs = dict(program)
    elif isinstance(program, list | tuple):
        names = unique_labels([getattr(sop, "name", "output") for sop in program])
        outputs = dict(zip(names, program, strict=True))
    else:
        outputs = {getattr(program, "name", "output"): cast(SOp, program)}
    if not outputs:
        raise ExpressionError("there is no program to compile", hint="pass an s-op, or a list or dict of s-ops")
    return outputs
