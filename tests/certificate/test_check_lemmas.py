"""Rules of the checker one by one, against brute force: parts of heads, PAD, sums of counts, means, numbers flushed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.certificate.check_cases import Parsed, codes_of, evaluations, example
from tests.certificate.slow_core import exact_read
from tests.certificate.test_check_rules import SPLIT
from tests.tiers import slow
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.certificate.trials.trial import check_parts, parts_of
from tracr.rasp.programs import EXAMPLES
from tracr_check import proving
from tracr_check.aggregate import Reading, copied, counted, summed
from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.boxes import Boxes, Read, State, grid_of, joined, read_boxes, rounded
from tracr_check.facts import Facts
from tracr_check.head import Attention, Head, States
from tracr_check.mlp import Neurons, Placed, after_mlp
from tracr_check.padding import joint_of, pad_rows, pad_size
from tracr_check.parts import Identity, Parts
from tracr_check.patterns import _expanded
from tracr_check.scores import Vectors, pad_scores
from tracr_check.selection import Selection
from tracr_check.variables import Env, SOp, Var, snap
from tracr_check.verdict import Rejected

FLOAT32, FLOAT64, FLOAT16 = (ARITHMETICS[name] for name in ("float32", "float64", "float16"))
Array = NDArray[Any]


def keeping(function: Callable[..., Any], found: list[Any]) -> Callable[..., Any]:
    """The function, with its results kept."""

    def called(*given: Any, **named: Any) -> Any:
        found.append(function(*given, **named))
        return found[-1]

    return called


# Parts of heads


@pytest.mark.parametrize("kind", SPLIT)
def test_parts_make_up_what_the_interpreter_computes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every input: counts, sums and copies by the proved masks give the width, the mean or the copy.

    Two means share one count.
    """
    found: list[Parts] = []
    monkeypatch.setattr(proving, "Parts", keeping(Parts, found))
    model = tracr.compile(SPLIT[kind], "abc", 3, level=2)
    assert Parsed(model).reason() == ""
    (parts,), program = found, found[0].program
    wholes = {int(text) for text in parts.wholes}
    aggregates = [number for number, sop in program.sops.items() if sop.kind == "aggregation"]
    compared = 0
    for run in evaluations(model):
        length = run.batch.codes.shape[1]
        for row, tokens in enumerate(run.batch.codes):
            here: dict[Var, Any] = {
                number: codes_of(run, number)[row].astype(np.int64) for number in model.program.sops
            }
            shape: dict[Var, Any] = {"I": np.arange(length), "L": np.full(length, length - 1)}
            env = Env(length, {**here, "T": tokens.astype(np.int64), **shape})
            own = Env(length, {name: codes_of_part(parts, name, env) for name in parts.masks})
            for number in aggregates:
                if program.derivable(number, frozenset(own.codes)):
                    assert program.codes(number, own).tolist() == here[number].tolist()
                    compared += 1
    assert wholes
    assert compared


