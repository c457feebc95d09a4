"""choose_encodings: wishes first, then what a number is by nature, then what its readers can use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tracr
from tests.compiler.by_hand import encoded, node
from tracr.compiler.program.encodings import MANY_VALUES
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.rasp import Comparison, SOp, Value

NUMERICAL, CATEGORICAL = Encoding.NUMERICAL, Encoding.CATEGORICAL
NUMBERS = (1, 2, 3)
ALL = rasp.Select(1, 1, Comparison.EQ)
SQUARE = rasp.Map(lambda x: x * x, rasp.tokens, simplify=False).named("square")
READERS: dict[str, tuple[Callable[[SOp], SOp], Encoding]] = {
    "put out": (lambda sop: sop, CATEGORICAL),
    "mapped": (lambda sop: rasp.Map(lambda x: x % 2, sop, simplify=False), CATEGORICAL),
    "averaged": (lambda sop: rasp.Aggregate(ALL, sop), NUMERICAL),
    "added": (lambda sop: rasp.LinearSequenceMap(sop, rasp.indices, 1, 1), NUMERICAL),
    "compared": (lambda sop: rasp.SelectorWidth(rasp.Select(sop, sop, Comparison.LT)), CATEGORICAL),
    "paired": (lambda sop: rasp.SequenceMap(lambda x, i: x > i, sop, rasp.indices), CATEGORICAL),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_decide(reader: str) -> None:
    """A number if every reader wants a number."""
    read, expected = READERS[reader]
    assert node(encoded(read(SQUARE), NUMBERS), "square").encoding is expected


def test_one_reader_that_needs_classes_is_enough() -> None:
    """A one-hot code can be read as a number, not the other way round."""
    both = {name: READERS[name][0](SQUARE) for name in ("averaged", "added", "compared")}
    assert node(encoded(both, NUMBERS), "square").encoding is CATEGORICAL
    del both["compared"]
    assert node(encoded(both, NUMBERS), "square").encoding is NUMERICAL


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("wish", "expected"), [(rasp.numerical, NUMERICAL), (rasp.categorical, CATEGORICAL)])
def test_a_wish_is_honoured(reader: str, wish: Callable[[SOp], SOp], expected: Encoding) -> None:
    """An encoding that the user asks for is used for every kind of reader."""
    typed = encoded(READERS[reader][0](wish(SQUARE)), NUMBERS)
    assert node(typed, "square").encoding is expected
    typed.verify()


@pytest.mark.parametrize(
    ("program", "vocab", "expected"),
    [
        (rasp.Aggregate(ALL, rasp.tokens), NUMBERS, NUMERICAL),
        (rasp.Aggregate(rasp.Select(rasp.indices, 0, Comparison.EQ), rasp.tokens), NUMBERS, CATEGORICAL),
        (rasp.LinearSequenceMap(rasp.tokens, rasp.indices, 1, 2), NUMBERS, NUMERICAL),
        (rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)), NUMBERS, CATEGORICAL),
        (rasp.Map(lambda x: x * x, rasp.tokens), NUMBERS, CATEGORICAL),
        (rasp.Map(lambda x: x * x, rasp.tokens), range(MANY_VALUES), CATEGORICAL),
        (rasp.Map(lambda x: x * x, rasp.tokens), range(MANY_VALUES + 1), NUMERICAL),
        (rasp.Map(lambda x: f"t{x}", rasp.tokens), range(MANY_VALUES + 1), CATEGORICAL),
        (rasp.Map(lambda x: 0.3 if x == 1 else 0.1 + 0.2, rasp.tokens), (1, 2), NUMERICAL),
    ],
    ids=["mean", "copy", "sum", "width", "table", "many", "too many", "strings", "almost equal"],
)
def test_what_a_number_is_by_nature(program: SOp, vocab: tuple[Value, ...], expected: Encoding) -> None:
    """Means and sums are numbers, copies and counts classes; very many values are a number unless classes are read."""
    assert node(encoded(program.named("x"), vocab), "x").encoding is expected


def test_tokens_are_numbers_only_if_annotated() -> None:
    """Readers do not make them so."""
    mean = rasp.Aggregate(ALL, rasp.tokens)
    assert node(encoded(mean, NUMBERS), "tokens").encoding is CATEGORICAL
    mean = rasp.Aggregate(ALL, rasp.numerical(rasp.tokens))
    assert node(encoded(mean, NUMBERS), "tokens").encoding is NUMERICAL


@pytest.mark.parametrize(
    ("program", "vocab", "message"),
    [
        (rasp.numerical(rasp.Map(str, rasp.tokens)), NUMBERS, "annotated numerical but takes values that are not"),
        (rasp.numerical(rasp.Map(lambda x: x * 1e-30, rasp.tokens)), NUMBERS, "closer to zero than float32"),
        (rasp.numerical(rasp.Map(lambda x: x * 2**24, rasp.tokens)), NUMBERS, r"beyond 2\*\*24"),
    ],
)
def test_impossible_wishes_are_refused(program: SOp, vocab: tuple[Value, ...], message: str) -> None:
    """With the reason."""
    with pytest.raises(tracr.CompileError, match=message):
        encoded(program, vocab)


def test_too_many_values_to_list_are_refused() -> None:
    """A mean that is an interval cannot be one-hot; `max_values` says from where on."""
    mean = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, Comparison.LEQ), rasp.tokens).named("mean")
    assert node(encoded(rasp.categorical(mean), (1, 2.5, 4), 4), "mean").encoding is CATEGORICAL
    with pytest.raises(tracr.LimitError, match="raise max_values"):
        encoded(rasp.categorical(mean), (1, 2.5, 4), 4, max_values=3)
