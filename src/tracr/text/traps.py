"""Where the language's precedence is not what most readers expect: a warning, never another meaning."""

from __future__ import annotations

from collections.abc import Iterator

from tracr.errors import Diagnostic
from tracr.text import syntax
from tracr.text.places import Source
from tracr.text.walk import inside

__all__ = ["traps"]

MOST = 10  # in one statement
LONGEST_EXCERPT = 80  # of a part that is shown
Pieces = tuple[str | syntax.Node, ...]
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")


def traps(source: Source, statement: syntax.Statement) -> Iterator[Diagnostic]:
    """A warning for every expression that probably means something else than it seems to."""
    count = 0
    for node in inside(statement):
        found = _trap(node)
        if found is not None and count < MOST:
            count += 1
            meaning, instead = (_written(source, pieces) for pieces in found)
            yield Diagnostic.about(
                source.place(node.span),
                f"this means {meaning}",
                f"write the parentheses; or, if you mean it, {instead}",
            )


def _written(source: Source, pieces: Pieces) -> str:
    """The pieces as they stand in the text, on one line, long ones cut."""
    texts = []
    for piece in pieces:
        start, end = (0, 0) if isinstance(piece, str) else piece.span
        cut = source.text[start : min(end, start + LONGEST_EXCERPT)] + "..." * (end - start > LONGEST_EXCERPT)
        texts.append(piece if isinstance(piece, str) else " ".join(cut.split()))
    return "".join(texts)


def _trap(node: syntax.Node) -> tuple[Pieces, Pieces] | None:
    """The meaning with parentheses, and the other reading."""
    if isinstance(node, syntax.Ternary) and isinstance(node.then, syntax.Ternary):
        first = node.then
        whole: Pieces = ("(", first, ") if ", node.condition, " else ", node.otherwise)
        nested = (first.then, " if ", first.condition, " else (", first.otherwise, " if ", node.condition, " else ")
        return whole, (*nested, node.otherwise, ")")
    if not isinstance(node, syntax.Binary):
        return None
    left, symbol, right = node.left, node.symbol, node.right
    whole = ("(", left, f") {symbol} ", right)
    if symbol == "in" and isinstance(left, syntax.Ternary):
        last = ("(", left.otherwise, " in ", right, ")")
        return whole, (left.then, " if ", left.condition, " else ", *last)
    if isinstance(left, syntax.Unary):
        surprising = (left.symbol == "-" and symbol == "^") or (left.symbol == "not" and symbol not in ("and", "or"))
        return (whole, (f"{left.symbol} (", left.operand, f" {symbol} ", right, ")")) if surprising else None
    if symbol == "%" and isinstance(right, syntax.Binary) and right.symbol in ("*", "/", "//"):
        return (left, " % (", right, ")"), ("(", left, " % ", right.left, f") {right.symbol} ", right.right)
    if not isinstance(left, syntax.Binary):
        return None
    if symbol == left.symbol == "^" or (symbol == "and" and left.symbol == "or"):
        return whole, (left.left, f" {left.symbol} (", left.right, f" {symbol} ", right, ")")
    if symbol in COMPARISONS and left.symbol in COMPARISONS:
        return whole, ("(", left, ") and (", left.right, f" {symbol} ", right, ")")
    if symbol == "in" and left.symbol in ("and", "or", *COMPARISONS):
        return whole, (left.left, f" {left.symbol} (", left.right, " in ", right, ")")
    return None
