"""Reads text into a syntax tree. Errors say where the text is wrong and what to write instead."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from tracr.errors import SourceError
from tracr.extras import need
from tracr.spelling import did_you_mean
from tracr.text import syntax
from tracr.text.places import Source, Span

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

__all__ = ["FUNCTIONS", "RESERVED", "UnfinishedError", "read", "read_expression"]

LONGEST_SOURCE = 100_000  # characters
DEEPEST = 100  # nested brackets and operators
LINE_STATEMENTS = ("_SET", "_SHOW", "_EXAMPLES", "_FULL", "_EXIT", "KIND")
COMMANDS = ("set", "show", "examples", "selector", "load", "draw", "exit", "quit")
RESERVED = (*COMMANDS, "def", "return", "for", "in", "if", "else", "not", "and", "or", "round", "indicator")
FUNCTIONS = ("select", "aggregate", "range", "zip", "len")  # of the grammar; the library defines the others
OPEN = {"(": ")", "[": "]", "{": "}"}
WORDS = re.compile(r'"[^"\n]*"|#[^\n]*|\w+|\S')


class UnfinishedError(SourceError):
    """A text that ends in the middle of a statement: more may follow."""


def read(source: Source) -> list[syntax.Statement]:
    """The statements of a text.

    >>> [type(statement).__name__ for statement in read(Source("y = indices + 1; y;"))]
    ['Assign', 'Expression']
    """
    lark = need("lark")
    if len(source.text) > LONGEST_SOURCE:
        raise SourceError(
            f"{source.name} has {len(source.text):,} characters; {LONGEST_SOURCE:,} are the most that are read",
            hint="check that it is a program",
        )
    try:
        tree = _parser().parse(source.text)
    except lark.exceptions.UnexpectedInput as error:
        raise _explained(source, error) from None
    return _Builder(source).build(tree)


def read_expression(source: Source) -> syntax.Node:
    """The only expression of a text."""
    statements = read(Source(f"{source.text};", source.name))
    if len(statements) != 1 or not isinstance(statements[0], syntax.Expression):
        raise SourceError(
            "expected one expression",
            expression=source.place((0, len(source.text))),
            hint="write one expression, without a semicolon",
        )
    return statements[0].value


class _Lines:
    """Turns the newline that ends an interactive statement into an `_EOL`, and drops all other newlines."""

    always_accept = ("_NEWLINE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        from lark import Token

        depth, in_line, token = 0, False, None
        for token in stream:
            if token.type == "_NEWLINE":
                if in_line and depth == 0:
                    in_line = False
                    yield Token.new_borrow_pos("_EOL", "", token)
                continue
            in_line = (in_line or token.type in LINE_STATEMENTS) and not (token == ";" and depth == 0)
            depth += token.endswith(("(", "[", "{")) - (token in (")", "]", "}")) if token.type != "STRING" else 0
            yield token
        if in_line and token is not None:
            yield Token.new_borrow_pos("_EOL", "", token)


@functools.cache
def _parser() -> Lark:
    from lark import Lark

    grammar = resources.files("tracr.text").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, postlex=_Lines())


# Building the tree


class _Builder:
    """Turns lark's tree into a tree of `syntax.py`, from the leaves up and without recursion."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def build(self, tree: Tree[Token]) -> list[syntax.Statement]:
        """The statements."""
        from lark import Tree

        made: dict[int, Any] = {}
        depths: dict[int, int] = {}
        for subtree in tree.iter_subtrees():
            children = [made[id(child)] if isinstance(child, Tree) else child for child in subtree.children]
            inside = [depths.get(id(child), 0) for child in subtree.children]
            if subtree.data == "binary":  # a left-associative chain is followed without recursion
                inside[0] -= 1
            depths[id(subtree)] = 1 + max(inside, default=0)
            span = (getattr(subtree.meta, "start_pos", 0), getattr(subtree.meta, "end_pos", 0))
            if depths[id(subtree)] > DEEPEST:
                raise SourceError(
                    f"more than {DEEPEST} brackets or operators are nested",
                    expression=self.source.place(span),
                    hint="give a part of it a name",
                )
            method: Callable[..., Any] = getattr(self, str(subtree.data))
            made[id(subtree)] = method(span, *children)
        statements: list[syntax.Statement] = made[id(tree)]
        return statements

    def start(self, span: Span, *statements: syntax.Statement) -> list[syntax.Statement]:
        return list(statements)

    def names(self, span: Span, *names: Token) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise SourceError(
                    f"the name {name} occurs twice here", expression=self.source.place(span), hint="use another name"
                )
        return tuple(map(str, names))

    def exprs(self, span: Span, *exprs: syntax.Node) -> tuple[syntax.Node, ...]:
        return exprs

    def pairs(self, span: Span, *exprs: syntax.Node) -> tuple[tuple[syntax.Node, syntax.Node], ...]:
        return tuple(zip(exprs[::2], exprs[1::2], strict=True))

    # statements

    def expression(self, span: Span, value: syntax.Node) -> syntax.Expression:
        return syntax.Expression(span, value)

    def assign(self, span: Span, names: tuple[str, ...], values: tuple[syntax.Node, ...]) -> syntax.Assign:
        return syntax.Assign(span, names, values)

    def augment(self, span: Span, name: Token, symbol: Token, value: syntax.Node) -> syntax.Assign:
        return syntax.Assign(span, (str(name),), (value,), symbol[:-1])

    def load(self, span: Span, path: Token) -> syntax.Load:
        return syntax.Load(span, path[1:-1])

    def draw(self, span: Span, value: syntax.Node, given: syntax.Node | None) -> syntax.Draw:
        return syntax.Draw(span, value, given)

    def definition(self, span: Span, name: Token, parameters: tuple[str, ...] | None, *rest: Any) -> syntax.Definition:
        head = (span[0], self.source.text.index(")", name.end_pos or 0) + 1)
        return syntax.Definition(span, str(name), parameters or (), rest[:-1], rest[-1], head)

    def loop(self, span: Span, names: tuple[str, ...], iterable: syntax.Node, *body: syntax.Statement) -> syntax.Loop:
        return syntax.Loop(span, names, iterable, body)

    def set_example(self, span: Span, kind: Token | None, value: syntax.Node) -> syntax.SetExample:
        return syntax.SetExample(span, str(kind or ""), value)

    def show_example(self, span: Span, kind: Token | None) -> syntax.ShowExample:
        return syntax.ShowExample(span, str(kind or ""))

    def examples(self, span: Span, kind: Token | None, switch: Token) -> syntax.Examples:
        return syntax.Examples(span, str(kind or ""), switch == "on")

    def full_display(self, span: Span, switch: Token) -> syntax.FullDisplay:
        return syntax.FullDisplay(span, switch == "on")

    def leave(self, span: Span) -> syntax.Leave:
        return syntax.Leave(span)

    def empty(self, span: Span) -> syntax.Empty:
        return syntax.Empty(span)

    # expressions

    def number(self, span: Span, text: Token) -> syntax.Literal:
        if len(text) > 300:
            raise SourceError(
                f"a number of {len(text):,} digits is too large",
                expression=self.source.place(span),
                hint="use a smaller number",
            )
        value = int(text) if text.isdecimal() else float(text)
        if value == math.inf:
            raise SourceError(
                f"the number {text} is too large", expression=self.source.place(span), hint="use a smaller number"
            )
        return syntax.Literal(span, value, str(text))

    def string(self, span: Span, text: Token) -> syntax.Literal:
        return syntax.Literal(span, text[1:-1], str(text))

    def name(self, span: Span, name: Token) -> syntax.Name:
        return syntax.Name(span, str(name))

    def paren(self, span: Span, inner: syntax.Node) -> syntax.Paren:
        return syntax.Paren(span, inner)

    def list(self, span: Span, items: tuple[syntax.Node, ...] | None) -> syntax.List:
        return syntax.List(span, items or ())

    def dict(self, span: Span, pairs: tuple[tuple[syntax.Node, syntax.Node], ...] | None) -> syntax.Dict:
        return syntax.Dict(span, pairs or ())

    def list_comprehension(
        self, span: Span, value: syntax.Node, names: tuple[str, ...], iterable: syntax.Node
    ) -> syntax.Comprehension:
        return self._comprehension(span, None, value, names, iterable)

    def dict_comprehension(
        self, span: Span, key: syntax.Node, value: syntax.Node, names: tuple[str, ...], iterable: syntax.Node
    ) -> syntax.Comprehension:
        return self._comprehension(span, key, value, names, iterable)

    def _comprehension(
        self, span: Span, key: syntax.Node | None, value: syntax.Node, names: tuple[str, ...], iterable: syntax.Node
    ) -> syntax.Comprehension:
        if isinstance(iterable, syntax.Filtered):
            return syntax.Comprehension(span, key, value, names, iterable.value, iterable.condition)
        return syntax.Comprehension(span, key, value, names, iterable, None)

    def unary(self, span: Span, symbol: Token, operand: syntax.Node) -> syntax.Unary:
        return syntax.Unary(span, str(symbol), operand)

    def binary(self, span: Span, left: syntax.Node, symbol: Token, right: syntax.Node) -> syntax.Binary:
        return syntax.Binary(span, str(symbol), left, right)

    def ternary(self, span: Span, then: syntax.Node, condition: syntax.Node, otherwise: syntax.Node) -> syntax.Ternary:
        return syntax.Ternary(span, then, condition, otherwise)

    def filtered(self, span: Span, value: syntax.Node, condition: syntax.Node) -> syntax.Filtered:
        return syntax.Filtered(span, value, condition)

    def index(self, span: Span, target: syntax.Node, index: syntax.Node) -> syntax.Index:
        return syntax.Index(span, target, index)

    def call(self, span: Span, target: syntax.Node, arguments: tuple[syntax.Node, ...] | None) -> syntax.Call:
        return syntax.Call(span, target, arguments or ())

    def select(self, span: Span, keys: syntax.Node, queries: syntax.Node, comparison: Token) -> syntax.SelectCall:
        return syntax.SelectCall(span, keys, queries, str(comparison))

    def builtin(self, span: Span, name: Token, arguments: tuple[syntax.Node, ...] | None) -> syntax.Builtin:
        return syntax.Builtin(span, name[:-1].strip(), arguments or ())


