"""Prints the program between passes, for `tracr compile --print-after` and `--print-changed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from tracr.ir.passes import Pass
from tracr.ir.switches import PassName

__all__ = ["PassPrinter", "text_of"]


def text_of(value: Any) -> str:
    """A value between two passes as text; before `trace` it is the program's outputs."""
    if isinstance(value, Mapping):
        return "\n".join(f"output {name}: {expression!r}" for name, expression in value.items())
    return str(value.show())


class PassPrinter:
    """Called after every pass: keeps the texts of the passes in `after`, and with `changed` what each pass changed."""

    def __init__(self, after: Sequence[PassName], changed: bool) -> None:
        self.asked = after
        self.changed = changed
        self.texts: dict[PassName, tuple[str, str]] = {}
        self.changes: dict[PassName, str] = {}
        self._last: tuple[type, str] = (type(None), "")

    def __call__(self, one: Pass, value: Any) -> None:
        """Record the text of a pass's result, and its difference from the pass before."""
        if not self.changed and not self.asked:
            return
        kind, text = type(value), text_of(value)
        self.texts[one.name] = f"{kind.__name__} after {one.name}", text
        last_kind, last = self._last
        if kind is not last_kind:
            self.changes[one.name] = text
        elif text != last:
            lines = unified_diff(last.splitlines(), text.splitlines(), n=0, lineterm="")
            self.changes[one.name] = "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
        self._last = kind, text

    def report(self) -> list[tuple[str, str]]:
        """Titles and texts, in the order of the passes."""
        found = []
        for name in PassName:
            if self.changed and name in self.changes:
                found.append((f"changed by {name}", self.changes[name]))
            if name in self.asked:
                found.append(self._after(name))
        return found

    def _after(self, name: PassName) -> tuple[str, str]:
        """The title and text after a pass; for a pass that did not run, those of the last one before it."""
        if name in self.texts:
            return self.texts[name]
        order = list(PassName)
        earlier = [one for one in order[: order.index(name)] if one in self.texts]
        if not earlier:
            return f"{name} was not reached", ""
        title, text = self.texts[earlier[-1]]
        return f"{title} ({name} did not run)", text
