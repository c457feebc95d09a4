"""The error that existing code catches if a program cannot be compiled for its values."""

from tracr.errors import CompileError

__all__ = ["InvalidValueSetError"]

InvalidValueSetError = CompileError
"""Every refusal of the compiler: an `except` clause with this name catches them all."""
