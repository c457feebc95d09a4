"""The words after a command: an expression, then an input, then a file."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracr.errors import InputError, SourceError
from tracr.rasp.attention import Selector
from tracr.rasp.elementwise import SOp
from tracr.text.evaluator import sequence_of
from tracr.text.parser import read_expression
from tracr.text.places import Source
from tracr.text.runner import Runner
from tracr.text.values import Misfit

__all__ = ["CommandWords"]

# A file is the last word, or a quoted name after an input: "abc" "my drawing.svg".
FILE = re.compile(r'(?:^|\s)([^\s"]+\.(?:svg|html?|png|pdf)|(?<=\s)"[^"]+\.(?:svg|html?|png|pdf)")$', re.IGNORECASE)


@dataclass(frozen=True)
class CommandWords:
    """The text after a command, for example `x "abc" x.svg`."""

    runner: Runner
    text: str

    @property
    def name(self) -> str:
        """The first word: an expression without spaces."""
        if not self.text:
            raise InputError("the command needs an s-op", hint="type its name after the command")
        return self.text.partition(" ")[0]

    @property
    def rest(self) -> str:
        """The text after the first word."""
        return self.text.partition(" ")[2].strip()

    @property
    def value(self) -> SOp | Selector:
        """The s-op or selector that the first word names."""
        value = self._read(self.name)
        if not isinstance(value, SOp | Selector):
            raise InputError(f"{self.name} is not an s-op", hint="name an s-op")
        return value

    @property
    def file(self) -> Path | None:
        """The file at the end, if there is one."""
        found = FILE.search(self.rest)
        return Path(found[1].strip('"')) if found else None

    @property
    def given(self) -> list[Any]:
        """The input, by default the example."""
        text = FILE.sub("", self.rest).strip()
        if not text:
            return list(self.runner.settings.example(self.value))
        if text[0] in '"[':
            try:
                return sequence_of(self._read(text))
            except Misfit as misfit:
                raise SourceError(misfit.what, hint=misfit.hint) from None
        words = shlex.split(text)
        return list(words[0]) if len(words) == 1 else list(words)

    def _read(self, text: str) -> Any:
        source = Source(text, "<repl>")
        return self.runner.evaluator(source).value(read_expression(source))
