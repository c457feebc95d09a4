"""Names that are almost right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A question that names what was probably meant, or `otherwise` if nothing known is like the word.

    >>> did_you_mean("srot", ["sort", "reverse"]), did_you_mean("xyz", ["sort"], "there is sort")
    ('did you mean sort?', 'there is sort')
    """
    close = get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else otherwise
