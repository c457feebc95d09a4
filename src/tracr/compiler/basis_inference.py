"""The error existing code catches where a program cannot be compiled for the values it takes."""

from tracr.errors import CompileError

__all__ = ["InvalidValueSetError"]

InvalidValueSetError = CompileError
"""Every refusal of the compiler: an `except` clause for this name skips whatever is not compiled."""
