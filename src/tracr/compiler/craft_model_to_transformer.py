"""The error that existing code catches if a program does not read the tokens."""

from tracr.errors import CompileError

__all__ = ["NoTokensError"]


class NoTokensError(CompileError):
    """Never raised: programs that do not read the tokens are compiled like others."""
