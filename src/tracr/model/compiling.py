"""Compile a program and make a model of it: `tracr.compile`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from tracr.arguments import flag
from tracr.compiler.pipeline import compile_program
from tracr.errors import CompileError, ExpressionError, PrecisionError
from tracr.ir.budget import as_bytes
from tracr.ir.graph import unique_labels
from tracr.ir.options import Options, as_vocabulary
from tracr.ir.passes import Pass, Watch
from tracr.ir.switches import Switches
from tracr.model.compiled import CompiledModel
from tracr.model.format_check import check_format
from tracr.rasp.expressions import SOp
from tracr.values import Value, comparing_values, short_repr

__all__ = ["compile", "compile_model"]

FEW = 16  # about how many inputs are drawn for that; those of three lengths are checked


def compile_model(outputs: Mapping[str, SOp], options: Options, watch: Watch | None = None) -> CompiledModel:
    """The model of some outputs; `watch` is called after every pass, with the pass and its result."""
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
    dtype: str = "float32",
    verify: bool = False,
    watch: Watch | None = None,
    check_each: bool = False,
) -> CompiledModel:
    """Compile a RASP program into a transformer.

    Args:
        program: an s-op; or several (a list, or a dict from names to s-ops), compiled into one model with shared parts.
        vocab: the tokens of the inputs: a string, a list or a set.
        max_seq_len: the length of the longest input, BOS not counted.
        causal: let each position attend only to itself and earlier positions; `rasp.causal_eval` is the reference.
        level: 0 keeps the paper's structure (one operation, one component, a direction `one`); 1 also shares equal
            sub-expressions, merges heads and drops unused operations; 2 searches for the smallest model, in which some
            variables of the program may have no directions of their own.
        bos: the name of the beginning-of-sequence token. The model adds this token itself.
        pad: the name of the padding token.
        strict: raise an error instead of giving a warning or recording an assumption.
        max_values: the largest number of different values of a mean that a nonlinear operation reads.
        max_cells: the largest number of calls of a user's function for one table.
        max_parameters: the largest number of parameters of the model.
        gap: the distance between the attention logits of selected and other keys. A smaller gap softens the attention,
            for studies of training. The error bounds include the attention on other keys; a program whose output could
            become wrong is refused.
        passes: switches for single passes and options, such as {"fold": False}; or the list of all passes and options
            to use, instead of the level's. `tracr.PASSES` and `tracr.OPTIONS` describe each.
        solve_seconds: the time limit of the solver for the best schedule, with passes={"solve": True}. The solver
            counts its steps instead of seconds; therefore the result is the same on every machine.
        max_memory: the memory limit of the compiler, by its own estimate, in bytes or as "2GB"; Python, numpy and
            tables of a fixed size take about 256 MB more. A program that would need more is refused before the memory
            is used.
        dtype: the number format of weights and activations: "float32", or "bfloat16" or "float16" with sums in float32.
            For the short formats other constructions are used, and the model is larger. A program that needs more bits
            is refused. The model is also right in float32 and float64.
        verify: compare the model with the program (`CompiledModel.verify`) before returning it.
        watch: a function that is called after every pass, with the pass and its result (which has `show()`).
        check_each: after every pass, check the invariants of its result, and check on a sample of inputs that the
            program's outputs are unchanged. The error names the first wrong pass.
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
        dtype=dtype,
    )
    model = compile_model(outputs, options, _checking(outputs, options, watch) if check_each else watch)
    if options.format.short:
        _check_short(model)
    if verify:
        found = model.verify()
        if not found:
            raise CompileError(f"the compiled model is wrong: {found}", hint="this is a bug in tracr: please report it")
    return model


def _check_short(model: CompiledModel) -> None:
    """Refuse a model for a short format whose error bounds, on a few inputs, do not prove its answers."""
    shortest, longest = model.program.lengths
    lengths = (shortest, (shortest + longest) // 2, longest)
    found = check_format(model, model.options.dtype, FEW, lengths=lengths)
    if not found:
        raise PrecisionError(f"the compiled model is not proved to be right in {found}", hint="use float32")


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
    """A watch that calls `watch` and then checks the result of the pass."""
    from tracr.model.check_passes import PassChecker  # imported only when used

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