# Explaining syntax errors


def _explained(source: Source, error: Any) -> SourceError:
    """The error at the place where lark stopped."""
    from lark.exceptions import UnexpectedCharacters

    expected = _expected(error)
    words = [match for match in WORDS.finditer(source.text) if not match[0].startswith("#")]
    token = getattr(error, "token", None)
    if token is not None and token.type in ("$END", "_EOL"):
        return _unfinished(source, words, expected)
    at = (error.pos_in_stream if isinstance(error, UnexpectedCharacters) else error.token.start_pos) or 0
    text = next((match[0] for match in words if match.end() > at), source.text[at : at + 1])
    before = [match for match in words if match.end() <= at]
    earlier = _fault_of_an_earlier_line(source, at, text, before, expected)
    if earlier is not None:
        return earlier
    place = source.place((at, at + len(text)))
    return SourceError(f"{text} is not allowed here", expression=place, hint=_advice(text, before, expected))


def _expected(error: Any) -> set[str]:
    """The kinds of words that lark would have accepted."""
    for name in ("accepts", "expected", "allowed"):
        if found := getattr(error, name, None):
            return set(found)
    return set()


def _fault_of_an_earlier_line(
    source: Source, at: int, text: str, before: list[re.Match[str]], expected: set[str]
) -> SourceError | None:
    """A statement without its semicolon, or a bracket that is still open, on a line before `at`."""
    line = source.position(at)[0]
    if before and "SEMICOLON" in expected and source.position(before[-1].start())[0] < line:
        end = before[-1].end()
        return SourceError(
            "the statement on this line does not end",
            expression=source.place((end, end + 1)),
            hint=f"put a ; at its end (the next line begins with {text})",
        )
    bracket = _never_closed(before)
    if bracket is not None and bracket[0] != "{" and source.position(bracket.start())[0] < line:
        return SourceError(
            f"this {bracket[0]} is not closed",
            expression=source.place(bracket.span()),
            hint=f"close it with {OPEN[bracket[0]]}; {text} on line {line} is not allowed inside it",
        )
    return None


