"""Random programs: reproducible, of every kind, and meaningful to the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import VOCABULARIES, Case, cases, inputs, programs
from tests.tiers import usual
from tracr.errors import EvaluationError
from tracr.rasp import rasp
from tracr.rasp.annotations import ENCODING, NAME
from tracr.rasp.functions import BinaryOperator, ConstantOperator, UnaryOperator
from tracr.rasp.generate import INTERPRETER, _Drawing, _probes, random_inputs, random_program
from tracr.rasp.interpreter import DefaultRASPEvaluator
from tracr.rasp.random_functions import Steps, Sum, Table, ValueKind, When
from tracr.rasp.random_pool import Limits
from tracr.rasp.size import ProgramSize, SharedSizes, size_of
from tracr.rasp.traversal import topological
from tracr.values import is_number

SEEDS = range(200)


def listing(program: rasp.SOp) -> list[str]:
    """A program as text: every expression, what it reads and how it is annotated."""
    order = topological([program])
    number = {expr: i for i, expr in enumerate(order)}
    return [f"{expr!r} {[number[child] for child in expr.children]} {expr.annotations}" for expr in order]


def samples(**options: bool) -> Iterator[Case]:
    for seed in SEEDS:
        yield Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], **options)


def expressions(**options: bool) -> Iterator[rasp.RASPExpr]:
    for case in samples(**options):
        yield from topological([case.program])


def test_same_seed_same_program() -> None:
    """A program is a function of the seed and the options."""
    for case in samples():
        assert listing(case.program) == listing(case.program)


def test_seeds_differ() -> None:
    """Few of the programs are drawn twice."""
    assert len({str(listing(random_program(seed))) for seed in SEEDS}) > 0.9 * len(SEEDS)


def test_every_kind_of_expression_occurs() -> None:
    """200 programs hold each kind of expression many times, `length` only where it can be evaluated."""
    kinds: list[Any] = [rasp.Tokens, rasp.Indices, rasp.Length, rasp.Full, rasp.Map, rasp.SequenceMap]
    kinds += [rasp.LinearSequenceMap, rasp.Select, rasp.SelectorAnd, rasp.SelectorOr, rasp.SelectorNot]
    kinds += [rasp.Aggregate, rasp.SelectorWidth]
    counts = Counter(type(expr) for expr in expressions())
    assert [kind.__name__ for kind in kinds if counts[kind] < 15] == []
    causal = Counter(type(expr) for expr in expressions(causal=True))
    assert [kind.__name__ for kind in kinds if causal[kind] < 15] == ["Length"]
    assert causal[rasp.Length] == 0


def test_every_kind_of_function_occurs() -> None:
    """Tables, steps, operators on either side, all comparisons."""
    found: list[object] = []
    for expr in expressions():
        if isinstance(expr, rasp.Map):
            found += getattr(expr.f, "functions", lambda f=expr.f: [f])()
        elif isinstance(expr, rasp.SequenceMap):
            found.append(expr.f)
        elif isinstance(expr, rasp.Select):
            found.append(expr.predicate)
    kinds = Counter(type(f) for f in found)
    assert min(kinds[kind] for kind in (Table, Steps, Sum, When, BinaryOperator, ConstantOperator, UnaryOperator)) >= 3
    assert any(isinstance(f, ConstantOperator) and f.reflected for f in found)
    assert set(rasp.Comparison) <= {f for f in found if isinstance(f, rasp.Comparison)}
    results = [value for f in found if isinstance(f, Table) for _, value in f.entries]
    results += [value for f in found if isinstance(f, Steps) for value in f.values]
    assert None in results
    assert any(isinstance(value, str) for value in results)
    assert any(is_number(value) and value < 0 for value in results)
    assert any(isinstance(value, float) and value % 1 for value in results)


def test_every_kind_of_default_occurs() -> None:
    """`None`, numbers, negative and fractional ones, strings."""
    defaults = [expr.default for expr in expressions() if isinstance(expr, rasp.Aggregate)]
    numbers = [default for default in defaults if is_number(default)]
    assert None in defaults
    assert any(isinstance(default, str) for default in defaults)
    assert any(number < 0 for number in numbers)
    assert any(number % 1 for number in numbers)


def test_annotations_and_sharing_occur() -> None:
    """Names, some of them twice in a program, both encodings, and s-ops with several readers."""
    encodings: Counter[object] = Counter()
    shared = twice = same = 0
    for case in samples():
        order = topological([case.program])
        names = [expr.annotations[NAME] for expr in order if NAME in expr.annotations.explicit]
        encodings.update(expr.annotations.explicit.get(ENCODING) for expr in order)
        readers = Counter(child for expr in order for child in set(expr.children))
        shared += max(readers.values(), default=0) > 1
        twice += len(set(names)) < len(names)
        same += any(isinstance(expr, rasp.SequenceMap) and expr.fst is expr.snd for expr in order)
    assert min(encodings[encoding] for encoding in (*rasp.Encoding, None)) > 30
    assert shared > 60
    assert twice >= 5
    assert same >= 5


def inputs_of(selector: rasp.Selector) -> set[tuple[rasp.RASPExpr, ...]]:
    """The (keys, queries) that a selector's parts read."""
    found, todo = set(), [selector]
    while todo:
        part = todo.pop()
        todo += [child for child in part.children if isinstance(child, rasp.Selector)]
        if isinstance(part, rasp.Select):
            found.add(part.children)
    return found


