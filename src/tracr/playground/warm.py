"""Importing this module imports everything that a worker uses and compiles a few programs.

The process from which workers are forked imports it. A new worker then answers its first request as quickly as later
ones.
"""

from __future__ import annotations

import json

from tracr.playground.compiling import answer
from tracr.playground.limits import ServerLimits

__all__: list[str] = []

SOURCE = """
smaller = select(tokens, tokens, <);
place = selector_width(smaller or (select(tokens, tokens, ==) and select(indices, indices, <)));
sorted = aggregate(select(place, indices, ==), tokens);
mean = aggregate(select(indices, indices, <=), indicator(tokens == "a"));
last = "x" if mean > 0.5 else sorted;
"""


def _warm_up() -> None:
    program = {"source": SOURCE, "vocab": ["a", "b"], "max_len": 3}
    limits = ServerLimits()
    for task in (
        {"task": "compile", **program},
        {"task": "levels", "causal": True, **program},
        {"task": "format", "source": SOURCE},
        {"task": "compile", "source": "y = 1 +;"},
        {"task": "check", "puzzle": 1, "source": SOURCE},
    ):
        answer(json.dumps(task).encode(), limits)


_warm_up()
