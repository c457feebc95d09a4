"""`tracr fmt`: formats a text in one style. It keeps comments and every parenthesis of the author."""

from __future__ import annotations

import bisect
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from tracr.errors import InternalError
from tracr.text import syntax
from tracr.text.parser import read
from tracr.text.places import Source, Span

__all__ = ["format_text", "layout"]

INDENT = "  "
WIDTH = 100
COMMENTS = re.compile(r'"[^"\n]*"|(#[^\n]*)')


def format_text(text: str, name: str = "<rasp>") -> str:
    """The formatted text: one statement per line, bodies indented, spaces around operators, at most one empty line.

    >>> print(format_text('y=indices+1;z  =select( y,1,< );# smaller'), end="")
    y = indices + 1;
    z = select(y, 1, <);  # smaller
    """
    source = Source(text, name)
    statements = read(source)
    comments = [match.span(1) for match in COMMENTS.finditer(text) if match[1]]
    laid_out = "".join(f"{line}\n" for line in _Layout(source, comments).block(statements, 0, len(text), ""))
    if not _same(read(Source(laid_out, name)), statements):
        raise InternalError(f"formatting would change what {name} means")
    return laid_out


def layout(node: syntax.Node) -> str:
    """An expression on one line."""
    match node:
        case syntax.Literal():
            return node.text
        case syntax.Name():
            return node.name
        case syntax.Paren():
            return f"({layout(node.inner)})"
        case syntax.List():
            return f"[{_listed(node.items)}]"
        case syntax.Dict():
            return _dictionary(node)
        case syntax.Comprehension():
            return _comprehension(node)
        case syntax.Unary():
            return _unary(node)
        case syntax.Binary():
            return _chain(node)
        case syntax.Ternary():
            return f"{layout(node.then)} if {layout(node.condition)} else {layout(node.otherwise)}"
        case syntax.Filtered():
            return f"{layout(node.value)} if {layout(node.condition)}"
        case syntax.Index():
            return f"{layout(node.target)}[{layout(node.index)}]"
        case syntax.Call():
            return f"{layout(node.target)}({_listed(node.arguments)})"
        case syntax.SelectCall():
            return f"select({layout(node.keys)}, {layout(node.queries)}, {node.comparison})"
        case syntax.Builtin():
            return f"{node.name}({_listed(node.arguments)})"


def _dictionary(node: syntax.Dict) -> str:
    return "{" + ", ".join(f"{layout(key)}: {layout(value)}" for key, value in node.pairs) + "}"


def _comprehension(node: syntax.Comprehension) -> str:
    condition = "" if node.condition is None else f" if {layout(node.condition)}"
    rest = f"{layout(node.value)} for {', '.join(node.names)} in {layout(node.iterable)}{condition}"
    return f"[{rest}]" if node.key is None else "{" + f"{layout(node.key)}: {rest}" + "}"


def _unary(node: syntax.Unary) -> str:
    tight = node.symbol in ("-", "+") or (isinstance(node.operand, syntax.Paren) and node.symbol != "not")
    return f"{node.symbol}{'' if tight else ' '}{layout(node.operand)}"


def _listed(nodes: Sequence[syntax.Node]) -> str:
    return ", ".join(map(layout, nodes))


def _chain(node: syntax.Binary) -> str:
    """A chain of left-associative operators, without recursion."""
    links: list[syntax.Binary] = []
    first: syntax.Node = node
    while isinstance(first, syntax.Binary):
        links.append(first)
        first = first.left
    return layout(first) + "".join(f" {link.symbol} {layout(link.right)}" for link in reversed(links))


