"""Runs what is typed: text in, text out. A statement with a syntax error does not stop the statements after it."""

from __future__ import annotations

import re
from pathlib import Path

from tracr.cli.repl import show
from tracr.cli.repl.commands import Commands
from tracr.cli.repl.files import Notebook, drawn, file_name
from tracr.errors import Diagnostic, SourceError, TracrError
from tracr.text import syntax
from tracr.text.library import CONSTANTS, library
from tracr.text.parser import FUNCTIONS, RESERVED, UnfinishedError, read
from tracr.text.places import Source
from tracr.text.runner import Event, Runner, read_file
from tracr.text.scope import STEPS
from tracr.text.values import literal

__all__ = ["Session"]

MOST_LINES = 200  # most lines of one statement in a text with a syntax error
TEXT_OR_COMMENT = re.compile(r'"[^"]*"|#.*')


class Session:
    """An interactive run of the language."""

    def __init__(self, folder: Path | None = None) -> None:
        self.runner = Runner((folder or Path(),), notify=self._warn)
        self.notebook = Notebook()
        self.commands = Commands(self.runner, self.notebook)
        self.over, self.failed = False, False
        self._output: list[str] = []

    @property
    def banner(self) -> str:
        """The first lines."""
        return f"tracr: RASP\nrunning example is: {self.runner.settings.sop_example}\ntype :help for the commands"

    def words(self) -> list[str]:
        """The words that completion offers."""
        own = [*self.runner.names, *library(), *CONSTANTS]
        return sorted({*own, *RESERVED, *FUNCTIONS, "example", "s-op", "selector"})

    # completeness

    @staticmethod
    def is_complete(text: str) -> bool:
        """Whether a text can be run, or has an error that more lines cannot mend; if not, more lines are read."""
        if not text.strip() or text.lstrip().startswith(":"):
            return True
        try:
            read(Source(text))
        except UnfinishedError:
            return False
        except SourceError:
            return True
        return True

    @classmethod
    def lacks_only_semicolon(cls, text: str) -> bool:
        """Whether a ; makes the text a statement: on a terminal the ; may be left out."""
        return cls.is_complete(f"{text};") and not cls.is_complete(text) and _readable(f"{text};")

    # running

    def feed(self, text: str) -> str:
        """Run what was typed and return the text to print."""
        self._output = []
        self.runner.budget.steps, self.runner.files.loaded = STEPS, {}
        if text.lstrip().startswith(":"):
            self._command(text)
        else:
            self._run(Source(text, "<repl>"))
        return "\n".join(self._output)

    def start_with(self, path: Path) -> str:
        """Run a file first."""
        self._output = []
        self.runner.files.folders = tuple(dict.fromkeys((path.parent, *self.runner.files.folders)))
        events: list[Event] = []
        try:
            source = read_file(path)
            for statement in read(source):
                if isinstance(statement, syntax.Leave):
                    break
                events += self.runner.step(source, statement)
                self.notebook.add(source, statement)
        except TracrError as error:
            self._fail(error)
            return "\n".join(self._output)
        names = [event.name for event in events if event.what == "value" and event.name]
        self._output.append(f"{path} defines {', '.join(dict.fromkeys(names)) or 'functions only'}")
        return "\n".join(self._output)

    def _command(self, text: str) -> None:
        if text.strip() in (":quit", ":exit", ":q"):
            self.over = True
            return
        try:
            self._output.append(self.commands.run(text))
        except (TracrError, OSError) as error:
            self._fail(error)

    def _run(self, source: Source) -> None:
        try:
            statements = read(source)
        except SourceError:
            self._run_in_pieces(source)
        else:
            self._run_statements(source, statements)

    def _run_in_pieces(self, source: Source) -> None:
        """Run the readable statements of a text and report the others, one by one."""
        lines, here = source.text.splitlines(), 0
        while here < len(lines) and not self.over:
            count, found = _first_piece(lines, here, source.name)
            if isinstance(found, SourceError):
                self._fail(found)
                here += _lines_of_broken(lines[here:])
            else:
                self._run_statements(*found)
                here += count

    def _run_statements(self, source: Source, statements: list[syntax.Statement]) -> None:
        for statement in statements:
            if isinstance(statement, syntax.Leave):
                self.over = True
                return
            try:
                events = self.runner.step(source, statement)
                self._output += [self._told(event) for event in events]
                self.notebook.add(source, statement)
            except (TracrError, OSError) as error:
                self._fail(error)
            if isinstance(statement, syntax.Definition) and statement.name in self.runner.names:
                self._output.append(show.definition(self.runner, self.runner.names[statement.name]))

    def _told(self, event: Event) -> str:
        if event.what == "draw":
            return drawn(event.value, file_name(event.value.plan.title.partition("(")[0], ".svg"))
        if event.what == "example":
            settings = self.runner.settings
            lines = [f"\ts-op example: {literal(settings.sop_example)}"] * (event.name != "selector")
            lines += [f"\tselector example: {literal(settings.selector_example)}"] * (event.name != "s-op")
            return "\n".join(lines)
        return show.definition(self.runner, event.value, event.name)

    def _fail(self, error: Exception) -> None:
        """Report an error; a session with an error fails as a script."""
        self.failed = True
        self._output.append(str(error))

    def _warn(self, warning: Diagnostic) -> None:
        self._output.append(f"warning: {warning}")


def _readable(text: str) -> bool:
    try:
        read(Source(text))
    except SourceError:
        return False
    return True


def _first_piece(
    lines: list[str], here: int, name: str
) -> tuple[int, tuple[Source, list[syntax.Statement]] | SourceError]:
    """The fewest lines from `here` that can be read, with their statements; or the error."""
    found: SourceError | None = None
    most = min(len(lines) - here, MOST_LINES)
    for count in range(1, most + 1):
        source = Source("\n" * here + "\n".join(lines[here : here + count]), name)  # lines keep their numbers
        try:
            return count, (source, read(source))
        except UnfinishedError as error:
            found = error
        except SourceError as error:
            return count, error
    assert found is not None
    return most, found


def _lines_of_broken(lines: list[str]) -> int:
    """The number of lines of a statement with a syntax error: up to its last }, or one if it has no braces."""
    depth = 0
    for number, line in enumerate(lines, 1):
        code = TEXT_OR_COMMENT.sub("", line)
        depth += code.count("{") - code.count("}")
        if depth <= 0:
            return number
    return 1
