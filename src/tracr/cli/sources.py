"""What is typed on the command line: which program is meant, which vocabulary, which tokens."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tracr.cli.textual import is_textual, module_and_name, read_input, usual_vocabulary
from tracr.errors import InputError, TracrError
from tracr.rasp.values import Value

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Choice", "Found", "compiled", "find", "read_tokens", "read_vocabulary", "switches"]

DEFAULT_LENGTH = 8


@dataclass(frozen=True)
class Choice:
    """The options of a compilation, `None` where they were not given."""

    vocab: str | None = None
    max_len: int | None = None
    level: int | None = None
    causal: bool | None = None
    strict: bool | None = None
    passes: Mapping[str, bool] | None = None
    solve: float | None = None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        given = [f"--{name.replace('_', '-')}" for name, value in vars(self).items() if value is not None]
        switched = sorted({"--with" if on else "--without" for on in (self.passes or {}).values()})
        return [option for option in given if option != "--passes"] + switched


def switches(switched_on: Sequence[str] | None, switched_off: Sequence[str] | None) -> dict[str, bool] | None:
    """The passes of the optimiser named after --with and --without.

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
    """What PROGRAM stands for: something to compile, or a model that is compiled already."""

    name: str
    description: str = ""
    program: Any = None
    vocab: Sequence[Value] | None = None
    max_seq_len: int | None = None
    model: CompiledModel | None = None
    source: str = ""
    textual: bool = False


def find(program: str, name: str | None = None, choice: Choice | None = None, words: Sequence[str] = ()) -> Found:
    """A .rasp file, a program of the library, `file.py:name`, or a saved folder, in this order.

    `name` chooses among the s-ops of a .rasp file; what it computes is checked for the chosen vocabulary.
    """
    from tracr.rasp.programs import EXAMPLES

    if is_textual(program):
        return _from_text(program, name, choice or Choice(), words)
    if name is not None:
        raise typer.BadParameter(f"--name chooses an s-op of a .rasp file, and {program} is none")
    if program in EXAMPLES:
        example = EXAMPLES[program]
        return Found(program, example.description, example.program, example.vocab, example.max_seq_len)
    path, colon, name = program.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), name)
    if program.endswith(".py") and Path(program).is_file():
        names = [key for key, value in _execute(Path(program)).items() if _is_program(value)]
        choices = ", ".join(f"{program}:{key}" for key in names)
        raise InputError(f"which program of {program}?", hint=choices or "it defines none; assign an s-op to a name")
    if Path(program).is_dir():
        import tracr

        return Found(Path(program).name or program, "a saved model", model=tracr.load(program))
    raise InputError(
        f"no program {program!r}: it is not in the library, not a .rasp file, not file.py:name and not the folder of a "
        "saved model",
        hint=f"the library has {', '.join(EXAMPLES)}",
    )


def compiled(found: Found, choice: Choice) -> CompiledModel:
    """The model of what was found, compiled as chosen, else as is usual for it."""
    import tracr

    if found.model is not None:
        if choice.given:
            raise typer.BadParameter(f"{found.name} is compiled already; leave out {', '.join(choice.given)}")
        return found.model
    vocab = found.vocab if choice.vocab is None else read_vocabulary(choice.vocab)
    if vocab is None:
        example = ', or `set example "..."` to the file' if found.textual else ""
        raise typer.BadParameter(
            f"{found.name} says nothing about its tokens; add --vocab, such as --vocab abc{example}"
        )
    model = tracr.compile(
        found.program,
        vocab,
        choice.max_len or found.max_seq_len or DEFAULT_LENGTH,
        causal=bool(choice.causal),
        level=1 if choice.level is None else choice.level,
        strict=bool(choice.strict),
        passes={**(choice.passes or {}), **({} if choice.solve is None else {"solve": True})},
        solve_seconds=10.0 if choice.solve is None else choice.solve,
    )
    return replace(model, source=found.source)


# Files


def _from_text(program: str, name: str | None, choice: Choice, words: Sequence[str]) -> Found:
    vocab = None if choice.vocab is None else read_vocabulary(choice.vocab)
    module, chosen = module_and_name(program, name, vocab or read_input(words, ()) or None, choice.max_len)
    usual, longest = usual_vocabulary(module, words)
    value = module[chosen]
    if not _is_program(value):
        raise InputError(f"{chosen} is no s-op, and only an s-op can be compiled", hint=f"{chosen} = {value!r}")
    return Found(chosen, program=value, vocab=usual, max_seq_len=longest, source=module.source.text, textual=True)