def _unfinished(source: Source, words: list[re.Match[str]], expected: set[str]) -> SourceError:
    bracket = _never_closed(words)
    if bracket is not None:
        return UnfinishedError(
            f"this {bracket[0]} is never closed",
            expression=source.place(bracket.span()),
            hint=f"close it with {OPEN[bracket[0]]}",
        )
    end = words[-1].end() if words else 0
    what = "the last statement does not end" if "SEMICOLON" in expected else "the text ends inside a statement"
    hint = "put a ; at its end" if "SEMICOLON" in expected else "complete it"
    return UnfinishedError(what, expression=source.place((end, end + 1)), hint=hint)


def _never_closed(words: list[re.Match[str]]) -> re.Match[str] | None:
    """The innermost bracket that is still open after the words."""
    opened: list[re.Match[str]] = []
    for word in words:
        if word[0] in OPEN:
            opened.append(word)
        elif opened and word[0] == OPEN[opened[-1][0]]:
            opened.pop()
    return opened[-1] if opened else None


STATEMENTS = "the statements are: assignments, def, for, load, draw, and expressions"
OPERATORS = "the logical operators are and, or, not"
ADVICE_ON_PAIRS = {("*", "*"): "a power is written ^"}
ADVICE_BEHIND = {
    "lambda": "there is no lambda; write def f(x) { return ...; }",
    **dict.fromkeys(("while", "elif", "class", "import"), STATEMENTS),
}
ADVICE_ON = {
    "'": 'strings are written with double quotes: "a"',
    "=": "= comes after a name, at the start of a statement; == compares",
    **dict.fromkeys(("&", "|", "!", "~"), OPERATORS),
    "}": "a function ends with return ...; and a statement with ;",
    "return": "a function has one return, as its last statement",
    **dict.fromkeys(("while", "else", "elif", "class", "import"), STATEMENTS),
}


