"""The rules for sixteen bits: shares that are stored once, means made of counts, sums on a grid, ways that agree."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.certificate.check_cases import Exhaustive, Parsed, codes_of, evaluations, stored_network
from tests.tiers import slow
from tracr.craft.linear import PAD
from tracr.model.compiled import CompiledModel
from tracr.rasp.programs import EXAMPLES
from tracr_check import elsewhere, groups
from tracr_check.aggregate import Reading, counted
from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.boxes import INF, on_grid
from tracr_check.definitions import define, units_of
from tracr_check.facts import Facts
from tracr_check.joint import joint_values
from tracr_check.selection import Selection
from tracr_check.variables import SOp
from tracr_check.verdict import Rejected

FORMATS = ("bfloat16", "float16")


# Storing


def neighbours(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """The numbers of so many bits next to a positive one, in fractions."""
    step = Fraction(2) ** (math.floor(math.log2(x)) + 1 - bits)
    return x // step * step, -(-x // step) * step


@pytest.mark.parametrize("name", FORMATS)
def test_stored_numbers_are_the_nearest(name: str) -> None:
    """Bounds of a number are the nearest of its neighbours, found in fractions; both of them if it is in the middle."""
    one, rng = ARITHMETICS[name], np.random.default_rng(1)
    numbers = np.ldexp(rng.random(400) + 0.5, rng.integers(-3, 4, 400))
    ties = np.ldexp(rng.integers(2**one.stored_bits, 2 ** (one.stored_bits + 1), 200) | 1, -one.stored_bits - 1)
    for number in [*numbers.tolist(), *ties.tolist()]:
        low, high = (float(end[0]) for end in one.nearest(np.array([number]), np.array([number])))
        below, above = neighbours(Fraction(number), one.stored_bits)
        down, up = Fraction(number) - below, above - Fraction(number)
        assert (low, high) == (float(below if down <= up else above), float(above if up <= down else below))
        assert low <= float(one.cast(np.array([number]))[0]) <= high


@pytest.mark.parametrize("name", FORMATS)
def test_storing_is_monotonic(name: str) -> None:
    """What a number of an interval is stored as lies between the bounds, and both bounds are numbers of the format."""
    one, rng = ARITHMETICS[name], np.random.default_rng(2)
    lo = rng.random(300) + 0.4
    hi = lo + rng.random(300) * 10.0 ** -rng.integers(1, 8, 300)
    low, high = one.nearest(lo, hi)
    for share in np.linspace(0, 1, 9):
        stored = one.cast(lo + share * (hi - lo))
        assert (low <= stored).all()
        assert (stored <= high).all()
    assert (one.cast(low) == low).all()
    assert (one.cast(high) == high).all()


def reading(a: Arithmetic, keys: int, bos: float = 1.0, at_keys: float = 0.0, tail: float = 0.0) -> Reading:
    """A dimension that reads a number at BOS, and another one at keys."""
    values = np.array([at_keys])
    return Reading(values, values, np.abs(values), (bos, bos), abs(bos), 0.0, 1.0, tail, keys, 1, a)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bos", [1.0, 4.0, -2.0])
def test_a_share_is_stored_once(name: str, bos: float) -> None:
    """BOS's share of w keys, computed in float32 in many orders and stored, is in the bounds: one number, or two."""
    one, rng = ARITHMETICS[name], np.random.default_rng(3)
    for keys, logit in itertools.product((16, 31), (2.8125, 3.484375, 0.0, -1.0)):
        counts = np.arange(keys + 1.0)
        lo, hi, gone = counted(reading(one, keys + 1, bos), Selection(0.0, (logit, logit), False, False), counts, "")
        assert not gone.any()
        for count in range(1, keys + 1):
            scores = np.full(count + 1, min(0.0, -logit), np.float32)
            scores[0] = min(0.0, logit)
            for _ in range(10):
                powers = np.exp(rng.permutation(scores)).astype(np.float32)
                total = np.float32(0)
                for power in powers.tolist():
                    total = np.float32(total + np.float32(power))
                share = np.float32(np.exp(scores[0]) / total)
                stored = float(one.cast(np.array([share]))[0]) * bos
                assert lo[count] <= stored <= hi[count]
            assert hi[count] - lo[count] <= abs(stored) * 2.0 ** (1 - one.stored_bits)