def _from_file(path: Path, name: str) -> Found:
    defined = _execute(path)
    if name not in defined:
        names = [key for key, value in defined.items() if _is_program(value)]
        raise InputError(f"{path} defines no {name!r}", hint=f"its programs are {', '.join(names)}" if names else "")
    value = defined[name]
    if callable(value) and not _is_program(value):
        try:
            value = value()
        except TypeError as error:
            raise InputError(f"{path}:{name}() cannot be called without arguments: {error}") from error
    if not _is_program(value):
        raise InputError(
            f"{path}:{name} is {value!r}, not a program",
            hint="name an s-op, a list or dict of them, an Example, or a function without arguments that makes one",
        )
    source = path.read_text(encoding="utf-8", errors="replace")
    if hasattr(value, "program"):
        return Found(name, value.description, value.program, value.vocab, value.max_seq_len, source=source)
    if hasattr(value, "parameters"):
        return Found(name, model=value)
    return Found(name, program=value, source=source)


def _execute(path: Path) -> dict[str, Any]:
    """The names a Python file defines."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
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
        raise InputError(f"{path}{line} failed: {type(error).__name__}: {error}") from error
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
    from tracr.model.compiled import CompiledModel
    from tracr.rasp.expressions import SOp
    from tracr.rasp.programs import Example

    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, SOp) for item in value)
    return isinstance(value, SOp | Example | CompiledModel)


# Words


def read_vocabulary(text: str) -> list[Value]:
    """A vocabulary typed as a JSON list, as comma separated tokens (numbers where they look so) or as characters.

    >>> read_vocabulary("abc"), read_vocabulary("1,2,x"), read_vocabulary('["1", 1, ["a", true]]')
    (['a', 'b', 'c'], [1, 2, 'x'], ['1', 1, ('a', True)])
    """
    if text.startswith("[") and text.endswith("]") and len(text) > 2:
        try:
            return [_as_token(item) for item in json.loads(text)]
        except ValueError as error:
            if '"' in text or "," in text:
                raise typer.BadParameter(f"{text!r} is not a JSON list: {error}") from None
    if "," in text and len(text) > 1:
        words = [word.strip() for word in text.split(",")]
        if not all(words):
            raise typer.BadParameter(f'{text!r} has an empty token; a comma is written in JSON: ["a", ","]')
        return [_number_or_word(word) for word in words]
    return list(text)


def _as_token(item: object) -> Value:
    if isinstance(item, dict):
        raise typer.BadParameter(f"{json.dumps(item)} cannot be a token")
    return tuple(map(_as_token, item)) if isinstance(item, list) else item


def _number_or_word(word: str) -> Value:
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word


def read_tokens(words: Sequence[str], vocab: Sequence[Value], textual: bool = False) -> list[Value]:
    """Words typed on the command line as tokens: `3` is the number 3 if that is in the vocabulary and "3" is not.

    For a .rasp program one word may also stand for its characters.

    >>> read_tokens(["3", "a"], [3, "a"]), read_tokens(["3a"], [3, "a"], textual=True)
    ([3, 'a'], [3, 'a'])
    """
    if textual:
        words = [str(token) for token in read_input(words, list(map(str, vocab)))]
    by_text: dict[str, list[Value]] = {}
    for token in vocab:
        by_text.setdefault(str(token), []).append(token)
    tokens = []
    for position, word in enumerate(words):
        meant = by_text.get(word, [])
        if len(meant) > 1:
            raise InputError(f"{word!r} could be any of {meant!r}", hint="the vocabulary has tokens that print alike")
        if not meant:
            raise _unknown(word, position, by_text)
        tokens.append(meant[0])
    return tokens


def _unknown(word: str, position: int, by_text: Mapping[str, object]) -> Exception:
    if word.startswith("-") and len(word) > 1:
        return typer.BadParameter(f"{word} is neither an option nor a token of the vocabulary")
    if len(word) > 1 and all(character in by_text for character in word):
        hint = f"put spaces between tokens: {' '.join(word)}"
    else:
        shown = list(by_text)
        hint = f"the vocabulary is {' '.join(shown[:20])}" + (f" ... ({len(shown)} tokens)" if len(shown) > 20 else "")
    return InputError(f"token {word!r} at position {position} is not in the vocabulary", hint=hint)
