"""Warnings about precedence that most readers do not expect. They do not change the meaning."""

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
    """A warning for every expression whose meaning is easily misread."""
    count = 0
    for node in inside(statement):
        found = _trap(node)
        if found is not None and count < MOST:
            count += 1
            meaning, instead = (_written(source, pieces) for pieces in found)
            yield Diagnostic.about(
                source.place(node.span),
                f"this means {meaning}",
                f"write these parentheses, or {instead} if you mean that",
            )


def _written(source: Source, pieces: Pieces) -> str:
    """The pieces as the text has them, on one line; long ones are cut."""
    texts = []
    for piece in pieces:
        start, end = (0, 0) if isinstance(piece, str) else piece.span
        cut = source.text[start : min(end, start + LONGEST_EXCERPT)] + "..." * (end - start > LONGEST_EXCERPT)
        texts.append(piece if isinstance(piece, str) else " ".join(cut.split()))
    return "".join(texts)


def _trap(node: syntax.Node) -> tuple[Pieces, Pieces] | None:
    """The meaning with parentheses, and the other reading."""
    if isinstance(node, syntax.Ternary) and isinstance(node.then, syntax.Ternary):
        return _choice_of_a_choice(node, node.then)
    if not isinstance(node, syntax.Binary):
        return None
    left, right = node.left, node.right
    if node.symbol == "in" and isinstance(left, syntax.Ternary):
        last = ("(", left.otherwise, " in ", right, ")")
        return _left_first(node), (left.then, " if ", left.condition, " else ", *last)
    if isinstance(left, syntax.Unary):
        return _sign_first(node, left)
    if node.symbol == "%" and isinstance(right, syntax.Binary) and right.symbol in ("*", "/", "//"):
        return (left, " % (", right, ")"), ("(", left, " % ", right.left, f") {right.symbol} ", right.right)
    return _chained(node, left) if isinstance(left, syntax.Binary) else None


def _left_first(node: syntax.Binary) -> Pieces:
    return ("(", node.left, f") {node.symbol} ", node.right)


def _choice_of_a_choice(node: syntax.Ternary, first: syntax.Ternary) -> tuple[Pieces, Pieces]:
    """`a if b else c if d else e` chooses between the first choice and e."""
    nested = (first.then, " if ", first.condition, " else (", first.otherwise, " if ", node.condition, " else ")
    return ("(", first, ") if ", node.condition, " else ", node.otherwise), (*nested, node.otherwise, ")")


def _sign_first(node: syntax.Binary, left: syntax.Unary) -> tuple[Pieces, Pieces] | None:
    """`-a ^ b` and `not a == b` apply the sign first."""
    power, negation = (left.symbol, node.symbol) == ("-", "^"), left.symbol == "not"
    if power or (negation and node.symbol not in ("and", "or")):
        return _left_first(node), (f"{left.symbol} (", left.operand, f" {node.symbol} ", node.right, ")")
    return None


def _chained(node: syntax.Binary, left: syntax.Binary) -> tuple[Pieces, Pieces] | None:
    """Left-associative operators in a row."""
    first, symbol, right = left.symbol, node.symbol, node.right
    if symbol in COMPARISONS and first in COMPARISONS:
        return _left_first(node), ("(", left, ") and (", left.right, f" {symbol} ", right, ")")
    inside = symbol == "in" and first in ("and", "or", *COMPARISONS)
    if symbol == first == "^" or (first, symbol) == ("or", "and") or inside:
        return _left_first(node), (left.left, f" {first} (", left.right, f" {symbol} ", right, ")")
    return None