@pytest.mark.parametrize("name", FORMATS)
def test_shares_in_decimals(name: str) -> None:
    """A second computation, with 40 digits: the bounds hold the number that is nearest to the exact share."""
    one = ARITHMETICS[name]
    counts = np.arange(17.0)
    lo, hi, _ = counted(reading(one, 17), Selection(0.0, (2.8125, 2.8125), False, False), counts, "")
    with localcontext() as context:
        context.prec = 40
        weight = Decimal("2.8125").exp()
        for count in range(1, 17):
            below, above = neighbours(Fraction(weight / (weight + count)), one.stored_bits)
            exact = Fraction(weight / (weight + count))
            nearest = float(below if exact - below <= above - exact else above)
            assert lo[count] <= nearest <= hi[count]
            assert hi[count] - lo[count] in (0.0, float(above - below))


@pytest.mark.parametrize("name", FORMATS)
def test_torch_stores_the_nearest_share(name: str) -> None:
    """What is assumed of a softmax: its weights are computed in float32 and rounded once, to the nearest."""
    torch = pytest.importorskip("torch")
    one = ARITHMETICS[name]
    for count, logit in itertools.product(range(1, 33), (2.8125, 3.484375, 0.0, 0.5)):
        scores = torch.zeros(count + 1, dtype=getattr(torch, name))
        scores[0] = logit
        found = float(torch.softmax(scores, 0)[0])
        share = math.exp(logit) / (math.exp(logit) + count)
        low, high = one.nearest(np.array([share * (1 - 1e-6)]), np.array([share * (1 + 1e-6)]))
        assert low[0] <= found <= high[0]


@pytest.mark.parametrize("other", [{"bos": 1.5}, {"at_keys": 0.25}, {"tail": 1e-6}], ids=["bos", "keys", "tail"])
def test_other_shares_are_rounded_more_often(other: dict[str, float]) -> None:
    """A value that is no power of two, values at keys, or a sum over heads: the general rule."""
    one, selection = ARITHMETICS["bfloat16"], Selection(0.0, (2.8125, 2.8125), False, False)
    lo, hi, _ = counted(reading(one, 17, **other), selection, np.arange(17.0), "")
    assert ((hi - lo)[1:] > 4 * 2.0**-8 * lo[1:]).all()


# Sums on a grid


def test_multiples_of_a_grid() -> None:
    """The bounds are those of the multiples between lo and hi; without a grid they stay."""
    rng = np.random.default_rng(4)
    lo = rng.normal(size=200)
    hi = lo + rng.random(200)
    for grid in (1 / 8, 1 / 4, 1.0):
        low, high = on_grid(lo, hi, np.full(200, grid))
        for place in range(200):
            inside = [k * grid for k in range(-64, 65) if lo[place] <= k * grid <= hi[place]]
            wanted = (min(inside), max(inside)) if inside else (lo[place], hi[place])
            assert (low[place], high[place]) == wanted
    same = on_grid(lo, hi, np.zeros(200))
    assert (same[0] == lo).all()
    assert (same[1] == hi).all()
    assert np.stack(on_grid(np.array([-1.0]), np.array([2.0]), np.array([INF]))).tolist() == [[0.0], [0.0]]


# Means of counts


def test_units_are_whole_numbers() -> None:
    """Thirds above 1 are whole units; other numbers, or values that are no numbers, are refused."""
    thirds = SOp(0, "thirds", {"kind": "tokens"}, (1, 4 / 3, 2))
    assert units_of(thirds, {"above": 1, "times": 3}).tolist() == [0, 1, 3]
    for op in (
        {"above": 1, "times": 2},
        {"above": 1.5, "times": 6},
        {"above": 1, "times": 0},
        {"above": None, "times": 1},
    ):
        with pytest.raises(Rejected):
            units_of(thirds, op)
    with pytest.raises(Rejected):
        units_of(SOp(0, "word", {"kind": "tokens"}, (1, "a")), {"above": 1, "times": 1})