def codes_of_part(parts: Parts, name: str, env: Env) -> Array:
    """What a part is at each position of an input, by its definition."""
    masks = [_expanded(parts.program, mask, env, env)[0] for mask in parts.masks[name]]
    chosen = np.logical_and.reduce(masks)
    if parts.program.causal:
        chosen = np.tril(chosen)
    if name[0] == "c":
        return np.asarray(chosen.sum(1))
    source = parts.sources[name]
    assert source is not None
    held = env.codes[source]
    if name[0] == "s":
        sums = chosen @ parts.program.sops[source].numbers[held]
        return np.array([int(np.abs(parts.numbers(name) - one).argmin()) for one in sums])
    nothing = len(parts.program.sops[source].values)
    return np.array([held[row].max(initial=-1) if row.any() else nothing for row in chosen])


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_parts_are_bounded_by_their_value(seed: int) -> None:
    """Range, and sums of the positive and the negative products, for every combination of the parts (in fractions)."""
    rng = np.random.default_rng(seed)
    program = Parsed(tracr.compile(SPLIT["means"], "abc", 3, level=2)).program()
    parts = Parts(program, Facts(program))
    width = next(number for number, sop in program.sops.items() if sop.kind == "indices")
    signs = [(1.0, 1.0), (1.0, -1.0), (2.0, -1.0)][seed % 3]
    terms: list[tuple[Var, float]] = [("c0.0", signs[0]), ("c0.1", signs[1])]
    sizes = [2, 2]
    program.sizes.update({"c0.0": 2, "c0.1": 2})
    weights = np.array([rng.choice([0.3, -1.7, 5.1]), 0.1]) * 1.0
    tables = []
    for _, factor in terms:
        lo = np.outer(np.arange(2.0), [factor, 0.0]) + rng.normal(size=(2, 2)) * 1e-3
        tables.append(Boxes(np.arange(2), lo, lo + rng.random((2, 2)) * 1e-3, np.zeros((2, 2))))
    reads = {name: read_boxes(boxes, weights[:, None]) for (name, _), boxes in zip(terms, tables, strict=True)}
    found = parts.improved(dict(reads), Identity(width, terms, 0.0))
    assert width in found
    for codes in itertools.product(*map(range, sizes)):
        total = sum(factor * code for (_, factor), code in zip(terms, codes, strict=True))
        if total not in (0, 1, 2):
            continue
        env = Env(1, {width: np.array([int(total)])})
        read = joined(found, env)
        box = [(boxes.lo[code], boxes.hi[code]) for boxes, code in zip(tables, codes, strict=True)]
        corners = [[Fraction(float(x)) for pair in box for x in pair[end]] for end in (0, 1)]
        column = [Fraction(float(w)) for _ in box for w in weights]
        for corner in corners:
            low, high, up, down, count = exact_read(corner, corner, column)
            assert Fraction(float(read.lo[0, 0])) <= low
            assert high <= Fraction(float(read.hi[0, 0]))
            assert up <= Fraction(float(read.up[0, 0]))
            assert down <= Fraction(float(read.down[0, 0]))
            assert count <= read.count[0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_errors_in_proportion_to_counts_do_not_add_up_beyond_their_sum(seed: int) -> None:
    """Ten counts, each off by up to a ten-thousandth of itself: so is the whole, and not by ten times as much.

    With a number below 0 among the terms, this does not follow: the error is that of all terms.
    """
    rng = np.random.default_rng(seed)
    size, off, factors = 40, 1e-4, rng.choice([1.0, 2.0], 10)
    program = Parsed(example("length", length=size)).program()
    parts, (width,) = Parts(program, Facts(program)), (n for n, sop in program.sops.items() if sop.label == "length")
    numbers = np.arange(size + 0.0)
    terms: list[tuple[Var, float]] = [(f"c0.{place}", factor) for place, factor in enumerate(factors.tolist())]
    if seed == 3:
        terms[0] = terms[0][0], -1.0
    reads: dict[Var, Read] = {}
    for place, (name, factor) in enumerate(terms):
        lo, hi = (np.outer(numbers * factor * (1 + sign * off), [1.0]) for sign in (-1, 1))
        reads[name] = read_boxes(Boxes(np.array([place]), lo, hi, np.zeros_like(lo)), np.ones((10, 1)) * 3.0)
        program.sizes[name], parts.listed[name] = size, numbers
    found = parts.improved(dict(reads), Identity(width, terms, 0.0))[width]
    z = program.numbers(width)
    assert (found.hi - found.lo)[:, 0].max() < 6.1 * off * z.max() or seed == 3
    for _ in range(500):
        codes = rng.multinomial(rng.integers(0, 5), np.ones(10) / 10)
        total = sum(factor * code for (_, factor), code in zip(terms, codes, strict=True))
        if total in z:
            row = int(np.flatnonzero(z == total)[0])
            ends = rng.choice([-1, 1], 10)
            real = sum(3 * f * c * (1 + e * off) for (_, f), c, e in zip(terms, codes, ends, strict=True))
            assert found.lo[row, 0] <= real <= found.hi[row, 0]


# PAD


@pytest.mark.parametrize("name", ["hist2", "induction", *slow(["sort", "most_freq", "shuffle_dyck"])])
def test_one_joint_value_fits_all_that_pad_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every PAD position some numbers of keys and copied keys fit all dimensions after all sub-layers together."""
    found: list[States] = []
    for one in ("_embedded", "after_attention", "_after_mlp"):
        monkeypatch.setattr(proving, one, keeping(getattr(proving, one), found))
    example = EXAMPLES[name].made_for(EXAMPLES[name].vocab, 3)
    parts = parts_of(tracr.compile(example.program, example.vocab, 3, level=2))
    assert check_parts(parts, tmp_path).accepted
    weights = {key: array.astype(np.float32) for key, array in parts.weights.items()}
    tokens, pads = len(example.vocab), [one.pad for one in found if one.pad is not None]
    bases = sorted({base for state in pads for one in state.tables for base in str(one).split()} - {"P"})
    assert bases
    sizes = [next(pad_size(state, base) for state in pads if base in state.tables) for base in bases]
    copied = max(sizes) > 4  # a copy has more values than there are numbers of keys
    assert copied or name not in ("induction", "sort")
    for length in (1, 2):
        for row in itertools.islice(itertools.product(range(tokens), repeat=length), 6):
            ids = np.array([[tokens, *row, *[tokens + 1] * (3 - length)]])
            streams: list[Array] = []
            execute(weights, ids, False, ORDERS["permuted"], streams)
            for place in range(length, 3):
                rows = [stream[0, place + 1] for stream in streams]
                values = itertools.product(*map(range, sizes))
                assert any(_fits(pads, rows, {"P": place, **dict(zip(bases, v, strict=True))}) for v in values)


def _fits(states: list[State], rows: list[Array], base: dict[str, int]) -> bool:
    """Whether every dimension of every state holds the number of the stream."""
    for state, row in zip(states, rows, strict=True):
        low, high = np.zeros(state.width), np.zeros(state.width)
        for name, boxes in state.tables.items():
            own = str(name).split()
            code = np.ravel_multi_index([base[one] for one in own], [pad_size(state, one) for one in own])
            low[boxes.dims] += boxes.lo[code]
            high[boxes.dims] += boxes.hi[code]
        if not ((low <= row) & (row <= high)).all():
            return False
    return True


def test_joint_values_of_pad_are_all_listed() -> None:
    """An MLP at PAD: for every value of two bases the computed number lies in the box of their joint value."""
    rng = np.random.default_rng(5)
    numbers = {"P": rng.normal(size=(3, 1)), "P0.0": rng.normal(size=(4, 1))}
    tables: dict[Var, Boxes] = {
        name: Boxes(np.array([place]), x, x, np.zeros_like(x)) for place, (name, x) in enumerate(numbers.items())
    }
    w_in, w_out = rng.normal(size=(3, 5)), np.zeros((5, 3))
    w_out[:, 2] = rng.normal(size=5)
    state = State(3, tables)
    placed = Placed(
        lambda dim, names: joint_of(state, names, "P"),
        lambda names, owner: (env := pad_rows(state, names, 1000, owner), env.codes[owner], pad_size(state, owner)),
    )
    after = after_mlp(state, Neurons(w_in, np.zeros(5), w_out, np.zeros(3)), placed, FLOAT64)
    boxes = after.tables["P P0.0"]
    for code, (p, count) in enumerate(itertools.product(range(3), range(4))):
        x = np.array([numbers["P"][p, 0], numbers["P0.0"][count, 0], 0.0])
        exact = float(np.maximum(x @ w_in, 0) @ w_out[:, 2])
        assert boxes.lo[code, 0] <= exact <= boxes.hi[code, 0]
        assert boxes.hi[code, 0] - boxes.lo[code, 0] < 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_scores_at_pad_are_bounded(seed: int) -> None:
    """Scores of PAD keys in float32, relative to the reference that the other keys have."""
    rng = np.random.default_rng(seed)
    lo = rng.normal(size=(3, 4)).astype(np.float32).astype(float)
    hi = lo + (rng.random((3, 4)) * 0.1).astype(np.float32)
    state = State(4, {"P": Boxes(np.arange(4), lo, hi, np.zeros((3, 4)))})
    w, b = (rng.normal(size=size).astype(np.float32) for size in ((4, 2), (2,)))
    middle, radius = rng.normal(size=(2, 2)), rng.random((2, 2)) * 0.01
    queries = Vectors(middle - radius, middle + radius, np.zeros((2, 2)))
    ref = rng.normal(size=(2, 2))
    read = joined({"P": read_boxes(state.tables["P"], w.astype(float))})
    box = Vectors(read.lo + b - 1e-3, read.hi + b + 1e-3, np.zeros((1, 2)))
    top = pad_scores(queries, state, w.astype(float), b.astype(float), box, ref, FLOAT32)
    for _ in range(100):
        x = (lo + (hi - lo) * rng.random((3, 4))).astype(np.float32)
        keys = x @ w + b
        q = (queries.lo + (queries.hi - queries.lo) * rng.random((2, 2))).astype(np.float32)
        found = (q @ keys.T).astype(float) - ((q - queries.middle) * ref).sum(1)[:, None]
        assert (found.max(1) <= top).all()


def test_distances_of_pad_from_the_reference_are_rounded_up() -> None:
    """A query between -r and r, a key of PAD that is 0, and a reference far away: the distance is r |ref|, or more."""
    rng, none = np.random.default_rng(11), np.zeros((1, 1))
    for r, far in rng.uniform(1, 2, (50, 2)) * (1.0, 2.0**60):
        query, ref = Vectors(none - r, none + r, none), none + far
        (top,) = pad_scores(query, State(1, {}), none, none[0], Vectors(none, none, none + np.inf), ref, FLOAT32)
        assert Fraction(float(top)) >= Fraction(float(r)) * Fraction(float(far))


def test_boxes_reach_from_their_middles_as_computed() -> None:
    """The middle of two neighbours is one of them, and the other is all their distance away."""
    lo = np.array([[1.0, -1.0, 3.0]])
    vectors = Vectors(lo, np.nextafter(lo, 4.0), np.zeros((1, 3)))
    assert (vectors.middle - vectors.radius <= vectors.lo).all()
    assert (vectors.hi <= vectors.middle + vectors.radius).all()


@pytest.mark.parametrize("length", [5, 300])
def test_scores_of_pad_by_joint_values(length: int) -> None:
    """Every query of a head that matches positions against PAD at every position, in float32: the bound is tight."""
    example = EXAMPLES["shift_by"].made_for(EXAMPLES["shift_by"].vocab, length)
    parsed = Parsed(tracr.compile(example.program, example.vocab, length, level=2))
    program = parsed.program()
    weights = proving.Weights(parsed.weights, program, max(stop for _, _, stop in parsed.model["outputs"]), FLOAT32)
    states = proving._embedded(weights, program, FLOAT32, True)
    (w, *_), facts = weights.blocks[0].heads, Facts(program)
    given = Attention(program, facts, Parts(program, facts), FLOAT32, {})
    head = Head(states, w, given, "0.0", np.ones(weights.width, dtype=np.int64))
    stream = (weights.embed[0] + weights.positions[1:]).astype(np.float32)
    pads = (weights.embed[-1] + weights.positions[1:]).astype(np.float32)
    queries = (stream @ w.w_q + w.b_q).astype(np.float32)
    keys = (pads @ w.w_k + w.b_k).astype(np.float32)
    exact = queries.astype(float)
    found = head.pad_bound(Vectors(exact, exact, grid_of(exact)), np.zeros_like(exact), np.arange(head.rank))
    assert found is not None
    top = (queries @ keys.T).astype(float).max(1)
    assert (top <= found).all()
    assert (found - top).max() <= 1e-6 * np.abs(top).max()


# Heads


def softmax_mean(o: Array, scores: Array, a: Arithmetic) -> float:
    """A mean in float32; float16 stores weights and results, and flushes what is small."""

    def stored(x: Any) -> Any:
        if a.name != "float16":
            return np.float32(x)
        x = np.float32(np.float16(x))
        return np.where(np.abs(x) < 2.0**-14, np.float32(0), x)

    powers = np.exp(np.float32(scores) - np.float32(scores).max())
    weights = stored(powers / powers.sum(dtype=np.float32))
    return float(stored((weights * np.float32(o)).sum(dtype=np.float32)))


def reading_of(o: Array, bos: float, a: Arithmetic, keys: int) -> Reading:
    """What a head reads that copies one component."""
    return Reading(o, o, np.abs(o), (bos, bos), abs(bos), 0.0, 1.0, 0.0, keys, 1, a)


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_means_may_be_off_as_the_worst_sum_is(count: int) -> None:
    """Equal weights and values, added one after the other, each weight, product and sum off by all that it may be."""
    weight, total = Fraction(1, count) * (1 + 3 * Fraction(FLOAT32.unit)), Fraction(0)
    up = 1 + Fraction(2) ** -24
    for number in range(count):
        product = weight * up
        total = (total + product) * up if number else product
    selection = Selection(0.0, None, True, False)
    reading = reading_of(np.ones(1), 0.0, FLOAT32, count)
    off = float(total - 1)
    assert off <= reading.averaged(selection) < off + 4 * FLOAT32.unit
    wide = replace(reading, tail=1e-9)  # several components: their errors may be large at different keys
    assert wide.averaged(selection) == wide.shared(selection)
    leaking = replace(reading, a=ARITHMETICS["float32-leak"])  # keys without weight round too
    assert leaking.averaged(selection) == leaking.shared(selection)


@pytest.mark.parametrize("a", [FLOAT32, FLOAT16], ids=lambda a: a.name)
@pytest.mark.parametrize("log", [-12.0, 0.0, 12.0])
def test_counts_lie_in_their_range(a: Arithmetic, log: float) -> None:
    """Computed (w o + C b) / (w + C), where weights may be flushed too."""
    keys = 6
    for o, bos in ((49_152.0, 0.0), (1.0, 49_152.0), (0.5, -2.0)):
        reading = reading_of(np.array([o]), bos, a, keys)
        lo, hi, gone = counted(reading, Selection(0.0, (log, log), False, False), np.arange(float(keys)), "")
        assert not gone.any()
        for count in range(keys):
            found = softmax_mean(np.array([*[o] * count, bos]), np.array([*[0.0] * count, log]), a)
            assert lo[count] <= found <= hi[count]


@pytest.mark.parametrize("seed", range(12))
def test_means_and_sums_lie_in_their_ranges(seed: int) -> None:
    """Aggregates of numbers by value of the mean, and sums of numbers by value of the sum."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.choice(np.arange(-3, 4) if seed % 2 else np.arange(5), 3, replace=False)).astype(float)
    source = SOp(0, "x", {"kind": "tokens"}, tuple(x.tolist()))
    every = [list(one) for size in (1, 2, 3) for one in itertools.product(range(3), repeat=size)]
    means = sorted({float(np.mean(x[one])) for one in every})
    op = {"kind": "aggregation", "assumed": False, "default": None}
    target = SOp(1, "mean", op, (*means, None))
    slope, offset, bos = (float(np.float32(one)) for one in rng.normal(size=3))
    o = np.float32(slope * x + offset).astype(float)
    reading = reading_of(o, bos, FLOAT32, 4)
    lo, hi, _ = copied(reading, Selection(0.0, None, False, False), source, target, np.arange(3), False, False, "")
    sums = np.arange(-12.0, 16.0)
    s_lo, s_hi, _ = summed(reading, Selection(0.0, (0.7, 0.7), False, False), x, np.arange(3), sums, "")
    for chosen in every:
        mean = int(np.abs(np.array(means) - x[chosen].mean()).argmin())
        assert lo[mean] <= softmax_mean(o[chosen], np.zeros(len(chosen)), FLOAT32) <= hi[mean]
        place = int(np.flatnonzero(sums == x[chosen].sum())[0])
        found = softmax_mean(np.append(o[chosen], bos), np.append(np.zeros(len(chosen)), 0.7), FLOAT32)
        assert s_lo[place] <= found <= s_hi[place]
    assert lo[-1] <= bos <= hi[-1]


# The checker's own rounding


@pytest.mark.parametrize("seed", range(10))
def test_sums_over_variables_contain_the_exact_one(seed: int) -> None:
    """Many variables with numbers of other sizes each, read in float64: the exact sum is in the range, in fractions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=30) * 2.0 ** rng.integers(-20, 20, 30)
    weights = rng.normal(size=(30, 1))
    tables = {
        f"c0.{k}": Boxes(np.array([k]), x[k : k + 1, None], x[k : k + 1, None], np.zeros((1, 1))) for k in range(30)
    }
    reads: dict[Var, Read] = {name: read_boxes(boxes, weights) for name, boxes in tables.items()}
    read = joined(reads)
    exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, weights[:, 0], strict=True)), Fraction(0))
    assert Fraction(float(read.lo[0, 0])) <= exact <= Fraction(float(read.hi[0, 0]))
    off = float(rounded(read, FLOAT64)[0, 0])
    total = 0.0
    for one in rng.permutation(x * weights[:, 0]):
        total += one
    assert read.lo[0, 0] - off <= total <= read.hi[0, 0] + off


@pytest.mark.parametrize(
    ("change", "reason"), [("factor", "too large to be told apart"), ("value", "too near to be told apart")]
)
def test_sums_that_float64_cannot_tell_apart_are_refused(change: str, reason: str) -> None:
    """Large sums that may cancel, and listed values next to each other: the checker could find another value."""
    parsed = Parsed(tracr.compile(SPLIT["means"], "abc", 3, level=2))
    linear = next(one for one in parsed.model["program"]["sops"] if one["op"]["kind"] == "linear")
    if change == "factor":
        linear["op"]["terms"] = [[term, 1e9 / 3] for term, _ in linear["op"]["terms"]]
    else:
        linear["domain"]["values"][1] = linear["domain"]["values"][0] + 1e-9
    with pytest.raises(Rejected, match=reason):
        parsed.program()


def test_numbers_at_the_edge_of_a_value_are_not_undefined() -> None:
    """Numbers within 1e-9 of a listed value have it, whatever this computation rounds; equal values are the first."""
    sop = SOp(0, "x", {"kind": "linear"}, (0.5, 1, True, None))
    edge = 0.5 + 1e-9
    assert snap(sop, np.array([edge, np.nextafter(edge, 1), 1.0, 1 + 5e-10, np.nan])).tolist() == [0, 0, 1, 1, 3]
    assert snap(sop, np.array([0.5 + 2e-9]))[0] < 0
