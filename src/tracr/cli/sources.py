"""Finds the program or model named by PROGRAM on the command line, and its input."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from tracr.cli.inputs import as_typed, read_tokens, read_vocabulary
from tracr.cli.textual import is_textual, read_module
from tracr.errors import InputError, TracrError
from tracr.spelling import did_you_mean
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ir.passes import Watch
    from tracr.model.designed import DesignedModel
    from tracr.natural.twin_model import TwinModel
    from tracr.rasp.programs import Example

__all__ = [
    "DEFAULT_LENGTH",
    "IN_CHECKPOINT",
    "ZOO",
    "Found",
    "GivenOptions",
    "compiled",
    "find",
    "input_of",
    "saved_twin",
    "some_tokens",
    "switches",
    "usual_input",
]

DEFAULT_LENGTH = 8
ZOO = "zoo:"  # before the name of a program of the zoo


@dataclass(frozen=True)
class GivenOptions:
    """The compile options given on the command line; `None` if not given."""

    vocab: str | None = None
    max_len: int | None = None
    level: int | None = None
    causal: bool | None = None
    strict: bool | None = None
    passes: Mapping[str, bool] | None = None
    solve: float | None = None
    max_memory: str | None = None
    dtype: str | None = None
    gap: float | None = None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        given = [f"--{name.replace('_', '-')}" for name, value in vars(self).items() if value is not None]
        switched = sorted({"--with" if on else "--without" for on in (self.passes or {}).values()})
        return [option for option in given if option != "--passes"] + switched


def switches(switched_on: Sequence[str] | None, switched_off: Sequence[str] | None) -> dict[str, bool] | None:
    """The switches of the optimiser set by --with and --without.

    >>> switches(["fold"], None), switches(None, None)
    ({'fold': True}, None)
    """
    both = sorted({*(switched_on or ())} & {*(switched_off or ())})
    if both:
        raise typer.BadParameter(f"{', '.join(both)} can be switched on or off, not both")
    chosen = {**dict.fromkeys(switched_on or (), True), **dict.fromkeys(switched_off or (), False)}
    return chosen or None


@dataclass(frozen=True)
class Found:
    """The program or the compiled model that PROGRAM names.

    `example` is the library entry, made for the vocabulary and length given; it knows which inputs are valid.
    `shown` is the default input of figures and pages. `causal`: whether the program is meant for causal attention.
    `level`: the one written with the program, as in zoo:NAME@level2.
    """

    name: str
    description: str = ""
    program: Any = None
    vocab: Sequence[Value] | None = None
    max_seq_len: int | None = None
    model: DesignedModel | None = None
    source: str = ""
    textual: bool = False
    example: Example | None = None
    shown: Sequence[Value] = ()
    causal: bool = False
    level: int | None = None

    @staticmethod
    def of(name: str, example: Example, source: str = "", causal: bool = False, level: int | None = None) -> Found:
        """A library entry as `Found`."""
        return Found(
            name,
            example.description,
            example.program,
            example.vocab,
            example.max_seq_len,
            source=source,
            example=example,
            shown=example.shown,
            causal=causal,
            level=level,
        )


NOTHING_CHOSEN = GivenOptions()
IN_CHECKPOINT = "the saved model in a GPT-2 checkpoint"


def find(
    program: str, name: str | None = None, choice: GivenOptions = NOTHING_CHOSEN, words: Sequence[str] = ()
) -> Found:
    """Find a .rasp file, a library program, `zoo:name`, `file.py:name` or a saved folder, tried in this order.

    `name` chooses an s-op of a .rasp file. The vocabulary and length are those of `choice`, else the program's own; a
    library program is made for them.
    """
    return _fitted(_located(program, name, choice, words), choice)


def _located(program: str, name: str | None, choice: GivenOptions, words: Sequence[str]) -> Found:
    from tracr import zoo
    from tracr.rasp.programs import EXAMPLES
    from tracr.zoo.spec import read_spec

    if is_textual(program):
        return _from_text(program, name, choice, words)
    if name is not None:
        raise typer.BadParameter(f"--name chooses an s-op of a .rasp file, and {program} is not one")
    if program in EXAMPLES:
        return Found.of(program, EXAMPLES[program])
    if program.startswith(ZOO):
        spec = read_spec(program)
        entry = zoo.get(spec.name)
        return Found.of(entry.name, entry.example, causal=entry.causal, level=spec.level)
    path, colon, name = program.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), name)
    if program.endswith(".py") and Path(program).is_file():
        names = [key for key, value in _execute(Path(program)).items() if _is_program(value)]
        choices = ", ".join(f"{program}:{key}" for key in names)
        raise InputError(f"which program of {program}?", hint=choices or "it defines none; assign an s-op to a name")
    if Path(program).is_dir():
        return _from_folder(program)
    raise _unknown(program)


def _from_folder(folder: str) -> Found:
    """A saved model."""
    import tracr
    from tracr.adapters.huggingface.checkpoint import is_checkpoint
    from tracr.model.running import RunnableModel

    model = tracr.load(folder)
    if not isinstance(model, RunnableModel):
        raise InputError(
            f"{folder} holds a twin, not a program",
            hint=f"use its teacher: {folder}/teacher; `tracr info {folder}` describes the twin",
        )
    # A compressed model itself refuses the methods it lacks.
    kind = IN_CHECKPOINT if is_checkpoint(Path(folder)) else "a saved model"
    return Found(Path(folder).name or folder, kind, model=cast("DesignedModel", model))


def saved_twin(program: str) -> TwinModel | None:
    """The twin of a folder, or `None` if it holds something else."""
    folder = Path(program)
    if not any((one / "twin.json").is_file() for one in (folder, folder / "twin")):
        return None
    import tracr
    from tracr.natural.twin_model import TwinModel

    model = tracr.load(folder)
    return model if isinstance(model, TwinModel) else None


def _unknown(program: str) -> InputError:
    """The error for a program that was not found."""
    from tracr import zoo
    from tracr.rasp.programs import EXAMPLES
    from tracr.zoo import aliases

    known = [*EXAMPLES, *(f"{ZOO}{name}" for name in zoo.ENTRIES if name not in EXAMPLES), *_nearby()]
    meant = aliases.find(program, zoo.ENTRIES)
    hint = did_you_mean(program, known, f"the library has {', '.join(EXAMPLES)}")
    return InputError(
        f"no program {program!r}: it is not in the library, not a .rasp file, not file.py:name and not the folder of a "
        "saved model",
        hint=f"the zoo has it: {ZOO}{meant}" if meant else hint,
    )


def _nearby() -> list[str]:
    """The programs and models in the current folder."""
    return [path.name for path in Path().iterdir() if path.suffix == ".rasp" or path.is_dir()]


def _fitted(found: Found, choice: GivenOptions) -> Found:
    """`found` with the vocabulary and length of `choice`."""
    if found.model is not None:
        return found
    vocab = found.vocab if choice.vocab is None else read_vocabulary(choice.vocab)
    length = choice.max_len or found.max_seq_len
    found = replace(found, vocab=vocab, max_seq_len=length)
    if found.example is None:
        return found
    example = found.example.made_for(vocab or (), length or DEFAULT_LENGTH)
    ahead = choice.causal and not example.backward
    seen = " (with --causal: computed from the position itself and those before)" if ahead else ""
    return replace(found, program=example.program, example=example, description=found.description + seen)


def compiled(
    found: Found, choice: GivenOptions, *, watch: Watch | None = None, check_each: bool = False
) -> DesignedModel:
    """The model of `found`, compiled with the options of `choice`, else the defaults; `watch` sees every pass."""
    import tracr
    from tracr.craft.numerics import GAP
    from tracr.ir.budget import DEFAULT

    if found.model is not None:
        if choice.given:
            raise typer.BadParameter(f"{found.name} is compiled already; leave out {', '.join(choice.given)}")
        return found.model
    if found.vocab is None:
        example = ', or `set example "..."` to the file' if found.textual else ""
        raise typer.BadParameter(
            f"{found.name} does not say which tokens its inputs have; add --vocab, such as --vocab abc{example}"
        )
    model = tracr.compile(
        found.program,
        found.vocab,
        found.max_seq_len or DEFAULT_LENGTH,
        causal=found.causal if choice.causal is None else choice.causal,
        level=_level(found, choice),
        strict=bool(choice.strict),
        passes={**(choice.passes or {}), **({} if choice.solve is None else {"solve": True})},
        solve_seconds=10.0 if choice.solve is None else choice.solve,
        watch=watch,
        check_each=check_each,
        max_memory=DEFAULT if choice.max_memory is None else choice.max_memory,
        dtype="float32" if choice.dtype is None else choice.dtype,
        gap=GAP if choice.gap is None else choice.gap,
    )
    return replace(model, source=found.source)


def _level(found: Found, choice: GivenOptions) -> int:
    """The level written with the program or given by --level; 1 if neither."""
    if None not in (found.level, choice.level) and found.level != choice.level:
        raise typer.BadParameter(f"{ZOO}{found.name}@level{found.level} has a level; leave out --level {choice.level}")
    levels = [level for level in (found.level, choice.level) if level is not None]
    return levels[0] if levels else 1


# Inputs


def some_tokens(words: Sequence[str] | None, program: str, found: Found, command: str) -> Sequence[str]:
    """The words of the input; refuses a missing input."""
    if words:
        return words
    such = f", such as `tracr {command} {program} {as_typed(found.shown, found.textual)}`" if found.shown else ""
    raise typer.BadParameter(f'which input? add its tokens{such}; "" is the empty input', param_hint="TOKENS")


def input_of(found: Found, words: Sequence[str], vocab: Sequence[Value], longest: int, one_word: bool = False) -> Any:
    """Read the input for a model of this vocabulary and length; `one_word` if it came from --input.

    Refuses an input that is too long, or one that the program's description excludes.
    """
    tokens = read_tokens(words, vocab, characters=found.textual or one_word)
    if len(tokens) > longest:
        add = "compile it again with" if found.model is not None else "add"
        raise InputError(
            f"the input has {len(tokens)} tokens, and {found.name} takes at most {longest}",
            hint=f"{add} --max-len {len(tokens)}",
        )
    if found.example is not None:
        found.example.check(tokens)
    return tokens


def usual_input(found: Found, vocab: Sequence[Value], longest: int) -> list[Value] | None:
    """The program's default input, or None if it does not fit this vocabulary and length."""
    fits = len(found.shown) <= longest and all(token in vocab for token in found.shown)
    return list(found.shown) if found.shown and fits else None


