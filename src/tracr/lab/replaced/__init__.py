"""The track "replacements": claims "this component computes that part", scored by putting the part in its place.

claims.py               submitted claims, and the form that a subject asks to be filled in
replacement_scores.py   `replacements`: what the claimed parts recover
replacement_methods.py  the ranking of the library as a method, a null method, and the truth
replacement_rows.py     rows of a run
"""

from __future__ import annotations

from tracr.lab.replaced.claims import replacement_form
from tracr.lab.replaced.replacement_scores import ReplacementScore, ReplacementScores, replacements

__all__ = ["ReplacementScore", "ReplacementScores", "replacement_form", "replacements"]
