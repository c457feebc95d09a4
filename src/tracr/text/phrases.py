"""Phrases: texts with the precedence of their outermost operator, and the forms of the language made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tracr.errors import ExpressionError
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.functions import ConstantOperator, Function, UnaryOperator
from tracr.text.operations import Choice, DictionaryLookup, Item, Member
from tracr.values import Value

__all__ = [
    "CHOICE",
    "CLOSED",
    "COMPARE",
    "INFIX",
    "LOGIC",
    "SUM",
    "UNARY",
    "Phrase",
    "applied",
    "bare_text",
    "by_pairs",
    "by_table",
    "choice",
    "constant_text",
    "infix",
    "logic",
    "looked_up",
    "product",
]

IN, CHOICE, LOGIC, COMPARE, SUM, MODULO, PRODUCT, POWER, UNARY, CLOSED = range(10)
INFIX = {
    "**": ("^", POWER),
    "*": ("*", PRODUCT),
    "/": ("/", PRODUCT),
    "//": ("//", PRODUCT),
    "%": ("%", MODULO),
    "+": ("+", SUM),
    "-": ("-", SUM),
    "both": ("and", LOGIC),
    "either": ("or", LOGIC),
    **{symbol: (symbol, COMPARE) for symbol in ("==", "!=", "<", ">", "<=", ">=")},
}
PREFIX = {"neg": "-", "pos": "+", "not": "not ", "round": "round ", "indicator": "indicator "}


@dataclass(frozen=True)
class Phrase:
    """A text and the precedence of its outermost operator."""

    text: str
    level: int = CLOSED
    sign: str = ""

    def beside(self, level: int) -> str:
        """The text as an operand at that level: chains of one operator need no parentheses on the left."""
        return self.text if self.level >= level else f"({self.text})"


def constant_text(value: Any, expr: RASPExpr) -> str:
    """The text of a constant."""
    if isinstance(value, str) and '"' not in value and "\n" not in value:
        return f'"{value}"'
    if isinstance(value, bool | int | float):
        return f"({value!r})" if value < 0 and not isinstance(value, bool) else repr(value)
    raise ExpressionError(
        f"has the value {value!r}, which cannot be written in the textual language",
        expression=expr,
        hint='it has numbers, booleans, and strings without " and line ends',
    )


def bare_text(value: Any, expr: RASPExpr) -> str:
    """A constant with nothing beside it: a negative number needs no parentheses."""
    text = constant_text(value, expr)
    return text[1:-1] if text.startswith("(") else text


def _listed(items: Iterable[Value], expr: RASPExpr) -> str:
    return ", ".join(constant_text(item, expr) for item in items)


def _entries(entries: Iterable[tuple[Value, Value]], expr: RASPExpr) -> str:
    """The inside of a dictionary."""
    return ", ".join(f"{constant_text(key, expr)}: {constant_text(value, expr)}" for key, value in entries)


def looked_up(entries: Iterable[tuple[Value, Value]], operand: Phrase, expr: RASPExpr) -> Phrase:
    """A dictionary, and the value to look up in it."""
    return Phrase(f"{{{_entries(entries, expr)}}}[{operand.text}]")


def product(factor: Any, phrase: Phrase) -> str:
    """A factor times a phrase; the factor 1 is left out."""
    if factor == 1:
        return phrase.beside(PRODUCT)
    return f"{factor!r} * {phrase.beside(POWER)}" if factor >= 0 else f"({factor!r}) * {phrase.beside(POWER)}"


def infix(symbol: str, fst: Phrase, snd: Phrase) -> Phrase:
    """An operator between two texts, with parentheses wherever precedence is easily misread."""
    sign, level = INFIX[symbol]
    if sign in ("and", "or"):
        return logic(sign, fst, snd)
    if level in (COMPARE, POWER, MODULO):
        return Phrase(f"{fst.beside(level + 1)} {sign} {snd.beside(CLOSED if level != COMPARE else level + 1)}", level)
    return Phrase(f"{fst.beside(level)} {sign} {snd.beside(level + 1)}", level)


def logic(sign: str, fst: Phrase, snd: Phrase) -> Phrase:
    """`and` or `or` between two texts; only chains of one of them need no parentheses."""
    left = fst.text if fst.level > COMPARE or fst.sign == sign else f"({fst.text})"
    right = snd.text if snd.level > COMPARE else f"({snd.text})"
    return Phrase(f"{left} {sign} {right}", LOGIC, sign)


def choice(then: str, condition: str, otherwise: str, phrases: Sequence[Phrase]) -> Phrase:
    """`then if condition else otherwise`; `phrases` has the precedence of each."""
    parts = [
        f"({text})" if phrase.level <= CHOICE else text
        for text, phrase in zip((then, condition, otherwise), phrases, strict=True)
    ]
    return Phrase(f"{parts[0]} if {parts[1]} else {parts[2]}", CHOICE)


def _prefixed(symbol: str, operand: Phrase) -> Phrase:
    """An operator before its operand; names of functions need parentheses."""
    sign = PREFIX[symbol]
    if sign in ("-", "+") or symbol == "not":
        return Phrase(f"{sign}{operand.beside(CLOSED)}", UNARY)
    return Phrase(f"{sign.strip()}({operand.text})", UNARY)


def _sides(operand: Phrase, constant: Phrase, reflected: bool) -> tuple[Phrase, Phrase]:
    return (constant, operand) if reflected else (operand, constant)


def applied(function: Function, operand: Phrase, boolean: bool, expr: RASPExpr) -> Phrase | None:
    """A function of one value, if the language has it."""
    match function:
        case UnaryOperator(symbol=symbol) if symbol in PREFIX:
            return _prefixed(symbol, operand)
        case ConstantOperator(symbol="and" | "or" as symbol, constant=constant) if boolean and constant in (
            True,
            False,
        ):
            return logic(symbol, *_sides(operand, Phrase(constant_text(constant, expr)), function.reflected))
        case ConstantOperator(symbol=symbol, constant=constant) if symbol in INFIX:
            return infix(symbol, *_sides(operand, Phrase(constant_text(constant, expr)), function.reflected))
        case Choice(then=then, otherwise=otherwise):
            return choice(
                constant_text(then, expr),
                operand.text,
                constant_text(otherwise, expr),
                (Phrase(""), operand, Phrase("")),
            )
        case DictionaryLookup(entries=entries):
            return looked_up(entries, operand, expr)
        case Item(items=items):
            return Phrase(f"[{_listed(items, expr)}][{operand.text}]")
        case Member(items=items):
            return Phrase(f"{operand.beside(CLOSED)} in [{_listed(items, expr)}]", IN)
    return None


def by_pairs(table: dict[Value, dict[Value, Value]], fst: Phrase, snd: Phrase, expr: RASPExpr) -> Phrase:
    """A function of two values: for each value of the first a dictionary of the second."""
    rows = {key: _entries(row.items(), expr) for key, row in table.items()}
    groups: dict[str, list[Value]] = {}
    for key, row in rows.items():
        groups.setdefault(row, []).append(key)
    *others, (last, _) = groups.items()
    text = f"{{{last}}}[{snd.text}]"
    for row, keys in reversed(others):
        first = f"{fst.beside(SUM)} == {constant_text(keys[0], expr)}"
        condition = first if len(keys) == 1 else f"({fst.text} in [{', '.join(constant_text(k, expr) for k in keys)}])"
        text = f"{{{row}}}[{snd.text}] if {condition} else ({text})"
    return Phrase(text, CHOICE if others else CLOSED)


def by_table(columns: dict[Value, tuple[Value, ...]], keys: Phrase, queries: Phrase, expr: RASPExpr) -> Phrase:
    """A predicate: for the keys that are selected by the same queries, both as lists."""
    groups: dict[tuple[Value, ...], list[Value]] = {}
    for key, chosen in columns.items():
        groups.setdefault(chosen, []).append(key)
    parts = []
    for chosen, members in groups.items():
        if chosen:
            side = f"select({keys.beside(CLOSED)} in [{', '.join(bare_text(key, expr) for key in members)}], True, ==)"
            rows = f"select(True, {queries.beside(CLOSED)} in [{', '.join(bare_text(q, expr) for q in chosen)}], ==)"
            parts.append(rows if len(members) == len(columns) else f"({side} and {rows})")
    text = " or ".join(parts) if parts else "select(1, 2, ==)"
    return Phrase(text, LOGIC if len(parts) > 1 else CLOSED)
