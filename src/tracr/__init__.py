"""Tracr: compile RASP programs into the weights of transformers.

>>> import tracr
>>> from tracr.rasp import rasp
>>> is_x = (rasp.tokens == "x").named("is_x")
>>> prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
>>> frac_prevs = rasp.Aggregate(prevs, is_x).named("frac_prevs")
>>> model = tracr.compile(frac_prevs, vocab="abcx", max_seq_len=5)
>>> model("xacx")
[1.0, 0.5, 0.3333333333333333, 0.5]
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tracr.arguments import flag, path, whole
from tracr.compiler.budget import as_bytes
from tracr.compiler.options import Options, as_vocabulary
from tracr.compiler.passes import PASSES, Switches
from tracr.compiler.pipeline import compile_program
from tracr.compiler.trace import unique_labels
from tracr.errors import (
    CompileError,
    EvaluationError,
    ExpressionError,
    FormatError,
    FunctionError,
    InputError,
    LimitError,
    MissingExtra,
    PrecisionError,
    SourceError,
    TracrError,
    TracrWarning,
    VocabularyError,
)
from tracr.extras import need
from tracr.model.compiled import CompiledModel, Run
from tracr.rasp import rasp
from tracr.rasp.expressions import SOp
from tracr.rasp.values import Value, comparing_values, short_repr

__all__ = [
    "PASSES",
    "CompileError",
    "CompiledModel",
    "CompressedModel",
    "EvaluationError",
    "ExpressionError",
    "FormatError",
    "FunctionError",
    "InputError",
    "LimitError",
    "MissingExtra",
    "PrecisionError",
    "Run",
    "SourceError",
    "TracrError",
    "TracrWarning",
    "VocabularyError",
    "compile",
    "compress",
    "draw",
    "load",
    "natural",
    "parse",
    "parse_file",
    "random_program",
    "rasp",
    "superpose",
    "to_rasp",
]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tracr import natural
    from tracr.compress import CompressedModel, compress, superpose
    from tracr.datasets.controls import random_program
    from tracr.natural import TwinModel
    from tracr.rasp.drawing import draw
    from tracr.rasp.text.module import parse, parse_file
    from tracr.rasp.text.printer import to_rasp
else:
    LAZY = {
        "CompressedModel": "tracr.compress",
        "draw": "tracr.rasp.drawing",
        "parse": "tracr.rasp.text.module",
        "parse_file": "tracr.rasp.text.module",
        "random_program": "tracr.datasets.controls",
        "superpose": "tracr.compress",
        "to_rasp": "tracr.rasp.text.printer",
    }

    def __getattr__(name: str) -> Any:
        """What is loaded only when it is asked for."""
        if name in ("compress", "natural"):
            return importlib.import_module(f"tracr.{name}")  # packages; `compress` can be called
        if name in LAZY:
            return getattr(importlib.import_module(LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
        passes: single optimisations switched on or off, as {"fold": False}; or the list of those that are to be on
            instead of the level's. `tracr.PASSES` says what each does.
        solve_seconds: how long the solver may look for the best schedule, with passes={"solve": True}: about seconds,
            but counted in its steps, so that the result is the same on every machine.
        max_memory: the memory that compiling may take, by its own estimate, in bytes or as "2GB"; about 256 MB more go
            to Python, numpy and tables of a fixed size. What would need more is refused before it is made.
        verify: compare the model with the program (`CompiledModel.verify`) before returning it.
    """
    outputs = _outputs(program)
    flag("verify", verify, error=CompileError)
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
    model = compile_program(outputs, options)
    if verify:
        found = model.verify()
        if not found:
            raise CompileError(f"the compiled model is wrong: {found}", hint="this is a bug in tracr: please report it")
    return model


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


def load(
    folder: str | Path, *, recompile: bool = False, max_parameters: int = 250_000_000
) -> CompiledModel | TwinModel:
    """The model that `model.save(folder)` or `model.to_onnx(path)` wrote.

    Args:
        folder: where it is: a folder, or an .onnx file.
        recompile: compile the saved tabulated program anew instead of taking the saved weights: for a folder that
            another version of the compiler wrote.
        max_parameters: the largest model to load.

    A compressed model comes back as one, and so does a twin (`tracr.natural`).

    Whatever is damaged, tampered with or of another format version is refused with a `FormatError`; no code is run.
    """
    need("safetensors")  # only who loads needs it
    from tracr.model.saving import models

    folder = path("folder", folder, error=FormatError)
    flag("recompile", recompile, error=FormatError)
    max_parameters = whole("max_parameters", max_parameters, 1, error=FormatError)
    if os.path.isfile(folder / "compression.json"):
        from tracr.compress import saving

        return saving.load(folder, max_parameters=max_parameters)
    if os.path.isfile(folder / "twin.json"):
        from tracr.natural import saving as twins

        return twins.load(folder, max_parameters=max_parameters)
    return models.load(folder, recompile=recompile, max_parameters=max_parameters)
