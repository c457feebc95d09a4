"""Names and encodings attached to expressions.

A *categorical* s-op is stored as one direction per value, a *numerical* one as a number along a single direction.
The compiler uses the annotated encodings, and chooses the others itself.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tracr.errors import ExpressionError
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.rasp.expressions import RASPExpr, SOp

__all__ = [
    "DEFAULT_ANNOTATORS",
    "ENCODING",
    "NAME",
    "TYPED",
    "Annotations",
    "Encoding",
    "annotate",
    "categorical",
    "default_encoding",
    "default_name",
    "get_encoding",
    "is_categorical",
    "is_numerical",
    "numerical",
]

NAME = "name"
ENCODING = "encoding"
TYPED = "typed"
"""Every s-op of the textual language has this annotation. If it is true, the values are all strings, or all numbers and
booleans. It is false for the first half of a choice between two s-ops, which holds tuples."""
E = TypeVar("E", bound="RASPExpr")
S = TypeVar("S", bound="SOp")


class Encoding(enum.Enum):
    """How an s-op is stored in the residual stream."""

    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


def default_name(expr: RASPExpr) -> str:
    """The name of the kind of expression: `map`, `aggregate`, ..."""
    try:
        return type(expr).default_name
    except AttributeError:
        _check_expression(expr)
        raise


def default_encoding(expr: RASPExpr) -> Encoding:
    """S-ops are categorical unless annotated; selectors have no encoding."""
    _check_sop(expr)
    return Encoding.CATEGORICAL


def _is_sop(expr: object) -> bool:
    from tracr.rasp.expressions import SOp

    return isinstance(expr, SOp)


def _check_expression(expr: object) -> None:
    from tracr.rasp.expressions import RASPExpr

    if not isinstance(expr, RASPExpr):
        raise ExpressionError(f"{short_repr(expr)} is not an expression", hint="build one with tracr.rasp")


def _check_sop(expr: object) -> None:
    if not _is_sop(expr):
        raise ExpressionError(
            f"only an s-op has an encoding, not {short_repr(expr)}", hint="annotate the s-op that reads the selector"
        )


DEFAULT_ANNOTATORS: dict[str, Callable[[Any], Any]] = {NAME: default_name, ENCODING: default_encoding}


class Annotations(Mapping[str, Any]):
    """The annotations of an expression (`explicit`), with defaults for the keys in `DEFAULT_ANNOTATORS`."""

    __slots__ = ("_owner", "explicit")

    def __init__(self, owner: RASPExpr, explicit: Mapping[str, Any] | None = None) -> None:
        self._owner = owner
        self.explicit: dict[str, Any] = dict(explicit or {})
        encoding = self.explicit.get(ENCODING)
        if encoding is not None and not isinstance(encoding, Encoding):
            raise ExpressionError(
                f"encoding must be Encoding.CATEGORICAL or Encoding.NUMERICAL, not {encoding!r}",
                hint="use rasp.numerical(sop) or rasp.categorical(sop)",
            )

    def __getitem__(self, key: str) -> Any:
        if key in self.explicit:
            return self.explicit[key]
        if key not in DEFAULT_ANNOTATORS:
            known = sorted({*self.explicit, *DEFAULT_ANNOTATORS})
            raise KeyError(f"no annotation {key!r} on {self._owner!r}; there are {', '.join(known)}")
        return DEFAULT_ANNOTATORS[key](self._owner)

    def __contains__(self, key: object) -> bool:
        return key in self.explicit or key in DEFAULT_ANNOTATORS

    def __iter__(self) -> Iterator[str]:
        return iter(self.explicit)

    def __len__(self) -> int:
        return len(self.explicit)

    def __repr__(self) -> str:
        return repr(self.explicit)


def annotate(expr: E, **annotations: Any) -> E:
    """A copy of `expr` with the annotations added."""
    _check_expression(expr)
    return expr.annotated(**annotations)


def numerical(sop: S) -> S:
    """A copy of `sop` to be stored as a number."""
    _check_sop(sop)
    return annotate(sop, encoding=Encoding.NUMERICAL)


def categorical(sop: S) -> S:
    """A copy of `sop` to be stored as a one-hot code."""
    _check_sop(sop)
    return annotate(sop, encoding=Encoding.CATEGORICAL)


def get_encoding(sop: SOp) -> Encoding:
    """The annotated encoding, categorical by default."""
    _check_sop(sop)
    encoding: Encoding = sop.annotations[ENCODING]
    return encoding


def is_numerical(sop: RASPExpr) -> bool:
    """Whether `sop` is an s-op annotated numerical."""
    return _is_sop(sop) and sop.annotations[ENCODING] is Encoding.NUMERICAL


def is_categorical(sop: RASPExpr) -> bool:
    """Whether `sop` is an s-op annotated categorical, or an s-op without an annotated encoding."""
    return _is_sop(sop) and sop.annotations[ENCODING] is Encoding.CATEGORICAL
