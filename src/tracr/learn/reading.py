"""Reads a student's program: the text of a .rasp file, its path, an s-op, or a function that makes one."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracr.errors import Diagnostic, ExpressionError, InputError, SourceError, TracrError
from tracr.rasp.attention import Selector
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import SOp
from tracr.spelling import did_you_mean
from tracr.text.module import Module
from tracr.text.places import Source
from tracr.text.runner import Runner, SessionSettings, read_file
from tracr.values import short_repr

__all__ = ["Program", "StudentProgram", "read_program"]

Program = SOp | str | Path | Callable[[], SOp]


@dataclass(frozen=True)
class StudentProgram:
    """The s-op to check, and the warnings about its text."""

    sop: SOp
    warnings: tuple[str, ...] = ()


def read_program(program: Program, name: str) -> StudentProgram:
    """The s-op of a program; for a text the one called `name`, or the last one that a statement computes.

    The definitions of a text are not run on its example here: the check runs them on all inputs. A text cannot load
    files, and a file can load others. Errors show the line and the column.
    """
    if isinstance(program, str):
        if program.endswith(".rasp") and "\n" not in program:
            raise SourceError(f"{program} is the name of a file, not a program", hint=f'pass Path("{program}")')
        return _from_text(Source(program.removeprefix("\ufeff")), (), name)
    if isinstance(program, Path):
        return _from_text(read_file(program), (program.parent,), name)
    made = _called(program) if callable(program) and not isinstance(program, RASPExpr) else program
    return StudentProgram(_as_sop(made))


def _called(function: Callable[[], SOp]) -> object:
    """What a student's function returns."""
    called = getattr(function, "__name__", "the function")
    try:
        return function()
    except TracrError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is this function
        place = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
        raise ExpressionError(
            f"{called}() failed: {type(error).__name__}: {error}{place}",
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


def _from_text(source: Source, folders: Sequence[Path], name: str) -> StudentProgram:
    warnings: list[Diagnostic] = []
    runner = Runner(folders, SessionSettings(sop_examples=False, selector_examples=False), notify=warnings.append)
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