class _Layout:
    """Formats statements and the comments between them."""

    def __init__(self, source: Source, comments: list[Span]) -> None:
        self.source, self.comments = source, comments

    def block(self, statements: Sequence[syntax.Statement], start: int, end: int, indent: str) -> list[str]:
        """The lines of some statements and of the comments between `start` and `end`."""
        lines: list[str] = []
        here = start
        for statement in statements:
            if isinstance(statement, syntax.Empty):
                continue
            lines += self.between(here, statement.span[0], indent, after=bool(lines))
            lines += self.laid_out(statement, indent)
            comment, here = self.behind(self.end(statement))
            lines[-1] += comment
        lines += self.between(here, end, indent, after=bool(lines))
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def inside(self, start: int, end: int) -> list[Span]:
        """The comments that begin between `start` and `end`."""
        return self.comments[
            bisect.bisect_left(self.comments, (start, 0)) : bisect.bisect_left(self.comments, (end, 0))
        ]

    def end(self, statement: syntax.Statement) -> int:
        """The offset after a statement and its semicolon."""
        rest = re.compile(r"\s*;").match(self.source.text, statement.span[1])
        return rest.end() if rest else statement.span[1]

    def between(self, start: int, end: int, indent: str, *, after: bool) -> list[str]:
        """Comments on separate lines; one empty line is kept where there was one or more."""
        lines: list[str] = []
        text, here = self.source.text, start
        for comment in self.inside(start, end):
            gap = text[here : comment[0]]
            lines += [""] if gap.count("\n") > 1 and (after or lines) else []
            lines.append(indent + text[slice(*comment)].rstrip())
            here = comment[1]
        lines += [""] if text[here:end].count("\n") > 1 and (after or lines) and text[end:].strip() else []
        return lines

    def behind(self, end: int) -> tuple[str, int]:
        """The comment on the same line, if any, and the offset to continue from."""
        line_end = self.source.text.find("\n", end)
        for start, stop in self.inside(end, line_end if line_end >= 0 else len(self.source.text)):
            if not self.source.text[end:start].strip():
                return f"  {self.source.text[start:stop].rstrip()}", stop
        return "", end

    def laid_out(self, statement: syntax.Statement, indent: str) -> list[str]:
        """The lines of a statement; a statement with a comment inside an expression stays unchanged."""
        match statement:
            case syntax.Definition():
                return self.definition(statement, indent)
            case syntax.Loop():
                return self.loop(statement, indent)
        if self.commented((statement.span[0], self.end(statement))):
            return self.verbatim(statement, indent)
        return [indent + _simple(statement)]

    def definition(self, statement: syntax.Definition, indent: str) -> list[str]:
        """The lines of a function, one line if it fits."""
        if self.commented(statement.head) or any(self.commented(node.span) for node in statement.results):
            return self.verbatim(statement, indent)
        text = self.source.text
        head = f"def {statement.name}({', '.join(statement.parameters)}) {{"
        start = text.index("{", statement.head[1]) + 1
        first, last = statement.results[0].span[0], text.index(";", statement.results[-1].span[1]) + 1
        inside = self.block(statement.body, start, text.rindex("return", start, first), indent + INDENT)
        comment, last = self.behind(last)
        result = f"return {_listed(statement.results)};{comment}"
        behind = self.block((), last, statement.span[1], indent + INDENT)
        line = f"{indent}{head} {result} }}"
        if not inside and not behind and not comment and len(line) <= WIDTH:
            return [line]
        return [indent + head, *inside, indent + INDENT + result, *behind, indent + "}"]

    def loop(self, statement: syntax.Loop, indent: str) -> list[str]:
        """The lines of a loop, one line if it has one short statement."""
        if self.commented((statement.span[0], statement.iterable.span[1])):
            return self.verbatim(statement, indent)
        head = f"{indent}for {', '.join(statement.names)} in {layout(statement.iterable)} {{"
        start = self.source.text.index("{", statement.iterable.span[1]) + 1
        inside = self.block(statement.body, start, statement.span[1] - 1, indent + INDENT)
        one = f"{head} {inside[0].strip()} }}" if len(inside) == 1 and "#" not in inside[0] else ""
        if one and len(one) <= WIDTH and "{" not in inside[0]:
            return [one]
        return [head, *inside, indent + "}"] if inside else [f"{head} }}"]

    def commented(self, span: Span) -> bool:
        """Whether there is a comment inside the span."""
        return bool(self.inside(*span))

    def verbatim(self, statement: syntax.Statement, indent: str) -> list[str]:
        """A statement as it was written."""
        text = self.source.text[statement.span[0] : self.end(statement)]
        return [indent + text]


def _simple(statement: syntax.Statement) -> str:
    match statement:
        case syntax.Expression():
            return f"{layout(statement.value)};"
        case syntax.Assign():
            return f"{', '.join(statement.names)} {statement.symbol}= {_listed(statement.values)};"
        case syntax.Load():
            return f'load "{statement.path}";'
        case syntax.Draw():
            given = "" if statement.given is None else f", {layout(statement.given)}"
            return f"draw({layout(statement.value)}{given});"
        case syntax.SetExample():
            return f"set {statement.kind}{' ' * bool(statement.kind)}example {layout(statement.value)}"
        case syntax.ShowExample():
            return f"show {statement.kind}{' ' * bool(statement.kind)}example"
        case syntax.Examples():
            return f"{statement.kind}{' ' * bool(statement.kind)}examples {'on' if statement.on else 'off'}"
        case syntax.FullDisplay():
            return f"full seq display {'on' if statement.on else 'off'}"
        case syntax.Leave():
            return "exit"
    raise AssertionError(statement)


def _same(first: Any, second: Any) -> bool:
    """Whether two trees are the same apart from places and empty statements."""
    stack = [(first, second)]
    while stack:
        one, other = stack.pop()
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            mine, yours = ([item for item in items if not isinstance(item, syntax.Empty)] for items in (one, other))
            if len(mine) != len(yours):
                return False
            stack.extend(zip(mine, yours, strict=True))
        elif dataclasses.is_dataclass(one) and type(one) is type(other):
            names = [field.name for field in dataclasses.fields(one) if field.name not in ("span", "head")]
            stack.extend((getattr(one, name), getattr(other, name)) for name in names)
        elif one != other:
            return False
    return True
