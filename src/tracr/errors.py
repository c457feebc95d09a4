"""The tree of errors. Every message says what was wrong, where, and what to write instead.

    TracrError
      ExpressionError   a RASP expression was built from something that cannot be part of one
        UnpicklableError  ... or holds a function that cannot be pickled, such as a lambda
      EvaluationError   the interpreter cannot compute with a value
      SourceError       a .rasp text that cannot be read or run
      CompileError      the program cannot become a transformer (a refusal, never a wrong model)
        LimitError      ... because a size limit was reached; the message names the option that raises it
        FunctionError   ... because one of its functions raises on values that inputs take
      InternalError     a bug in this package, found by its own checks
      VocabularyError   the vocabulary or its special tokens are unusable
      InputError        an input sequence the model or the interpreter cannot take
        IdError         ... given as ids
      FormatError       a saved model that cannot be read, or a model that cannot be written
        WriteError      ... because the disk is full or read-only
      CertificateError  a model that the checker rejects, where an accepted one is needed
      PrecisionError    a number format in which the model is not proved to be right
      NotAdmitted       a trained model whose mechanism was not measured to be the known one
      MissingExtra      an optional library that is not installed
      InstallationError files of this package were replaced by those of another one
      UnknownName       a name that does not exist, such as that of an activation

Warnings about a program are `TracrWarning`.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

from tracr.installation import REMEDY, files_replaced

__all__ = [
    "CertificateError",
    "CompileError",
    "Diagnostic",
    "EvaluationError",
    "ExpressionError",
    "FormatError",
    "FunctionError",
    "IdError",
    "InputError",
    "InstallationError",
    "InternalError",
    "LimitError",
    "MissingExtra",
    "MissingSource",
    "NotAdmitted",
    "PrecisionError",
    "SourceError",
    "TracrError",
    "TracrWarning",
    "Unavailable",
    "UnknownName",
    "UnpicklableError",
    "VocabularyError",
    "WriteError",
]


@dataclass(frozen=True)
class Diagnostic:
    """A problem in a program: the expression and its origin, what is wrong, and what to write instead.

    `excerpt` is the line with a caret, for expressions of a .rasp text.
    """

    expression: str
    what: str
    hint: str = ""
    origin: str = ""
    excerpt: str = ""

    @staticmethod
    def about(culprit: object, what: str, hint: str = "") -> Diagnostic:
        """A diagnostic about an expression or a node of the program (both know their origin), a place, or a text."""
        if isinstance(culprit, str):
            excerpt = getattr(culprit, "excerpt", "")
            return Diagnostic("" if excerpt else culprit, what, hint, culprit if excerpt else "", excerpt)
        text = getattr(culprit, "source", "") or repr(culprit)
        origin = getattr(culprit, "origin", "")
        return Diagnostic(text, what, hint, origin, getattr(origin, "excerpt", ""))

    @property
    def sentence(self) -> str:
        """The problem and its expression, without the origin."""
        return f"{self.expression}: {self.what}" if self.expression else self.what

    def __str__(self) -> str:
        if self.excerpt:
            text = f"{self.origin}: {self.what}\n{self.excerpt}"
        else:
            where = f"{self.expression} ({self.origin})" if self.origin else self.expression
            text = f"{where}: {self.what}" if where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text


LONGEST_TEXT = 1_000


def _harmless(text: str) -> str:
    """Text from an untrusted file, made safe to show in a terminal."""
    text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


class TracrError(Exception):
    """Root of every error this package raises on purpose."""

    def __init__(self, what: str, *, expression: object = "", hint: str = "") -> None:
        self.diagnostic = Diagnostic.about(expression, what, hint)
        super().__init__(str(self.diagnostic))

    def hint_at(self, hint: str) -> None:
        """Replace the hint by a better one that is known later."""
        self.diagnostic = replace(self.diagnostic, hint=hint)
        self.args = (str(self.diagnostic),)

    def __reduce__(self) -> tuple[Any, ...]:
        """The form that a process pool sends: the same error, without calling `__init__` again."""
        return _as_raised, (type(self), self.args), self.__dict__


def _as_raised(kind: type[TracrError], args: tuple[object, ...]) -> TracrError:
    error = kind.__new__(kind)
    error.args = args
    return error


class ExpressionError(TracrError, TypeError, ValueError):
    """A RASP expression was built from something that cannot be part of one."""


class UnpicklableError(ExpressionError, pickle.PicklingError):
    """An expression holds a function that `pickle` cannot send."""


class EvaluationError(TracrError, ValueError):
    """The interpreter cannot compute with a value."""


class SourceError(TracrError, ValueError):
    """A .rasp text that cannot be read or run: a syntax error, an unknown name, a value that does not fit."""

    def __init__(self, what: str, *, expression: object = "", hint: str = "") -> None:
        super().__init__(_harmless(what), expression=expression, hint=_harmless(hint))


class MissingSource(SourceError, FileNotFoundError):
    """A .rasp file that does not exist."""

    __new__ = FileNotFoundError.__new__  # type: ignore[assignment] # see `WriteError`


class CompileError(TracrError, ValueError):
    """The program cannot become a transformer."""


class LimitError(CompileError):
    """The program would need more values, table cells or parameters than the limits allow."""


class FunctionError(CompileError):
    """A function of the program raises on values that inputs take."""


class InternalError(TracrError):
    """An invariant of the compiler is broken: a bug in tracr, not in the program."""

    def __init__(self, what: str) -> None:
        super().__init__(what, hint="this is a bug in tracr: please report it with the program")


class VocabularyError(TracrError, ValueError):
    """The vocabulary, or its BOS and PAD tokens, cannot be used."""


class InputError(TracrError, ValueError):
    """An input sequence that the model or the interpreter cannot take."""


class IdError(InputError, IndexError):
    """Ids that are not an input of the model."""


class FormatError(TracrError, ValueError):
    """A saved model that cannot be read (damaged, tampered with, of another version), or one that cannot be written."""


class WriteError(FormatError, OSError):
    """A file or folder that cannot be written: the disk is full or read-only, or the path is not possible."""

    # With two exception bases Python uses the `__new__` of the first, which makes no OSError.
    __new__ = OSError.__new__  # type: ignore[assignment]


class PrecisionError(TracrError, ValueError):
    """A number format in which the model is not proved to be right."""


class NotAdmitted(TracrError):
    """A trained model whose mechanism was not measured to be the known one: it has no truth."""


class CertificateError(TracrError, ValueError):
    """A model that the checker rejects, where an accepted one is needed."""


class MissingExtra(TracrError, ImportError):
    """An optional library is not installed; the hint is the command that installs it."""


class InstallationError(TracrError, ImportError):
    """Files of this package were replaced or removed by another package with the same folder."""


class UnknownName(TracrError, KeyError):
    """A name that does not exist."""

    def __str__(self) -> str:
        return str(self.diagnostic)  # not quoted, as a KeyError's is


class Unavailable(TracrError, AttributeError):
    """An attribute or method that this kind of model does not have, though others do."""


class TracrWarning(UserWarning):
    """A warning about a part of a program that its author probably did not intend."""


if files_replaced():  # every other module of this package imports this one
    raise InstallationError(
        "tracr/__init__.py is missing or is not this package's: another package with the folder `tracr` was installed "
        "or uninstalled after it, most likely tracr-pypi, the original Tracr",
        hint=f"{REMEDY}; code written for the original runs with it too (docs/migrating.md)",
    )
