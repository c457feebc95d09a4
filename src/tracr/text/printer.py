"""Prints expressions as text: those read from text, and those built in Python if the language can express them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tracr.arguments import as_list, whole
from tracr.errors import ExpressionError, SourceError
from tracr.ir.graph import unique_labels
from tracr.rasp.annotations import NAME, TYPED
from tracr.rasp.expressions import (
    Aggregate,
    ConstantSelector,
    ConstantSOp,
    Full,
    Indices,
    Length,
    LinearSequenceMap,
    Map,
    RASPExpr,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    Tokens,
)
from tracr.rasp.functions import BinaryOperator, Comparison, Composition
from tracr.rasp.traversal import topological
from tracr.text.booleans import gives_boolean, is_boolean
from tracr.text.library import CONSTANTS, library
from tracr.text.operations import ChoiceElse, ChoiceThen, Kept, Otherwise
from tracr.text.parser import RESERVED
from tracr.text.phrases import (
    CHOICE,
    CLOSED,
    INFIX,
    LOGIC,
    SUM,
    UNARY,
    Phrase,
    applied,
    bare_text,
    by_pairs,
    by_table,
    choice,
    constant_text,
    infix,
    logic,
    looked_up,
    product,
)
from tracr.text.places import Source
from tracr.text.runner import Runner, SessionSettings
from tracr.text.tables import Tables, tables_of
from tracr.values import Value, as_value, short_repr

__all__ = ["texts_of", "to_rasp"]


OFF = "examples off\n"
LONGEST_TEXT = 300  # of a shown expression without a name
INLINE_WIDTH = 88  # an unnamed expression longer than this gets a separate line


def texts_of(program: RASPExpr) -> dict[RASPExpr, str]:
    """Every expression as its reader writes it: by its name if it has one; a Python function by its name."""
    printer = _Printer(program, None, None)
    for expr in printer.exprs:
        own = expr.annotations.explicit.get(NAME)
        try:
            phrase = Phrase(bare_text(expr.fill, expr)) if isinstance(expr, Full) else printer.phrase(expr)
        except ExpressionError:
            phrase = Phrase(repr(expr))
        named = own is not None and expr not in OWN
        printer.texts[expr] = Phrase(expr.name) if named or len(phrase.text) > LONGEST_TEXT else phrase
    return {expr: phrase.text for expr, phrase in printer.texts.items()}


def to_rasp(expr: RASPExpr, *, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> str:
    """The text of a program that defines `expr`; its last line is `name = ...;`.

    It begins with `set example` if the text that `expr` was read from did, or if the program fails on the default
    example; with `examples off` if no example is known.

    Args:
        expr: an s-op or a selector, read from text or built in Python.
        vocab: the tokens, needed to write a Python function as a table.
        max_seq_len: the length of the longest input, needed for the same reason.

    Raises an `ExpressionError` for anything that the language cannot express: `None`, values other than numbers,
    strings and booleans, and functions that cannot be tabulated.

    >>> from tracr.rasp import rasp
    >>> hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist")
    >>> print(to_rasp(hist > 1, vocab="ab"))
    hist = selector_width(select(tokens, tokens, ==));
    y = hist > 1;
    >>> print(to_rasp(rasp.Map(lambda x: x.upper(), rasp.tokens), vocab="ab", max_seq_len=3))
    set example "ab"
    y = {"a": "A", "b": "B"}[tokens];
    """
    if not isinstance(expr, RASPExpr):
        raise ExpressionError(
            f"only an s-op or a selector is printed, not {short_repr(expr)}",
            hint="to print a function, print its result: assign f(tokens) to a name",
        )
    given = None if vocab is None else as_list("vocab", vocab, error=ExpressionError)
    tokens = None if given is None else list(dict.fromkeys(map(as_value, given)))
    max_seq_len = None if max_seq_len is None else whole("max_seq_len", max_seq_len, 1, error=ExpressionError)
    text = _Printer(expr, tokens, max_seq_len).program()
    return _settings(expr, tokens, max_seq_len, text) + text


def _settings(expr: RASPExpr, vocab: list[Value] | None, max_seq_len: int | None, text: str) -> str:
    """The statements that a program needs before it: they set the example that its definitions are checked on."""
    own = getattr(expr.origin, "example", "")
    made = SessionSettings.of(vocab, max_seq_len).statements if vocab else ""
    tries = (own, f"{own}{OFF}") if own else ("", made, OFF)
    return next((settings for settings in tries if _can_be_read(settings + text)), own)


def _can_be_read(text: str) -> bool:
    runner = Runner(notify=lambda trap: None)
    try:
        return all(True for _ in runner.run(Source(text)))
    except SourceError:
        return False


class _Printer:
    """Gives a line to an expression that has a name, is read twice or is long; writes others inside their reader."""

    def __init__(self, program: RASPExpr, vocab: list[Value] | None, max_seq_len: int | None) -> None:
        self.root = program
        self.vocab, self.max_seq_len = vocab, max_seq_len
        self.exprs = topological([program])
        self.texts: dict[RASPExpr, Phrase] = {}
        self.booleans: set[RASPExpr] = set()  # s-ops that may hold booleans
        self._tables: Tables | None = None

    def program(self) -> str:
        readers = Counter(child for expr in self.exprs for child in expr.children)
        taken = {*CONSTANTS, *library(), *RESERVED, "tokens"}
        lines: list[str] = []
        for expr in self.exprs:
            phrase = self.phrase(expr)
            self.booleans |= {expr} if self.may_hold_booleans(expr) else set()
            if expr is self.root or self.has_a_line(expr, phrase, readers[expr]):
                own = expr.annotations.explicit.get(NAME)
                (name,) = unique_labels([_identifier(own) if own else "y" if expr is self.root else "part"], taken)
                taken.add(name)
                lines.append(f"{name} = {phrase.text};")
                phrase = Phrase(name)
            self.texts[expr] = phrase
        return "\n".join(lines)

    def has_a_line(self, expr: RASPExpr, phrase: Phrase, readers: int) -> bool:
        """Whether an expression is assigned to a name, rather than written where it is read."""
        if isinstance(expr, Tokens | Indices | Length | Full) or expr in OWN or _is_half(expr):
            return False
        return NAME in expr.annotations.explicit or readers > 1 or len(phrase.text) > INLINE_WIDTH

    @property
    def tables(self) -> Tables:
        """The Python functions as tables over the values that occur."""
        if self._tables is None:
            if self.vocab is None or self.max_seq_len is None:
                raise ExpressionError(
                    "a Python function is written as a table, which needs the values of its inputs",
                    hint='pass vocab and max_seq_len: to_rasp(program, vocab="ab", max_seq_len=5)',
                )
            self._tables = tables_of(self.root, self.vocab, self.max_seq_len)
        return self._tables

    def phrase(self, expr: RASPExpr) -> Phrase:
        """An expression whose children have texts."""
        if expr in OWN:
            return Phrase(OWN[expr])
        if isinstance(expr, Selector):
            return self.selector(expr)
        if not expr.children:
            return self.source(expr)
        children = [self.texts[child] for child in expr.children]
        match expr:
            case Map():
                return self.mapped(expr, children[0])
            case LinearSequenceMap():
                sign = "-" if expr.snd_fac < 0 else "+"
                return Phrase(
                    f"{product(expr.fst_fac, children[0])} {sign} {product(abs(expr.snd_fac), children[1])}", SUM
                )
            case SequenceMap():
                return self.paired(expr, *children)
            case Aggregate():
                return self.aggregated(expr)
            case SelectorWidth():
                return Phrase(f"selector_width({children[0].text})")
        raise _formless(expr)

    def source(self, expr: RASPExpr) -> Phrase:
        """An s-op that is made of no other."""
        match expr:
            case Tokens():
                strings = self.vocab is not None and all(isinstance(token, str) for token in self.vocab)
                return Phrase("tokens" if strings else "tokens_asis")
            case Indices() | Length():
                return Phrase(expr.default_name)
            case Full():
                value = constant_text(expr.fill, expr)
                return Phrase(f"{value} if indices >= 0 else {value}", CHOICE)
            case ConstantSOp():
                return Phrase(f"[{', '.join(constant_text(value, expr) for value in expr.value)}][indices]")
        raise _formless(expr)

    def selector(self, expr: Selector) -> Phrase:
        """A selector, or a combination of selectors."""
        children = [self.texts[child] for child in expr.children]
        match expr:
            case Select():
                return self.selected(expr)
            case SelectorNot():
                return Phrase(f"not {children[0].beside(CLOSED)}", UNARY)
            case SelectorAnd() | SelectorOr():
                return logic("and" if isinstance(expr, SelectorAnd) else "or", *children)
            case ConstantSelector():
                return by_table(self.tables.selectors[expr].columns(), Phrase("indices"), Phrase("indices"), expr)
        raise _formless(expr)

    def argument(self, expr: RASPExpr) -> str:
        """An s-op as an argument of select and aggregate, where a constant is written as a plain value."""
        return bare_text(expr.fill, expr) if isinstance(expr, Full) else self.texts[expr].text

    def mapped(self, expr: Map, phrase: Phrase) -> Phrase:
        """A function of one s-op, or several in a row."""
        functions = expr.f.functions() if isinstance(expr.f, Composition) else [expr.f]
        boolean = is_boolean(expr.inner)
        for function in functions:
            written = applied(function, phrase, boolean, expr)
            if written is None:
                return self.tabulated(expr, self.texts[expr.inner])
            phrase, boolean = written, gives_boolean(function, boolean)
        return phrase

    def tabulated(self, expr: Map, operand: Phrase) -> Phrase:
        """A Python function as a dictionary of the values it gets."""
        return looked_up(self.tables.maps[expr], operand, expr)

    def paired(self, expr: SequenceMap, fst: Phrase, snd: Phrase) -> Phrase:
        """A function of two s-ops."""
        match expr.f:
            case BinaryOperator(symbol="and" | "or" as symbol) if is_boolean(expr.fst) and is_boolean(expr.snd):
                return logic(symbol, fst, snd)
            case BinaryOperator(symbol="and"):
                return choice(snd.text, fst.text, fst.text, (snd, fst, fst))
            case BinaryOperator(symbol="or"):
                return choice(fst.text, fst.text, snd.text, (fst, fst, snd))
            case BinaryOperator(symbol=symbol) if symbol in INFIX:
                return infix(symbol, fst, snd)
            case ChoiceThen(otherwise=value):
                return choice(snd.text, fst.text, constant_text(value, expr), (snd, fst, Phrase("")))
            case ChoiceElse(then=value):
                return choice(constant_text(value, expr), fst.text, snd.text, (Phrase(""), fst, snd))
            case Kept():  # the first half: `fst if snd`, which its reader completes
                return Phrase(f"{snd.beside(LOGIC)} if {fst.beside(LOGIC)}", CHOICE)
            case Otherwise():
                return Phrase(f"{fst.text} else {snd.beside(LOGIC)}", CHOICE)
        return by_pairs(self.tables.pairs[expr], fst, snd, expr)

    def selected(self, expr: Select) -> Phrase:
        """A selector."""
        if expr.predicate is Comparison.TRUE:
            return Phrase("full_s")
        if expr.predicate is Comparison.FALSE:
            return Phrase("select(1, 2, ==)")
        keys, queries = self.argument(expr.keys), self.argument(expr.queries)
        if isinstance(expr.predicate, Comparison):
            return Phrase(f"select({keys}, {queries}, {expr.predicate.value})")
        table = self.tables.selectors[expr]
        comparison = table.comparison()
        if comparison is not None:
            return Phrase(f"select({keys}, {queries}, {comparison.value})")
        return by_table(table.columns(), self.texts[expr.keys], self.texts[expr.queries], expr)

    def aggregated(self, expr: Aggregate) -> Phrase:
        """An aggregate; the default 0 is left out."""
        default = expr.default
        if default is None:
            if not self.tables.always(expr.selector):
                raise ExpressionError(
                    "gives None where nothing is selected, and the textual language has no None",
                    expression=expr,
                    hint="give Aggregate a default",
                )
            default = 0
        third = "" if type(default) is int and default == 0 else f", {bare_text(default, expr)}"
        return Phrase(f"aggregate({self.texts[expr.selector].text}, {self.averaged(expr)}{third})")

    def averaged(self, expr: Aggregate) -> str:
        """The s-op that an aggregate reads; booleans, which have a mean only in Python, become numbers."""
        if expr.sop not in self.booleans or expr.annotation(TYPED) is not None:
            return self.argument(expr.sop)
        text = self.texts[expr.sop].text
        return f"indicator({text})" if is_boolean(expr.sop) else f"({text}) + 0"

    def may_hold_booleans(self, expr: RASPExpr) -> bool:
        """Whether an s-op may hold a boolean, as far as the printer knows."""
        values = self.listed_values(expr)
        if values is not None:
            return any(isinstance(value, bool) for value in values)
        match expr:
            case Aggregate():
                return expr.sop in self.booleans or isinstance(expr.default, bool)
            case SequenceMap(f=BinaryOperator(symbol="and" | "or")):
                return not self.booleans.isdisjoint(expr.children)
        return is_boolean(expr)

    def listed_values(self, expr: RASPExpr) -> Iterable[Value] | None:
        """The values of an s-op, if they are known: those of the vocabulary, of a constant or of a table."""
        match expr:
            case Tokens():
                return self.vocab or ()
            case Full():
                return [expr.fill]
            case ConstantSOp():
                return expr.value
            case Map() if self._tables is not None and expr in self._tables.maps:
                return [value for _, value in self._tables.maps[expr]]
            case SequenceMap() if self._tables is not None and expr in self._tables.pairs:
                return [value for row in self._tables.pairs[expr].values() for value in row.values()]
        return None


OWN: dict[RASPExpr, str] = {
    value: "tokens" if name == "tokens_str" else name
    for name, value in {**CONSTANTS, **library()}.items()
    if isinstance(value, RASPExpr)
}


def _formless(expr: RASPExpr) -> ExpressionError:
    return ExpressionError(f"{expr!r} has no form in the textual language", hint="use the classes of tracr.rasp")


def _is_half(expr: RASPExpr) -> bool:
    """Whether an s-op is the first half of a choice, which its reader completes."""
    return isinstance(getattr(expr, "f", None), Kept)


def _identifier(name: str) -> str:
    """A valid name of the language similar to this one."""
    text = re.sub(r"\W+", "_", str(name))
    return text if text and not text[0].isdigit() else f"x{text}"