def small(name: str, level: int, dtype: str, length: int = 3) -> CompiledModel:
    """A program of the library, compiled for short inputs and a format."""
    made = EXAMPLES[name].made_for(EXAMPLES[name].vocab, length)
    return tracr.compile(made.program, made.vocab, length, level=level, dtype=dtype)


def hinted(name: str) -> tuple[CompiledModel, Any, Facts]:
    """A model for bfloat16, its program with the definitions of its hints, and the facts."""
    model = small(name, 1, "bfloat16")
    parsed = Parsed(model)
    program = parsed.program()
    facts = Facts(program)
    define(program, facts, parsed.hints["aux"])
    return model, program, facts


@pytest.mark.parametrize("name", ["frac_prevs", "hist_bos", *slow(["shuffle_dyck", "dyck2"])])
def test_means_are_quotients_of_units(name: str) -> None:
    """On every input, the sum of units and the width give the mean; joint values miss no combination that occurs."""
    model, program, _ = hinted(name)
    sums = [sop for sop in program.sops.values() if sop.kind == "units"]
    assert sums
    for total in sums:
        selector, value = total.op["selector"], total.op["of"]
        mean = next(
            number
            for number, sop in program.sops.items()
            if sop.kind == "aggregation" and (sop.op["selector"], sop.op["value"]) == (selector, value)
        )
        width = next(
            number for number, sop in program.sops.items() if sop.kind == "width" and sop.op["selector"] == selector
        )
        rows = joint_values(program, {total.number, width, mean})
        listed = set(zip(*(rows.codes[one].tolist() for one in (total.number, width, mean)), strict=True))
        units = units_of(program.sops[value], total.op)
        for run in evaluations(model):
            held, results = codes_of(run, value), codes_of(run, mean)
            for row, codes in enumerate(run.batch.codes):
                chosen = selected(model, run, selector, row, len(codes))
                for query in range(len(codes)):
                    sum_of_units = int(units[held[row]][chosen[query]].sum())
                    count = int(chosen[query].sum())
                    code = list(program.sops[width].numbers).index(count)
                    assert (sum_of_units, code, int(results[row, query])) in listed


def selected(model: CompiledModel, run: Any, selector: int, row: int, length: int) -> NDArray[np.bool_]:
    """Which keys each query selects, by the program's tables."""
    node: Any = model.program.selectors[selector]
    parts = getattr(node, "parts", ())
    if parts:
        found = [selected(model, run, part, row, length) for part in parts]
        if node.kind == "not":
            return ~found[0]
        return np.logical_and.reduce(found) if node.kind == "and" else np.logical_or.reduce(found)
    queries, keys = codes_of(run, node.queries)[row], codes_of(run, node.keys)[row]
    return np.asarray(node.table[np.ix_(queries, keys)] == 1)


def test_counts_of_other_values_are_no_mean() -> None:
    """Hints that call the count of the keys with one value a sum of other units, or of another s-op: rejected."""
    parsed = Parsed(small("frac_prevs", 1, "bfloat16"))
    assert parsed.reason(arithmetic="bfloat16") == ""
    number = next(key for key, aux in parsed.hints["aux"].items() if aux["kind"] == "units")
    for change in ({"above": -1.0}, {"times": 0.5}, {"of": 0}, {"selector": 10**6}):
        kept = dict(parsed.hints["aux"][number])
        parsed.hints["aux"][number] = kept | change
        with contextlib.suppress(KeyError, IndexError):  # the checker calls this malformed, and rejects
            assert parsed.reason(arithmetic="bfloat16") != ""
        parsed.hints["aux"][number] = kept


# Models

