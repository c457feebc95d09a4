"""The content of a drawing: the computation of an expression on an input, layer by layer, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracr.arguments import as_list
from tracr.errors import InputError
from tracr.rasp.annotations import NAME
from tracr.rasp.expressions import Full, Indices, Length, RASPExpr, Select, Selector, Tokens
from tracr.rasp.interpreter import CausalEvaluator, DefaultRASPEvaluator
from tracr.rasp.traversal import topological
from tracr.values import Value

__all__ = ["DrawingPlan", "DrawnHead", "DrawnLayer", "DrawnRow", "plan"]

LONGEST_DRAWN = 60
MOST_ROWS = 300

Parts = tuple[dict[RASPExpr, list[RASPExpr]], list[RASPExpr]]


@dataclass(frozen=True)
class DrawnRow:
    """The values of an s-op, one for each position."""

    label: str
    values: tuple[Value, ...]
    result: bool = False


@dataclass(frozen=True)
class DrawnHead:
    """A selector as a grid (row = query, column = key) with the labels of its sides, and the s-ops that read it."""

    label: str
    grid: tuple[tuple[bool, ...], ...]
    keys: tuple[Value, ...]
    queries: tuple[Value, ...]
    rows: tuple[DrawnRow, ...]


@dataclass(frozen=True)
class DrawnLayer:
    """Heads side by side, then the elementwise s-ops that follow them."""

    heads: tuple[DrawnHead, ...]
    rows: tuple[DrawnRow, ...]


@dataclass(frozen=True)
class DrawingPlan:
    """All layers; the first has no heads and holds the inputs."""

    title: str
    tokens: tuple[Value, ...]
    layers: tuple[DrawnLayer, ...]


def plan(expr: RASPExpr, xs: Sequence[Value], causal: bool = False) -> DrawingPlan:
    """The computation of `expr` on `xs`; `causal`: no position attends to later ones.

    A head is in the layer after everything it reads. An elementwise s-op is shown if it has a name, if a head reads
    it, or if it is the drawn expression.
    """
    from tracr.text.printer import texts_of

    tokens = _checked_input(xs)
    values = (CausalEvaluator() if causal else DefaultRASPEvaluator()).evaluate_all([expr], tokens)
    texts = texts_of(expr)
    layers = _sorted_into_layers(expr, values, tokens)
    if sum(len(heads) + len(rows) for heads, rows in layers) > MOST_ROWS:
        raise InputError(f"the program has more than {MOST_ROWS} parts, too many to draw", hint="draw a part of it")

    def row(part: RASPExpr) -> DrawnRow:
        return DrawnRow(texts[part], tuple(values[part]), part is expr)

    def head(selector: RASPExpr, readers: list[RASPExpr]) -> DrawnHead:
        sides = selector.children if isinstance(selector, Select) else ()
        keys, queries = (tuple(values[side]) for side in sides) if sides else (tuple(tokens), tuple(tokens))
        grid = tuple(tuple(map(bool, line)) for line in values[selector])
        return DrawnHead(texts[selector], grid, keys, queries, tuple(row(reader) for reader in readers))

    made = [DrawnLayer(tuple(head(*item) for item in heads.items()), tuple(map(row, rows))) for heads, rows in layers]
    return DrawingPlan(_title(expr, tokens), tuple(tokens), tuple(made))


def _checked_input(xs: Sequence[Value]) -> list[Any]:
    """The tokens of an input that can be drawn."""
    tokens = as_list("the input", xs, error=InputError)
    if not tokens:
        raise InputError("an empty input has nothing to draw", hint='draw(x, "abc")')
    if len(tokens) > LONGEST_DRAWN:
        raise InputError(
            f"an input of {len(tokens)} tokens is too long to draw", hint=f"up to {LONGEST_DRAWN} can be read"
        )
    return tokens


def _sorted_into_layers(expr: RASPExpr, values: Mapping[RASPExpr, Any], tokens: list[Any]) -> list[Parts]:
    """For each layer: its selectors with the s-ops that read them, and the other s-ops that are shown."""
    depths = _depths(expr)
    exprs = topological([expr])
    attending = [part for part in exprs if isinstance(part, Selector) or _selector_of(part) is not None]
    read = {child for part in attending for child in part.children}
    layers: list[Parts] = [({}, []) for _ in range(max(depths.values()) + 1)]
    for part in exprs:
        heads, rows = layers[depths[part]]
        selector = _selector_of(part)
        if selector is not None:
            heads.setdefault(selector, []).append(part)
        elif isinstance(part, Selector):
            if part is expr:
                heads.setdefault(part, [])
        elif part is expr or (_worth_a_row(part, part in read) and values[part] != tokens):
            rows.append(part)
    return layers


def _selector_of(expr: RASPExpr) -> Selector | None:
    """The selector that an s-op reads through, if it looks at other positions."""
    found = (child for child in expr.children if isinstance(child, Selector))
    return None if isinstance(expr, Selector) else next(found, None)


def _title(expr: RASPExpr, tokens: list[Any]) -> str:
    plain = all(isinstance(token, str) and len(token) == 1 for token in tokens)
    return f'{expr.name}("{"".join(tokens)}")' if plain else f"{expr.name}({tokens!r})"


def _worth_a_row(expr: RASPExpr, read: bool) -> bool:
    if isinstance(expr, Full | Tokens):
        return False
    return read or NAME in expr.annotations.explicit or isinstance(expr, Indices | Length)


def _depths(expr: RASPExpr) -> dict[RASPExpr, int]:
    """The layer of every part: for a head one more than the latest layer it reads, else that layer."""
    depths: dict[RASPExpr, int] = {}
    for part in topological([expr]):
        latest = max((depths[child] for child in part.children), default=0)
        attends = _selector_of(part) is not None or (isinstance(part, Selector) and part is expr)
        depths[part] = latest + attends
    return depths
