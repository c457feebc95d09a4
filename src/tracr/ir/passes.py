"""`Pass`: one step of the compiler as an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracr.ir.options import Options
from tracr.ir.switches import PassName, SwitchName

__all__ = ["Pass", "Watch"]


@dataclass(frozen=True)
class Pass:
    """One step of the compiler: a function from one frozen value to the next.

    Attributes:
        name: its name for switches, `--print-after` and the search record.
        level: the lowest optimisation level at which it runs; `None` if it runs only when requested.
        takes: the type of its input.
        gives: the type of its result.
        run: the function. Its second argument is the search, used by passes that choose between rivals.
        does: what it does, in a sentence.
        switches: it runs if at least one of these is on; always, if the tuple is empty.
    """

    name: PassName
    level: int | None
    takes: type
    gives: type
    run: Callable[[Any, Any], Any]
    does: str
    switches: tuple[SwitchName, ...] = ()

    def on(self, options: Options) -> bool:
        """Whether the pass runs with these options."""
        return not self.switches or any(map(options.on, self.switches))


Watch = Callable[[Pass, Any], object]
"""Called after every pass that runs, with the pass and the value it made."""
