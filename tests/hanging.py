"""When a test gives up on another process: a guard against one that hangs, never a measure of speed.

A busy machine may be many times slower than a quiet one, so that the guard is far above what anything takes.
"""

from __future__ import annotations

HUNG = 900
"""Seconds."""