MODELS = [
    *["length", "hist", "frac_prevs"],
    *slow(["hist_bos", "sort_composite", "reverse", "shuffle_dyck", "most_freq", "dyck2", "closer"]),
]


def stored(one: Arithmetic, array: NDArray[Any]) -> NDArray[np.float32]:
    """The nearest numbers of a format."""
    return one.cast(array).astype(np.float32)


def wrong(model: CompiledModel, every: Exhaustive, weights: Any, one: Arithmetic) -> bool:
    """Whether any answer is wrong in sixteen bits, on every input, padded and unpadded."""
    with np.errstate(all="ignore"):
        for ids, length, wanted in every.cases:
            logits = stored_network(weights, ids, lambda array: stored(one, array))[:, 1 : length + 1]
            for output, codes in zip(model.outputs, wanted, strict=True):
                if not np.isfinite(logits).all() or (output.codes(logits) != codes).any():
                    return True
    return False


def tried(model: CompiledModel, dtype: str, changes: Iterable[dict[str, NDArray[Any]]]) -> tuple[int, int, int, int]:
    """Mutants: how many are harmful, how many of these accepted; harmless, how many of these accepted."""
    parsed, every, one = Parsed(model), Exhaustive(model), ARITHMETICS[dtype]
    assert parsed.reason(arithmetic=dtype) == ""
    assert not wrong(model, every, parsed.weights, one)
    found = np.zeros((2, 2), int)
    for change in changes:
        changed = {**parsed.weights, **change}
        harm = wrong(model, every, changed, one)
        accepted = parsed.reason(changed, arithmetic=dtype) == ""
        assert not (harm and accepted), list(change)
        found[int(not harm), int(accepted)] += 1
    return int(found[0].sum()), int(found[0, 1]), int(found[1].sum()), int(found[1, 1])


