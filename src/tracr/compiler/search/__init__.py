"""The search: the only place where rival programs are built and lowered to compare their sizes.

Passes propose changes: selectors to split, operations to rewrite, other ways to store a variable. Passes know nothing
of sizes. For each proposal the search compiles the rivals until their sizes are known, and keeps one. Level 0 has no
rivals. Level 1 has three questions: whether to share equal s-ops, split large comparisons and embed functions.

    searcher.py    runs passes, once for each value; measures rivals; keeps the record of the search
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