# Files


def _from_text(program: str, name: str | None, choice: GivenOptions, words: Sequence[str]) -> Found:
    """An s-op of a .rasp file. Its vocabulary is the one chosen, else the tokens of `set example` and of the input."""
    vocab = None if choice.vocab is None else read_vocabulary(choice.vocab)
    text = read_module(program, name, words, vocab, choice.max_len)
    value = text.module[text.name]
    if not _is_program(value):
        raise InputError(
            f"{text.name} is not an s-op, and only an s-op can be compiled", hint=f"{text.name} = {value!r}"
        )
    example = text.module.example or []
    return Found(
        text.name,
        program=value,
        vocab=vocab or list(dict.fromkeys([*example, *text.tokens])) or None,
        max_seq_len=max(len(example), len(text.tokens)) or None,
        source=text.module.source.text,
        textual=True,
        shown=example,
    )


def _from_file(path: Path, name: str) -> Found:
    defined = _execute(path)
    if name not in defined:
        names = [key for key, value in defined.items() if _is_program(value)]
        listed = f"its programs are {', '.join(names)}" if names else ""
        raise InputError(f"{path} defines no {name!r}", hint=did_you_mean(name, names, listed))
    value = defined[name]
    if callable(value) and not _is_program(value):
        try:
            value = value()
        except TypeError as error:
            raise InputError(
                f"{path}:{name}() cannot be called without arguments: {error}", hint="give its parameters defaults"
            ) from error
    if not _is_program(value):
        raise InputError(
            f"{path}:{name} is {value!r}, not a program",
            hint="name an s-op, a list or dict of s-ops, an Example, or a function without arguments that returns one",
        )
    source = path.read_text(encoding="utf-8", errors="replace")
    if hasattr(value, "parameters"):
        return Found(name, model=value)
    if hasattr(value, "program"):
        return Found.of(name, value, source)
    return Found(name, program=value, source=source)


def _execute(path: Path) -> dict[str, Any]:
    """The names a Python file defines."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="check the name")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except TracrError:
        raise
    except (Exception, SystemExit) as error:
        line = _line_of(error, path)
        raise InputError(
            f"{path}{line} failed: {type(error).__name__}: {error}", hint="correct the file: Python could not run it"
        ) from error
    finally:
        sys.path.pop(0)
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


def _line_of(error: BaseException, path: Path) -> str:
    """`:line` of the file where an error was raised."""
    line, trace = getattr(error, "lineno", None), error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""


def _is_program(value: object) -> bool:
    from tracr.model.running import RunnableModel
    from tracr.rasp.expressions import SOp
    from tracr.rasp.programs import Example

    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, SOp) for item in value)
    return isinstance(value, SOp | Example | RunnableModel)
