"""The search: the only place where rival programs are built and lowered to compare their sizes.

Passes propose (which selectors could be split, which operations could be rewritten, how a variable could be stored) and
know nothing of sizes. For each proposal the search compiles the rivals as far as their size and keeps one. Levels 0 and
1 leave it little to do: whether to share equal s-ops, and at level 1 whether to split large comparisons.

    searcher.py    runs passes, each on a value once; measures rivals; keeps the record of what was tried
    choices.py     the choices: one function for each pass that has rivals
"""

from __future__ import annotations

from tracr.compiler.search.choices import (
    choose_embedding,
    choose_rewrites,
    choose_sharing,
    choose_splits,
    choose_storage,
)
from tracr.compiler.search.searcher import Searcher

__all__ = [
    "Searcher",
    "choose_embedding",
    "choose_rewrites",
    "choose_sharing",
    "choose_splits",
    "choose_storage",
]
