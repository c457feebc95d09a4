"""Runs the statements at the top of a text: definitions checked on the running example, files loaded, drawings made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracr.arguments import as_list, whole
from tracr.errors import (
    Diagnostic,
    EvaluationError,
    InputError,
    MissingSource,
    SourceError,
    TracrWarning,
    VocabularyError,
)
from tracr.rasp.attention import Selector
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import SOp
from tracr.rasp.interpreter import DefaultRASPEvaluator
from tracr.rasp.traversal import topological
from tracr.text import syntax
from tracr.text.evaluator import Evaluator, room_to_recurse, sequence_of
from tracr.text.library import CONSTANTS, library
from tracr.text.parser import read
from tracr.text.places import Source, Span
from tracr.text.scope import NOTHING, Allowance, Scope
from tracr.text.traps import traps
from tracr.text.values import describe, literal
from tracr.text.walk import assigned
from tracr.values import Value, as_value

__all__ = ["Event", "Runner", "SessionSettings"]

EXAMPLE = "hello"
EXAMPLE_LENGTH = 10  # of an example made from a vocabulary
HINTS: dict[type[Exception], str] = {
    TypeError: "strings and numbers do not go together here; tokens_int and tokens_float read the tokens as numbers",
    ZeroDivisionError: "if ... else computes both sides at every position: divide by a value that is never 0",
}
OTHER_HINT = (
    'choose another example with set example "..." (or declare the vocabulary); `examples off` skips this check'
)
MOST_FILES = 100


@dataclass
class SessionSettings:
    """The settings that interactive statements change."""

    sop_example: Any = EXAMPLE
    selector_example: Any = EXAMPLE
    sop_examples: bool = True
    selector_examples: bool = True
    full_display: bool = False
    chosen: bool = False
    """Whether the example was set; false for the default example."""

    @staticmethod
    def of(vocab: Iterable[Value], max_seq_len: int | None) -> SessionSettings:
        """Settings with an example made from a vocabulary: its first tokens that are all strings, or all not.

        >>> SessionSettings.of([1, "a", 2, "b"], 8).statements
        'set example [1, 2]\\n'
        """
        known = [as_value(token, where="a token") for token in as_list("vocab", vocab, error=VocabularyError)]
        longest = EXAMPLE_LENGTH if max_seq_len is None else whole("max_seq_len", max_seq_len, 1, error=SourceError)
        if not known:
            return SessionSettings()
        alike = [token for token in known if isinstance(token, str) == isinstance(known[0], str)]
        example = alike[: min(longest, EXAMPLE_LENGTH)]
        characters = all(isinstance(token, str) and len(token) == 1 for token in example)
        given = "".join(map(str, example)) if characters else example
        return SessionSettings(given, given)

    @property
    def statements(self) -> str:
        """The statements that set the examples; empty for the default example, unless it was set."""
        if self.sop_example == self.selector_example:
            usual = self.sop_example == EXAMPLE and not self.chosen
            return "" if usual else f"set example {literal(self.sop_example)}\n"
        return f"set s-op example {literal(self.sop_example)}\nset selector example {literal(self.selector_example)}\n"

    def example(self, value: object) -> Any:
        """The running example for an s-op or a selector."""
        return self.selector_example if isinstance(value, Selector) else self.sop_example

    def on(self, value: object) -> bool:
        """Whether definitions of this kind are run on their example."""
        return self.selector_examples if isinstance(value, Selector) else self.sop_examples


@dataclass(frozen=True)
class Event:
    """A result of a statement to report: a value (with its name), an example or a drawing."""

    what: str
    value: Any = None
    name: str = ""


@dataclass
class Files:
    """The files being loaded, and those already loaded."""

    folders: tuple[Path, ...]
    open: tuple[Path, ...] = ()
    loaded: dict[Path, dict[str, Any]] = field(default_factory=dict)


class Runner:
    """Runs texts one after the other in the same scope."""

    def __init__(
        self,
        folders: Sequence[Path] = (),
        settings: SessionSettings | None = None,
        *,
        files: Files | None = None,
        budget: Allowance | None = None,
        notify: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        self.settings = settings or SessionSettings()
        self.files = files or Files(tuple(folders))
        self.budget = budget or Allowance()
        self.scope = Scope({})
        self.warnings: list[Diagnostic] = []
        self._notify = notify or _warn
        self._checked: dict[tuple[Value, ...], dict[RASPExpr, Any]] = {}

    @property
    def names(self) -> dict[str, Any]:
        """The defined names and their values."""
        return self.scope.own

    @property
    def out(self) -> Any:
        """The last value, `None` if there is none."""
        return None if self.scope.out is NOTHING else self.scope.out

    def run(self, source: Source) -> Iterable[Event]:
        """Run a text, statement by statement, and yield the events of each."""
        for statement in read(source):
            if isinstance(statement, syntax.Leave):
                return
            yield from self.step(source, statement)

    def step(self, source: Source, statement: syntax.Statement) -> list[Event]:
        """Run one statement."""
        for found in traps(source, statement):
            self.warnings.append(found)
            self._notify(found)
        evaluator = self.evaluator(source)
        self.budget.depth = 0
        with room_to_recurse():
            match statement:
                case syntax.Expression():
                    value = evaluator.value(statement.value)
                    self.check(value, source, statement.span)
                    self.scope.out = value
                    return [Event("value", value)]
                case syntax.Assign():
                    return self.assign(source, statement, evaluator)
                case syntax.Loop():
                    evaluator.run(statement)
                    for name in assigned(statement):
                        self.check(self.names.get(name), source, statement.span)
                    return []
                case syntax.Load():
                    self.load(source, statement, evaluator)
                    return []
                case syntax.Draw():
                    return [Event("draw", self.drawn(statement, evaluator))]
                case syntax.SetExample():
                    self.set_example(statement, evaluator)
                    return []
                case syntax.ShowExample():
                    return [Event("example", name=statement.kind)]
                case syntax.Examples():
                    if statement.kind != "selector":
                        self.settings.sop_examples = statement.on
                    if statement.kind != "s-op":
                        self.settings.selector_examples = statement.on
                    return []
                case syntax.FullDisplay():
                    self.settings.full_display = statement.on
                    return []
                case _:
                    evaluator.run(statement)
                    return []

    def assign(self, source: Source, statement: syntax.Assign, evaluator: Evaluator) -> list[Event]:
        """Define names; if a definition fails on the example, they keep their old values."""
        before = {name: self.names[name] for name in statement.names if name in self.names}
        last = self.scope.out
        evaluator.assign(statement)
        events = [Event("value", self.names[name], name) for name in statement.names]
        try:
            for event in events:
                self.check(event.value, source, statement.span)
        except SourceError:
            for name in statement.names:
                del self.names[name]
            self.names.update(before)
            self.scope.out = last
            raise
        return events

    def evaluator(self, source: Source) -> Evaluator:
        """An evaluator for the top-level scope."""
        return Evaluator(source, self.scope, CONSTANTS, library(), self.budget, example=self.settings.statements)

    # the running example

    def set_example(self, statement: syntax.SetExample, evaluator: Evaluator) -> None:
        """`set example`."""
        example = evaluator.value(statement.value)
        with evaluator.at(statement.value.span):
            sequence_of(example)
        self.settings.chosen = True
        if statement.kind != "selector":
            self.settings.sop_example = example
        if statement.kind != "s-op":
            self.settings.selector_example = example

    def check(self, value: Any, source: Source, span: Span) -> None:
        """Run a definition on the running example, and refuse it if it fails."""
        if not isinstance(value, SOp | Selector) or not self.settings.on(value):
            return
        try:
            evaluator = self.evaluator(source)
            with evaluator.at(span):
                tokens, known = self.seen_on_example(value)
                evaluator.spend_on_running(topological([value], known), len(tokens), span)
                self.on_example(value)
        except (EvaluationError, InputError) as error:
            told = error.diagnostic
            example = literal(self.settings.example(value))
            hint = told.hint or next((HINTS[kind] for kind in HINTS if isinstance(error.__cause__, kind)), OTHER_HINT)
            raise SourceError(
                f"{told.what} (on the example {example})",
                expression=told.origin if told.excerpt else source.place(span),
                hint=hint,
            ) from error

    def seen_on_example(self, value: SOp | Selector) -> tuple[list[Any], dict[RASPExpr, Any]]:
        """The tokens of an expression's running example, and the values computed on it before."""
        tokens = sequence_of(self.settings.example(value))
        return tokens, self._checked.setdefault(tuple((type(token), token) for token in tokens), {})

    def on_example(self, value: SOp | Selector) -> Any:
        """The value of an expression on its running example; values computed earlier are used again."""
        tokens, known = self.seen_on_example(value)
        interpreter = DefaultRASPEvaluator()
        for expr in topological([value], known):
            known[expr] = interpreter.evaluate_one(expr, tokens, [known[child] for child in expr.children])
        return known[value]

    # files

    def load(self, source: Source, statement: syntax.Load, evaluator: Evaluator) -> None:
        """`load "file"`: its names, except those that begin with _."""
        path = self.find(statement, evaluator)
        if path in self.files.open:
            evaluator.fail(statement.span, f"{statement.path} is being loaded already", "files cannot load each other")
        if path not in self.files.loaded:
            if len(self.files.loaded) >= MOST_FILES:
                evaluator.fail(statement.span, f"more than {MOST_FILES} files are loaded")
            folders = tuple(dict.fromkeys((path.parent, *self.files.folders)))
            files = Files(folders, (*self.files.open, path), self.files.loaded)
            quiet = SessionSettings(sop_examples=False, selector_examples=False)
            inner = Runner(settings=quiet, files=files, budget=self.budget, notify=self._notify)
            for _ in inner.run(read_file(path)):
                pass
            self.warnings += inner.warnings
            self.files.loaded[path] = {name: value for name, value in inner.names.items() if not name.startswith("_")}
        self.names.update(self.files.loaded[path])

    def find(self, statement: syntax.Load, evaluator: Evaluator) -> Path:
        """The path of the file: in the folder of the file that loads it, or in the other folders to search."""
        names = [f"{statement.path}.rasp"] + [statement.path] * statement.path.endswith(".rasp")
        for folder in self.files.folders:
            for name in names:
                try:
                    path = (folder / name).resolve()
                    if path.is_file():
                        return path
                except (OSError, ValueError):
                    continue
        evaluator.fail(
            statement.span,
            f"there is no file {names[-1]}",
            f"looked in {', '.join(dict.fromkeys(str(folder) or '.' for folder in self.files.folders)) or 'no folder'}",
        )

    def drawn(self, statement: syntax.Draw, evaluator: Evaluator) -> Any:
        """`draw(x, input)`."""
        from tracr.text.drawing import draw

        value = evaluator.value(statement.value)
        if not isinstance(value, SOp):
            hint = "draw selector_width(s) or an aggregate of it instead; the drawing shows the selector" * isinstance(
                value, Selector
            )
            evaluator.fail(statement.value.span, f"only an s-op can be drawn, not {describe(value)}", hint)
        self.scope.out = value
        given = self.settings.example(value) if statement.given is None else evaluator.value(statement.given)
        with evaluator.at(statement.span):
            tokens = sequence_of(given)
        try:
            return draw(value, tokens)
        except (EvaluationError, InputError) as error:
            told = error.diagnostic
            place = told.origin or evaluator.place(statement.span)
            raise SourceError(told.what, expression=place, hint=told.hint) from error


def read_file(path: Path) -> Source:
    """A file's text."""
    try:
        if path.stat().st_size > 4_000_000:
            raise SourceError(f"{path} is too large to be a program", hint="check that it is a .rasp file")
        return Source(path.read_text(encoding="utf-8-sig"), path.name)
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not a text in UTF-8: {error}", hint="save it as UTF-8") from None
    except FileNotFoundError:
        raise MissingSource(f"there is no file {path}", hint="name a .rasp file that exists") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", hint="name a .rasp file") from None


def _warn(diagnostic: Diagnostic) -> None:
    warnings.warn(str(diagnostic), TracrWarning, stacklevel=2)
