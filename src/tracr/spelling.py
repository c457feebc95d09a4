"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A question with the known words most similar to the word, or `otherwise` if none is similar.

    >>> did_you_mean("srot", ["sort", "reverse"]), did_you_mean("xyz", ["sort"], "there is sort")
    ('did you mean sort?', 'there is sort')
    """
    close = get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else otherwise
