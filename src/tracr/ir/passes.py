"""A pass of the compiler as an object."""

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
        name: what switches, `--print-after` and the search record call it.
        level: the optimisation level from which it runs; `None` if it runs only where it is asked for.
        takes: the type of the value it is given.
        gives: the type of the value it makes.
        run: the function; its second argument is the search, which passes that choose between rivals use.
        does: what it does, in a sentence.
        switches: it runs if one of these is on; if there are none, always.
    """

    name: PassName
    level: int | None
    takes: type
    gives: type
    run: Callable[[Any, Any], Any]
    does: str
    switches: tuple[SwitchName, ...] = ()

    def on(self, options: Options) -> bool:
        """Whether it runs."""
        return not self.switches or any(map(options.on, self.switches))


Watch = Callable[[Pass, Any], object]
"""Called after every pass that runs, with the pass and the value it made."""