def _advice(text: str, before: list[re.Match[str]], expected: set[str]) -> str:
    """A hint that says what to write instead, for common mistakes."""
    last = before[-1][0] if before else ""
    if misspelt := _misspelt(text, before):
        return misspelt
    if text.startswith('"'):
        return 'a string is written "...", on one line and without a " inside; there are no escapes'
    if text == "=" and last in RESERVED:
        return f"{last} is a word of the language; choose another name"
    if text in RESERVED and "NAME" in expected:
        return f"{text} is a word of the language and cannot be a name"
    if (last, text) in ADVICE_ON_PAIRS:
        return ADVICE_ON_PAIRS[last, text]
    if last in ADVICE_BEHIND:
        return ADVICE_BEHIND[last]
    if text in ADVICE_ON:
        return ADVICE_ON[text]
    if expected and expected <= {"COMPARE"}:
        return "the third argument of select is one of == != < > <= >="
    if "SEMICOLON" in expected:
        return "if a statement ends before it, put a ; there"
    return ""


def _misspelt(text: str, before: list[re.Match[str]]) -> str:
    """A question if a word of the language is misspelt here: the word before, the word itself, or `select`.

    A comparison is allowed only in `select`. A word that occurs earlier in the text is taken for a name.
    """
    words = [word[0] for word in before]
    if text not in ("=", "!", "<", ">"):
        return _meant(words, RESERVED) or _meant([*words, text], RESERVED)
    bracket = _never_closed(before)
    if bracket is None or bracket[0] != "(":
        return ""
    return _meant([word[0] for word in before if word.end() <= bracket.start()], ("select",))


def _meant(words: list[str], known: tuple[str, ...]) -> str:
    """A question if the last word differs little from a known one, by at most one letter more or less."""
    word = words[-1] if words else ""
    if words.count(word) != 1 or word in RESERVED or len(word) < 2 or not word.isidentifier():
        return ""
    return did_you_mean(word, [other for other in known if abs(len(other) - len(word)) <= 1])