def single_weights(model: CompiledModel, count: int, seed: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Changes of one weight."""
    rng, weights = np.random.default_rng(seed), Parsed(model).weights
    names = sorted(name for name, array in weights.items() if array.any())
    for _ in range(count):
        name = names[rng.integers(len(names))]
        array = weights[name].copy()
        flat = array.reshape(-1)
        if rng.random() < 0.8:
            flat[rng.choice(np.flatnonzero(flat))] *= rng.choice([0.0, -1.0, 0.9, 1.008, 1.02, 1.5])
        else:
            flat[rng.integers(flat.size)] = rng.choice([0.0078125, 0.5, -0.5, 1.0, -3.0, 256.0])
        yield {name: array}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", FORMATS)
def test_no_harmful_mutant_is_accepted_in_sixteen_bits(name: str, dtype: str) -> None:
    """Models compiled for 16 bits are accepted; mutants that are wrong when run in 16 bits on every input are not."""
    model = small(name, 1, dtype)
    harmful, accepted, _, _ = tried(model, dtype, single_weights(model, 20, 5))
    assert harmful
    assert not accepted


@pytest.mark.parametrize(
    ("name", "level"), [("count", 0), ("sort_unique", 2), ("frac_prevs", 2), ("sort_composite", 0)]
)
@pytest.mark.parametrize("dtype", FORMATS)
def test_models_for_sixteen_bits_are_accepted(name: str, level: int, dtype: str) -> None:
    """Counts, matches, means of counts and sums of counts."""
    assert Parsed(small(name, level, dtype, 5)).reason(arithmetic=dtype) == ""


# PAD

PADDED = ["hist", "sort_composite", *slow(["frac_prevs", "dyck2", "closer", "most_freq"])]


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("dtype", FORMATS)
def test_pad_does_not_depend_on_the_tokens(name: str, dtype: str) -> None:
    """The query of PAD sees BOS only: what PAD holds, and so its logits, is a function of its position."""
    model, one = small(name, 1, dtype), ARITHMETICS[dtype]
    weights, rows = Parsed(model).weights, []
    for ids, length, _ in Exhaustive(model).cases:
        logits = stored_network(weights, ids, lambda array: stored(one, array))
        rows.append({place: logits[:, place] for place in range(length + 1, ids.shape[1])})
    known = {place: row[place][0] for row in rows for place in row}
    assert sorted(known) == list(range(2, model.options.max_seq_len + 1))
    assert all((found == known[place]).all() for row in rows for place, found in row.items())


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("in_groups", [False, True])
def test_pad_is_what_a_query_without_keys_writes(name: str, in_groups: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other rule for PAD is needed, also if heads are proved literal by literal."""
    for rule in ("_with_pad", "_pad_copies", "_pad_mean"):
        monkeypatch.setattr(elsewhere, rule, None)
    if in_groups:
        monkeypatch.setattr(groups, "FEW_CELLS", 0)
    assert Parsed(small(name, 1, "bfloat16")).reason(arithmetic="bfloat16") == ""


def pad_weights(model: CompiledModel) -> Iterator[dict[str, NDArray[Any]]]:
    """Changes of the weights with which heads read the direction of PAD, in queries and in keys."""
    weights, (at,) = Parsed(model).weights, model.layout.slots[PAD]
    for name in sorted(weights):
        if name.endswith(("W_Q", "W_K")) and weights[name][:, at].any():
            for factor in (0.0, 0.5, -1.0):
                array = weights[name].copy()
                array[:, at] *= factor
                yield {name: array}


@pytest.mark.parametrize("name", ["hist", "sort_composite", *slow(["frac_prevs", "most_freq"])])
@pytest.mark.parametrize("dtype", FORMATS)
def test_no_harmful_change_of_pad_is_accepted(name: str, dtype: str) -> None:
    """PAD queries that see tokens, or PAD keys that are seen: rejected if any padded input has a wrong answer."""
    model = small(name, 1, dtype)
    harmful, accepted, harmless, kept = tried(model, dtype, pad_weights(model))
    assert harmful
    assert not accepted
    assert 2 * kept >= harmless


@pytest.mark.slow
def test_a_needle_of_dyck2_is_rejected_in_bfloat16() -> None:
    """A neuron that is on for 16 opening brackets, and for no other input of 8¹⁶ that was tried, writes nothing."""
    one, length = ARITHMETICS["bfloat16"], 16
    made = EXAMPLES["dyck2"].made_for("(){}abcd", length)
    model = tracr.compile(made.program, made.vocab, length, level=1, dtype="bfloat16")
    parsed, rng = Parsed(model), np.random.default_rng(7)
    rows = ["(" * length, *("(" * count + "a" * (length - count) for count in range(length))]
    rows += ["".join(rng.choice(list("((({})ab"), length)) for _ in range(60)]
    ids, neurons = model.encode([list(row) for row in rows]), list[NDArray[Any]]()

    def answers(weights: Any, neurons: list[NDArray[Any]] | None = None) -> NDArray[Any]:
        logits = stored_network(weights, ids, lambda array: stored(one, array), neurons)
        return np.asarray(model.outputs[0].codes(logits[:, 1:]))

    right = answers(parsed.weights, neurons)
    found = 0
    for layer, hidden in enumerate(neurons):
        on = np.asarray(np.any(hidden > 0, axis=1))
        for place in np.flatnonzero(on[0] & ~on[1:].any(0)):
            name = f"blocks.{layer}.mlp.W_out"
            array = parsed.weights[name].copy()
            array[place] = 0
            changed = {**parsed.weights, name: array}
            if not found and np.flatnonzero(np.any(answers(changed) != right, axis=1)).tolist() == [0]:
                assert parsed.reason(changed, arithmetic="bfloat16") != ""
                found += 1
    assert found
    assert parsed.reason(arithmetic="bfloat16") == ""


@pytest.mark.parametrize("name", ["hist2", "most_freq", "induction"])
def test_models_with_a_causal_mask_have_certificates(name: str) -> None:
    """In float16 too: queries of PAD see BOS only, under a causal mask as without one."""
    example = EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, causal=True, dtype="float16")
    assert model.certify("float16").accepted
