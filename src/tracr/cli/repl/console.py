"""The terminal: a line editor with history, completion and colours; plain lines if the input is not a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tracr.cli.repl.commands import COMMANDS
from tracr.cli.repl.session import Session
from tracr.extras import need
from tracr.text.parser import FUNCTIONS, RESERVED

__all__ = ["interact"]

PROMPT, CONTINUED = ">> ", ".. "
COLOURS = re.compile(
    r'(?P<comment>#.*)|(?P<string>"[^"\n]*"?)|(?P<number>\b\d+(\.\d*)?\b)|(?P<command>^:\w+)|(?P<word>[^\W\d]\w*)'
    r"|(?P<operator>[-+*/%^<>=!]+)"
)
BUILT_IN = {*FUNCTIONS, "tokens", "indices", "length", "True", "False"}
STYLE = {
    "comment": "#6e7781 italic",
    "string": "#0a7d34",
    "number": "#0550ae",
    "keyword": "#8250df bold",
    "builtin": "#953800",
    "command": "#cf222e",
    "operator": "#57606a",
}


def interact(session: Session) -> bool:
    """Read, run and print until the input ends; false if the input was not a terminal and had an error."""
    if sys.stdin.isatty():
        print(session.banner)
        _terminal(session)
        return True
    _lines(session, sys.stdin)
    return not session.failed


def _lines(session: Session, lines: Iterable[str]) -> None:
    """Run statements from a pipe; a statement can take several lines."""
    text = ""
    for line in lines:
        text += line
        if session.is_complete(text):
            _say(session.feed(text))
            text = ""
        if session.over:
            return
    if text.strip():
        _say(session.feed(text))


def _say(text: str) -> None:
    if text:
        print(text, flush=True)


def _terminal(session: Session) -> None:
    prompt = need("prompt_toolkit", "repl")
    line: Callable[[], str] = _editor(prompt, session)
    while not session.over:
        try:
            text = line()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if session.lacks_only_semicolon(text):
            text = f"{text};"
        try:
            _say(session.feed(text))
        except KeyboardInterrupt:
            print("interrupted")


def _editor(prompt: Any, session: Session) -> Callable[[], str]:
    """A function that reads one entry from the user, of one or several lines."""
    completion = need("prompt_toolkit.completion", "repl")
    bindings = need("prompt_toolkit.key_binding", "repl").KeyBindings()
    styles = need("prompt_toolkit.styles", "repl")

    @bindings.add("enter")  # type: ignore[untyped-decorator]
    def _(event: Any) -> None:
        buffer = event.current_buffer
        text = buffer.text
        if session.is_complete(text) or session.lacks_only_semicolon(text):
            buffer.validate_and_handle()
        else:
            depth = text.count("{") - text.count("}")
            buffer.insert_text("\n" + "  " * max(0, depth))

    @bindings.add("escape", "enter")  # type: ignore[untyped-decorator]
    def _(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    reader = prompt.PromptSession(
        multiline=True,
        history=_history(),
        completer=completion.WordCompleter(lambda: [*session.words(), *COMMANDS], pattern=re.compile(r":?[\w-]+")),
        complete_while_typing=False,
        lexer=_Colours(),
        style=styles.Style.from_dict(STYLE),
        key_bindings=bindings,
        prompt_continuation=CONTINUED,
    )
    return lambda: str(reader.prompt(PROMPT))


def _history() -> Any:
    """The history, kept in a file if its folder can be written."""
    history = need("prompt_toolkit.history", "repl")
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tracr"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "history").open("a"):
            return history.FileHistory(str(folder / "history"))
    except OSError:
        return history.InMemoryHistory()


class _Colours:
    """A prompt_toolkit lexer: colours each line by a regular expression."""

    def lex_document(self, document: Any) -> Callable[[int], list[tuple[str, str]]]:
        """A function from the number of a line to its pieces."""
        return lambda number: coloured(document.lines[number])

    def invalidation_hash(self) -> int:
        """The same text always looks the same."""
        return 0


def coloured(line: str) -> list[tuple[str, str]]:
    """A line in pieces, each with its style.

    >>> coloured("y = not x")
    [('', 'y'), ('', ' '), ('class:operator', '='), ('', ' '), ('class:keyword', 'not'), ('', ' '), ('', 'x')]
    """
    pieces: list[tuple[str, str]] = []
    here = 0
    for match in COLOURS.finditer(line):
        if match.start() > here:
            pieces.append(("", line[here : match.start()]))
        kind = match.lastgroup if match.lastgroup != "word" else _kind(match[0])
        pieces.append((f"class:{kind}" if kind else "", match[0]))
        here = match.end()
    return [*pieces, ("", line[here:])] if here < len(line) else pieces


def _kind(word: str) -> str:
    return "keyword" if word in RESERVED else "builtin" if word in BUILT_IN else ""
