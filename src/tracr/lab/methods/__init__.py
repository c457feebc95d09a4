"""Methods that look for circuits: functions `(subject, data) -> {edge: score}`.

data.py             what a method gets: clean and corrupted inputs, and a metric
exact_patching.py   every edge patched in turn
"""

from __future__ import annotations

from tracr.lab.methods.data import MethodData
from tracr.lab.methods.exact_patching import exact_patching

__all__ = ["MethodData", "exact_patching"]
