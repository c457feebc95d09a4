"""The commands that begin with a colon: they compile, run, verify and draw definitions."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tracr
from tracr.cli.description import in_short, parts
from tracr.cli.inputs import read_vocabulary
from tracr.errors import InputError, SourceError, TracrWarning
from tracr.rasp.attention import Selector
from tracr.rasp.elementwise import SOp
from tracr.text.drawing import Drawing, draw
from tracr.text.evaluator import sequence_of
from tracr.text.parser import read_expression
from tracr.text.places import Source
from tracr.text.printer import to_rasp
from tracr.text.runner import Runner
from tracr.text.values import Misfit, printed
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["COMMANDS", "Commands", "saved"]

COMMANDS = {
    ":compile": ":compile x            compile x and print the size of the model",
    ":run": ':run x "abc"          run the compiled x and the interpreter',
    ":verify": ":verify x             compare the compiled x with the interpreter",
    ":info": ":info x               print layers, heads and dimensions of the compiled x",
    ":draw": ':draw x ["abc"]       draw x on an input into x.svg',
    ":vocab": ":vocab abc 8          set the tokens and the longest input to compile for (default: the example)",
    ":print": ":print x              print the program of x as text",
    ":help": ":help                 print this list",
    ":quit": ":quit                 leave",
}


class Commands:
    """Runs commands on the names of a session; a compiled model is kept until its name is redefined."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.vocab: list[Value] | None = None
        self.length: int | None = None
        self._models: dict[tuple[SOp, tuple[Value, ...], int], CompiledModel] = {}

    def run(self, line: str) -> str:
        """The answer to a command."""
        word, _, rest = line.strip().partition(" ")
        if word not in COMMANDS:
            raise InputError(f"there is no command {word}", hint=f"the commands are {' '.join(COMMANDS)}")
        methods: dict[str, Callable[[str], str]] = {
            ":compile": self.compile,
            ":run": self.run_model,
            ":verify": self.verify,
            ":info": self.info,
            ":draw": self.draw,
            ":vocab": self.vocabulary,
            ":print": self.printed,
            ":help": self.help,
        }
        return methods[word](rest.strip())

    def help(self, rest: str) -> str:
        """The list of commands."""
        return "\n".join(
            [
                *COMMANDS.values(),
                'set example "abc"     set the example input; examples on|off, full seq display on|off',
                "statements end with ; and can take several lines",
            ]
        )

    def named(self, rest: str) -> tuple[SOp | Selector, str]:
        """The expression that a command names, and the rest of the line."""
        name, _, more = rest.partition(" ")
        if not name:
            raise InputError("the command needs an s-op", hint="type its name after the command")
        source = Source(name, "<repl>")
        value = self.runner.evaluator(source).value(read_expression(source))
        if not isinstance(value, SOp | Selector):
            raise InputError(f"{name} is not an s-op", hint="name an s-op")
        return value, more.strip()

    def given(self, text: str, value: object) -> list[Any]:
        """The input typed, or the example."""
        if not text:
            return list(self.runner.settings.example(value))
        if text[0] in '"[':
            source = Source(text, "<repl>")
            try:
                return sequence_of(self.runner.evaluator(source).value(read_expression(source)))
            except Misfit as misfit:
                raise SourceError(misfit.what, hint=misfit.hint) from None
        words = shlex.split(text)
        return list(words[0]) if len(words) == 1 else list(words)

    def model(self, value: object, tokens: list[Any]) -> CompiledModel:
        """The model of an s-op, for the vocabulary of :vocab, else for the tokens of the example and the input."""
        if not isinstance(value, SOp):
            raise InputError("only an s-op can be compiled", hint="selector_width(s) turns a selector into an s-op")
        example = list(self.runner.settings.sop_example)
        vocab = tuple(dict.fromkeys(self.vocab or [*example, *tokens]))
        length = self.length or max(len(example), len(tokens))
        key = (value, vocab, length)
        if key not in self._models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TracrWarning)
                self._models[key] = tracr.compile(value, vocab, length)
        return self._models[key]

    def compile(self, rest: str) -> str:
        """`:compile x`."""
        value, _ = self.named(rest)
        model = self.model(value, [])
        lines = [f"{model!r}", f"for up to {model.program.lengths[1]} of {_shown(model.options.vocab)}"]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in model.program.warnings)])

    def run_model(self, rest: str) -> str:
        """`:run x "abc"`."""
        value, text = self.named(rest)
        tokens = self.given(text, value)
        model = self.model(value, tokens)
        output = model(tokens)
        return f"model        {printed(output)}\ninterpreter  {printed(value(tokens))}"

    def verify(self, rest: str) -> str:
        """`:verify x`."""
        value, _ = self.named(rest)
        return str(self.model(value, []).verify(20_000))

    def info(self, rest: str) -> str:
        """`:info x`."""
        value, _ = self.named(rest)
        model = self.model(value, [])
        heads = max((one.place + 1 for one in model.schedule.heads()), default=0)
        lines = [in_short(model), f"up to {heads} heads in a layer, for up to {model.program.lengths[1]} tokens"]
        return "\n".join([*lines, *(f"  {part.where}: {part.computes}" for part in parts(model))])

    def draw(self, rest: str) -> str:
        """`:draw x "abc"`."""
        value, text = self.named(rest)
        return saved(draw(value, self.given(text, value)), rest.partition(" ")[0])

    def vocabulary(self, rest: str) -> str:
        """`:vocab abc 8`."""
        words = rest.split()
        if words and words[-1].isdecimal() and len(words) > 1:
            self.length = int(words.pop())
        if words:
            self.vocab = read_vocabulary(words[0])
        example = list(self.runner.settings.sop_example)
        vocab = self.vocab or list(dict.fromkeys(example))
        return f"up to {self.length or len(example)} of {_shown(vocab)}"

    def printed(self, rest: str) -> str:
        """`:print x`."""
        value, _ = self.named(rest)
        return to_rasp(value)


def saved(drawing: Drawing, name: str) -> str:
    """Write a drawing to a file named after its expression."""
    safe = "".join(character for character in name if character.isalnum() or character in "_-") or "drawing"
    return f"drawn into {drawing.save(Path(f'{safe}.svg'))}"


def _shown(vocab: Any) -> str:
    texts = list(map(str, vocab))
    return " ".join(texts[:30]) + (f" ... ({len(texts)} tokens)" if len(texts) > 30 else "")
