"""Reads a student's program: the text of a .rasp file, its path, an s-op, or a function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracr.errors import Diagnostic, ExpressionError, InputError, SourceError, TracrError
from tracr.rasp.attention import Selector
from tracr.rasp.elementwise import SOp
from tracr.spelling import did_you_mean
from tracr.text.module import Module
from tracr.text.places import Source
from tracr.text.runner import Runner, SessionSettings, read_file
from tracr.values import Value, short_repr

__all__ = ["Program", "StudentProgram", "read_program"]

Program = SOp | str | Path | Callable[[], SOp]


@dataclass(frozen=True)
class StudentProgram:
    """The s-op to check, and the warnings about its text."""

    sop: SOp
    warnings: tuple[str, ...] = ()


def read_program(program: Program, name: str, vocab: Sequence[Value], max_len: int) -> StudentProgram:
    """The s-op of a program; for a text the one called `name`, or the last one that a statement computes.

    A text cannot load files, and a file can load those of its folder. Errors show the line and the column.
    """
    if isinstance(program, str):
        return _from_text(Source(program.removeprefix("\ufeff")), (), name, vocab, max_len)
    if isinstance(program, Path):
        return _from_text(read_file(program), (program.parent,), name, vocab, max_len)
    if callable(program) and not isinstance(program, SOp):
        return StudentProgram(_as_sop(_called(program)))
    return StudentProgram(_as_sop(program))


def _called(function: Callable[[], SOp]) -> object:
    """What a student's function returns."""
    called = getattr(function, "__name__", "the function")
    try:
        return function()
    except TracrError:
        raise
    except Exception as error:
        trace, line = error.__traceback__, ""
        while trace is not None:
            line, trace = f" (line {trace.tb_lineno} of {Path(trace.tb_frame.f_code.co_filename).name})", trace.tb_next
        raise ExpressionError(
            f"{called}() failed: {type(error).__name__}: {error}{line}",
            hint="the function takes no arguments and returns an s-op",
        ) from error


def _as_sop(value: object, where: str = "the program") -> SOp:
    if isinstance(value, SOp):
        return value
    if isinstance(value, Selector):
        raise ExpressionError(
            f"{where} is a selector, and an answer has one value for each position",
            hint="read values through it with aggregate(selector, values), or count with selector_width(selector)",
        )
    raise ExpressionError(f"{where} is {short_repr(value)}, not an s-op", hint="an answer is an s-op such as tokens")


def _from_text(
    source: Source, folders: Sequence[Path], name: str, vocab: Sequence[Value], max_len: int
) -> StudentProgram:
    warnings: list[Diagnostic] = []
    runner = Runner(folders, SessionSettings.of(vocab, max_len), notify=warnings.append)
    for _ in runner.run(source):
        pass
    module = Module(source, runner, ())
    return StudentProgram(_chosen(module, name), tuple(map(str, warnings)))


def _chosen(module: Module, name: str) -> SOp:
    """The s-op of this name, or the last one."""
    if name:
        if name not in module:
            raise InputError(
                f"the program defines no {name}",
                hint=did_you_mean(name, module, f"it defines {', '.join(module) or 'nothing'}"),
            )
        return _as_sop(module[name], name)
    last = module.out if isinstance(module.out, SOp) else next(reversed(module.programs.values()), None)
    if last is not None:
        return last
    if module.out is not None:
        return _as_sop(module.out, "the last value")
    raise SourceError("the program defines no s-op", hint="assign one to a name: answer = indices + 1;")
