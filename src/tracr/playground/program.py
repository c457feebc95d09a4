"""Reads and compiles the program of a request, with the limits of the playground."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import tracr
from tracr.errors import Diagnostic, InputError, LimitError, TracrWarning, VocabularyError
from tracr.ir.passes import Watch
from tracr.playground.limits import ServerLimits
from tracr.playground.requests import DEFAULT_LENGTH, LONGEST, ProgramRequest
from tracr.rasp.expressions import SOp
from tracr.spelling import did_you_mean
from tracr.text.module import Module
from tracr.values import Value

__all__ = ["ReadProgram", "compiled", "read_program"]

MOST_PARAMETERS = 2_000_000
MOST_VALUES = 100_000
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class ReadProgram:
    """An s-op of a text, and what it is compiled for.

    `names` are those of all its s-ops. `shown` is the input to run it on; `None` if the explorer is to choose one.
    """

    name: str
    program: SOp
    names: tuple[str, ...]
    source: str
    vocab: tuple[Value, ...]
    max_len: int
    shown: tuple[Value, ...] | None
    warnings: tuple[Diagnostic, ...]


def read_program(request: ProgramRequest) -> ReadProgram:
    """Read the text, and find the s-op, the vocabulary and the input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)  # the module has them
        module = tracr.parse(request.source, vocab=request.vocab, max_seq_len=request.max_len, folder=None)
    name, program = _chosen(module, request.name)
    example: tuple[Value, ...] = tuple(module.example or ())
    vocab: tuple[Value, ...] = request.vocab or tuple(dict.fromkeys(example))
    if not vocab:
        raise VocabularyError(
            "the program does not say which tokens its inputs have",
            hint='give a vocabulary, or write set example "..." in the program',
        )
    max_len = request.max_len or min(LONGEST, max(len(example), DEFAULT_LENGTH))
    shown: tuple[Value, ...] | None = request.input
    if shown is None and example and len(example) <= max_len and set(example) <= set(vocab):
        shown = example
    if shown is not None and len(shown) > max_len:
        raise InputError(f"the input has {len(shown)} tokens, and the longest length is {max_len}", hint="shorten it")
    return ReadProgram(name, program, tuple(module.programs), request.source, vocab, max_len, shown, module.warnings)


def _chosen(module: Module, name: str) -> tuple[str, SOp]:
    """The s-op of this name; without a name the last one."""
    programs = module.programs
    if not name:
        name = next(reversed(programs), "out")
        if name not in programs and not isinstance(module.out, SOp):
            raise InputError("the program defines no s-op", hint="assign one to a name: y = indices + 1;")
    value: Any = module.out if name == "out" and name not in module else module.get(name)
    if not isinstance(value, SOp):
        what = "is not an s-op" if name in module else "is not defined"
        raise InputError(f"{name} {what}", hint=did_you_mean(name, programs, f"the s-ops are {', '.join(programs)}"))
    return name, value


def compiled(
    found: ReadProgram, level: int, causal: bool, limits: ServerLimits, watch: Watch | None = None
) -> tracr.CompiledModel:
    """The model of a program."""
    try:
        model = tracr.compile(
            found.program,
            found.vocab,
            found.max_len,
            causal=causal,
            level=level,
            bos=_unused("bos", found.vocab),
            pad=_unused("pad", found.vocab),
            max_values=MOST_VALUES,
            max_cells=MOST_CELLS,
            max_parameters=MOST_PARAMETERS,
            max_memory=limits.memory // 2,
            watch=watch,
        )
    except LimitError as error:
        error.hint_at("use a smaller vocabulary or a shorter length: the limits of the playground are low")
        raise
    return replace(model, source=found.source)


def _unused(name: str, vocab: tuple[Value, ...]) -> str:
    """A name for BOS or PAD that is not a token.

    >>> _unused("bos", ("a", "bos"))
    '<bos>'
    """
    while name in vocab:
        name = f"<{name}>"
    return name