@pytest.mark.parametrize("composite", [False, True])
def test_boolean_selectors_mix_inputs_only_if_composite(composite: bool) -> None:
    """Their operands read the same keys and queries unless `composite` asks for more."""
    mixed = sum(len(inputs_of(e)) > 1 for e in expressions(composite=composite) if isinstance(e, rasp.Selector))
    assert (mixed > 10) == composite
    assert composite or mixed == 0


@pytest.mark.parametrize("causal", [False, True])
def test_numerical_means_numbers(causal: bool) -> None:
    """What is annotated numerical holds numbers, or `None`, at every position."""
    evaluator = rasp.causal_eval.CausalEvaluator() if causal else DefaultRASPEvaluator()
    for case in samples(causal=causal):
        program = case.program
        for xs in case.inputs(5):
            for expr, values in evaluator.evaluate_all([program], xs).items():
                if rasp.is_numerical(expr):
                    assert all(value is None or is_number(value) for value in values), (case, expr)


def share_raising(sample: list[Case], count: int) -> float:
    raised = 0
    for case in sample:
        program = case.program
        for xs in case.inputs(count):
            try:
                case.expected(program, xs)
            except EvaluationError:
                raised += 1
    return raised / (len(sample) * count)


@pytest.mark.parametrize("composite", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_interpreter_does_not_raise(causal: bool, composite: bool) -> None:
    """The types kept while drawing rule out every interpreter error."""
    assert share_raising(list(samples(causal=causal, composite=composite)), count=10) == 0


@pytest.mark.slow
def test_the_interpreter_does_not_raise_on_many_programs() -> None:
    """... over thousands of programs, longer ones too."""
    sample = [
        Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 3 + seed % 8, 1 + seed % 7, seed % 2 == 0, seed % 3 == 0)
        for seed in range(usual(2_000, long=4_000))
    ]
    assert share_raising(sample, count=8) == 0


def test_most_programs_depend_on_their_input() -> None:
    """Programs that always give one value are rare."""
    constant = 0
    for case in samples():
        program = case.program
        constant += len({value for xs in case.inputs(10) for value in case.expected(program, xs)}) == 1
    assert constant < 0.15 * len(SEEDS)


def test_no_ops_is_an_input_or_a_constant() -> None:
    """`max_ops=0` draws the smallest programs there are."""
    kinds = {type(random_program(seed, max_ops=0)) for seed in SEEDS}
    assert kinds == {rasp.Tokens, rasp.Indices, rasp.Length, rasp.Full}


def test_inputs_cover_all_lengths() -> None:
    """Lengths run from the longest to 1; tokens come from the vocabulary; the seed decides."""
    drawn = random_inputs(1, "abc", max_seq_len=7, count=50)
    assert {len(xs) for xs in drawn} == set(range(1, 8))
    assert {x for xs in drawn for x in xs} == set("abc")
    assert drawn == random_inputs(1, "abc", max_seq_len=7, count=50)


def test_kinds_order_only_what_compares() -> None:
    """`ordered_with` is about `<` in Python."""
    example: dict[ValueKind, Any] = {ValueKind.NUMBER: 0.5, ValueKind.BOOLEAN: True, ValueKind.STRING: "a"}
    for fst, x in example.items():
        for snd, y in example.items():
            if fst.ordered_with(snd):
                assert (x < y) in (True, False)
            else:
                with pytest.raises(TypeError):
                    x < y  # noqa: B015


@given(program=programs(max_ops=4), xs=inputs())
def test_strategies_fit_together(program: rasp.SOp, xs: list[rasp.Value]) -> None:
    """A program of `programs` evaluates on every input of `inputs`."""
    assert len(program(xs)) == len(xs)


@given(case=cases(composite=True), data=st.data())
def test_cases_evaluate(case: Case, data: st.DataObject) -> None:
    """A case's program evaluates on every input over its vocabulary."""
    xs = data.draw(inputs(case.vocab, case.max_seq_len))
    assert len(case.expected(case.program, xs)) == len(xs)


def test_sizes_of_programs_that_share_expressions() -> None:
    """Sizes that are computed together are those of each program alone, whatever was looked at before."""
    for seed in range(20):
        order = topological([random_program(seed, max_ops=9)])
        sizes = SharedSizes()
        for expr in [*order[::2], *reversed(order)]:
            assert sizes.of(expr) == size_of(expr)


def test_remembered_values_are_those_of_the_interpreter() -> None:
    """Also those of renamed copies, which are not computed again."""
    limits, copies = Limits(("a", "b", "c"), 5, True, 2, 500), 0
    for seed in range(30):
        drawing = _Drawing(np.random.default_rng(seed), limits, ProgramSize(0, 0, 0), ProgramSize(6, 6, 99), False)
        drawing.program(6, [rasp.indices, rasp.length, rasp.tokens])
        for xs, known in zip(_probes(limits), drawing.evaluated, strict=True):
            for expr, value in known.items():
                assert INTERPRETER.evaluate(expr, xs) == value
                copies += expr.annotation(NAME) is not None
    assert copies > 20
