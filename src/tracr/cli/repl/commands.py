"""The commands that begin with a colon: they compile, run, verify, draw and save definitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tracr
from tracr.cli.description import in_short, parts
from tracr.cli.inputs import read_vocabulary
from tracr.cli.repl.files import Notebook, drawn, file_name, write_new
from tracr.cli.repl.learning import learn
from tracr.cli.repl.words import CommandWords
from tracr.errors import InputError, TracrError, TracrWarning
from tracr.ir.options import LEVELS
from tracr.rasp.elementwise import SOp
from tracr.spelling import did_you_mean
from tracr.text.drawing import draw
from tracr.text.printer import to_rasp
from tracr.text.runner import Runner
from tracr.text.values import printed
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["COMMANDS", "Commands"]

COMMANDS = {
    ":compile": ":compile x            compile x and print the size of the model",
    ":run": ':run x "abc"          run the compiled x and the interpreter',
    ":verify": ":verify x             compare the compiled x with the interpreter",
    ":info": ":info x               print layers, heads and dimensions of the compiled x",
    ":draw": ':draw x "abc" x.svg   draw x on an input; by default the example, into x.svg',
    ":explore": ':explore x "abc"      write the page that shows the compiled x, by default x.html',
    ":vocab": ":vocab abc 8          set the tokens and the longest input to compile for (default: the example)",
    ":level": ":level 2              set the optimisation level to compile with: 0, 1 (the default) or 2",
    ":print": ":print x              print the program of x as text",
    ":save": ":save x folder        save the compiled x; x.rasp instead of folder: its program; all.rasp alone: all",
    ":learn": ":learn 3 x            check x as an answer to puzzle 3; :learn 3 shows it, :learn lists the puzzles",
    ":help": ":help                 print this list",
    ":quit": ":quit                 leave",
}


class Commands:
    """Runs commands on the names of a session; a compiled model is kept until its name is redefined."""

    def __init__(self, runner: Runner, notebook: Notebook) -> None:
        self.runner, self.notebook = runner, notebook
        self.vocab: list[Value] | None = None
        self.length: int | None = None
        self.level = 1
        self._models: dict[tuple[SOp, tuple[Value, ...], int, int], CompiledModel] = {}
        self._methods: dict[str, Callable[[CommandWords], str]] = {
            ":compile": self.compile,
            ":run": self.run_model,
            ":verify": self.verify,
            ":info": self.info,
            ":draw": self.draw,
            ":explore": self.explore,
            ":vocab": self.vocabulary,
            ":level": self.set_level,
            ":print": self.printed,
            ":save": self.save,
            ":learn": learn,
            ":help": self.help,
        }

    def run(self, line: str) -> str:
        """The answer to a command."""
        word, _, rest = line.strip().partition(" ")
        if word not in self._methods:
            known = f"the commands are {' '.join(COMMANDS)}"
            raise InputError(f"there is no command {word}", hint=did_you_mean(word, COMMANDS, known))
        return self._methods[word](CommandWords(self.runner, rest.strip()))

    def help(self, words: CommandWords) -> str:
        """The list of commands."""
        return "\n".join(
            [
                *COMMANDS.values(),
                'set example "abc"     set the example input; examples on|off, full seq display on|off',
                "statements end with ; and can take several lines",
            ]
        )

    def model(self, value: object, tokens: list[Any]) -> CompiledModel:
        """The model of an s-op, for the vocabulary of :vocab, else for the tokens of the example and the input."""
        if not isinstance(value, SOp):
            raise InputError("only an s-op can be compiled", hint="selector_width(s) turns a selector into an s-op")
        example = list(self.runner.settings.sop_example)
        vocab = tuple(dict.fromkeys(self.vocab or [*example, *tokens]))
        length = self.length or max(len(example), len(tokens))
        key = (value, vocab, length, self.level)
        if key not in self._models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TracrWarning)
                self._models[key] = tracr.compile(value, vocab, length, level=self.level)
        return self._models[key]

    def compile(self, words: CommandWords) -> str:
        """`:compile x`."""
        model = self.model(words.value, [])
        lines = [f"{model!r}", f"for up to {model.program.lengths[1]} of {_shown(model.options.vocab)}"]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in model.program.warnings)])

    def run_model(self, words: CommandWords) -> str:
        """`:run x "abc"`."""
        value, tokens = words.value, words.given
        model = self.model(value, tokens)
        output = model(tokens)
        return f"model        {printed(output)}\ninterpreter  {printed(value(tokens))}"

    def verify(self, words: CommandWords) -> str:
        """`:verify x`."""
        report = self.model(words.value, []).verify(20_000)
        if not report:
            raise TracrError(str(report), hint="the model is wrong: please report this program as a bug of tracr")
        return str(report)

    def info(self, words: CommandWords) -> str:
        """`:info x`."""
        model = self.model(words.value, [])
        heads = max((one.place + 1 for one in model.schedule.heads()), default=0)
        lines = [in_short(model), f"up to {heads} heads in a layer, for up to {model.program.lengths[1]} tokens"]
        return "\n".join([*lines, *(f"  {part.where}: {part.computes}" for part in parts(model))])

    def draw(self, words: CommandWords) -> str:
        """`:draw x "abc" x.svg`."""
        return drawn(draw(words.value, words.given), words.file or file_name(words.name, ".svg"))

    def explore(self, words: CommandWords) -> str:
        """`:explore x "abc" x.html`."""
        path = words.file or file_name(words.name, ".html")
        if path.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"{path} does not end in .html", hint=f"name it {path.with_suffix('.html')}")
        tokens = words.given
        page = self.model(words.value, tokens).explore(tokens, name=words.name).save(path)
        return f"written to {page}, open it in any browser"

    def vocabulary(self, words: CommandWords) -> str:
        """`:vocab abc 8`."""
        given = words.text.split()
        if given and given[-1].isdecimal() and len(given) > 1:
            self.length = int(given.pop())
        if given:
            self.vocab = read_vocabulary(given[0])
        example = list(self.runner.settings.sop_example)
        vocab = self.vocab or list(dict.fromkeys(example))
        return f"up to {self.length or len(example)} of {_shown(vocab)}"

    def set_level(self, words: CommandWords) -> str:
        """`:level 2`."""
        levels = {str(level): level for level in LEVELS}
        if words.text and words.text not in levels:
            raise InputError(f"there is no level {words.text}", hint=f"the levels are {', '.join(levels)}")
        self.level = levels.get(words.text, self.level)
        return f"compiling at level {self.level}"

    def printed(self, words: CommandWords) -> str:
        """`:print x`."""
        return to_rasp(words.value)

    def save(self, words: CommandWords) -> str:
        """`:save x folder`, `:save x x.rasp`, or `:save all.rasp`."""
        name, target = words.name, words.rest.strip('"')
        if not target and name.strip('"').endswith(".rasp"):
            return self.notebook.save(Path(name.strip('"')))
        value = words.value
        if target.endswith(".rasp"):
            return write_new(Path(target), to_rasp(value), self.notebook.written)
        folder = Path(target) if target else file_name(name, "")
        self.model(value, []).save(folder)
        return f"saved in {folder}; tracr.load({str(folder)!r}) reads it"


def _shown(vocab: Any) -> str:
    texts = list(map(str, vocab))
    return " ".join(texts[:30]) + (f" ... ({len(texts)} tokens)" if len(texts) > 30 else "")
