"""The explorer's interpreter and forward pass (JavaScript, run by Node) against Python's."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agreement import compile_quietly
from tests.hanging import HUNG
from tests.strategies import VOCABULARIES, Case
from tests.tally import Tally, compile_case
from tests.tiers import slow, usual
from tracr import InputError
from tracr.compiler.lower import bits
from tracr.ir.domains import Domain, Finite
from tracr.ir.selectors import CompositeNode
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.rasp import Value
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.values import is_number
from tracr.viz.explorer.data import page_data

EVALUATE = Path(__file__).parents[3] / "web" / "tests" / "evaluate.mjs"
EQ = rasp.Comparison.EQ
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")

Job = tuple[CompiledModel, list[list[Value]], list[list[dict[str, Any]]]]


def in_node(jobs: Sequence[Job]) -> list[list[dict[str, Any]]]:
    """What the page would compute."""
    content = [
        {
            "data": page_data(model, [], "x", ""),
            "inputs": [[model.options.vocab.index(token) for token in tokens] for tokens in inputs],
            "patches": patches,
        }
        for model, inputs, patches in jobs
    ]
    done = subprocess.run(
        ["node", str(EVALUATE)], input=json.dumps(content), capture_output=True, text=True, check=True, timeout=HUNG
    )
    results: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return results


def assert_same(model: CompiledModel, inputs: list[list[Value]], got: list[dict[str, Any]]) -> int:
    """Every s-op, every output and the residual stream; returns on how many inputs the program has a value."""
    evaluation = evaluate_batch(model.program, inputs)
    for row, (tokens, page) in enumerate(zip(inputs, got, strict=True)):
        assert page["fails"] == bool(evaluation.errors[row]), tokens
        assert page["steps"] < 1e-3, (tokens, "a head's scores, weights and sums are not those of the forward pass")
        run = model.run(tokens)
        hooks = [f"blocks.{layer}.hook_resid_{where}" for layer in range(model.n_layers) for where in ("mid", "post")]
        expected = np.array([run["hook_embed"] + run["hook_pos_embed"], *(run[hook] for hook in hooks)])[:, 0]
        np.testing.assert_allclose(np.reshape(page["streams"], expected.shape), expected, rtol=1e-4, atol=1e-4)
        if evaluation.errors[row]:
            continue
        assert_codes(evaluation, row, page["program"])
        for output, codes in zip(model.outputs, page["model"], strict=True):
            assert_same_values(output.domain, codes, output.codes(run.logits[0, 1:]).tolist())
        for number, stages in page["variables"]:
            truth = np.broadcast_to(evaluation.codes[number], evaluation.batch.codes.shape)[row, : len(tokens)]
            assert_variable(model, number, stages, truth.tolist())
    return int((~evaluation.errors).sum())


def assert_variable(model: CompiledModel, number: int, stages: list[list[Any]], truth: list[Any]) -> None:
    """What the page reads of a variable after every stage: its values where it is there, nothing where it is not."""
    node = model.program.sops[number]
    directions = [
        one for one in model.layout.directions if (one.variable.node, one.variable.label) == (number, node.label)
    ]
    variable = directions[0].variable
    pruned = set(range(variable.size)) - {one.place for one in directions}
    for time, codes in enumerate(stages, start=-1):
        there = [one for one in directions if one.held(time)]
        if not there or (variable.numerical and there != directions):
            assert codes == [[]] * len(truth), (node.label, time)
            continue
        assert [] not in codes, (node.label, time)
        assert "?" not in codes or pruned or variable.compact or there != directions, (node.label, time)
        known = [place for place, code in enumerate(codes) if code != "?"]
        assert_same_values(node.domain, [codes[place] for place in known], [truth[place] for place in known])


def assert_same_values(domain: Domain, got: list[Any], expected: list[Any], tolerance: float = 1e-6) -> None:
    """The same codes; or numbers that float32 (or the order of a sum) does not tell apart, `None` where it is NaN."""
    assert len(got) == len(expected)
    differing = [(code, other) for code, other in zip(got, expected, strict=True) if code != other]
    if isinstance(domain, Finite):
        values = [(domain.values[code], domain.values[other]) for code, other in differing]
        assert all(is_number(value) for pair in values for value in pair), values
        differing = [(float(value), float(other)) for value, other in values]
    both = np.array([(np.nan if code is None else code, other) for code, other in differing]).reshape(-1, 2)
    np.testing.assert_allclose(both[:, 0], both[:, 1], rtol=tolerance, atol=tolerance)


def assert_codes(evaluation: Evaluation, row: int, program: dict[str, list[float | None]]) -> None:
    length = int(evaluation.batch.lengths[row])
    for number in evaluation.program.sops:
        expected = np.broadcast_to(evaluation.codes[number], evaluation.batch.codes.shape)[row, :length]
        domain = evaluation.program.sops[number].domain
        assert_same_values(domain, program[str(number)], expected.tolist(), tolerance=1e-9)


def models(count: int, *, start: int = 0) -> list[Job]:
    """Random programs over all sorts of vocabularies, bidirectional and causal, at every level."""
    jobs: list[Job] = []
    with Tally(least=0.9) as tally:
        for seed in range(start, start + count):
            case = Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 6, 1 + seed % 5, seed % 3 == 0, seed % 2 == 0)
            with tally.draw():
                jobs.append((compile_case(case, level=seed // 6 % 3), case.inputs(12), []))
    return jobs


@pytest.mark.slow
def test_random_programs() -> None:
    """Interpreter, forward pass, decoding: the page's are Python's."""
    jobs = [*models(36), *models(6, start=60)]
    compared = sum(assert_same(model, inputs, got) for (model, inputs, _), got in zip(jobs, in_node(jobs), strict=True))
    assert compared > 240
    combined = [s for model, _, _ in jobs for s in model.program.selectors.values() if isinstance(s, CompositeNode)]
    assert len(combined) > 3, len(combined)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_functions_of_what_is_patched_follow(level: int) -> None:
    """At level 2 the embedding holds `squared` beside the tokens."""
    squared = rasp.SequenceMap(lambda x, y: x * y, rasp.tokens, rasp.tokens).named("squared")
    alike = rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: (key < 0) == (query < 0))
    mean = rasp.numerical(rasp.Aggregate(alike, rasp.numerical(squared)))
    model = compile_quietly(rasp.Map(lambda x: x * x, mean), [-1, 0, 0.5], 4, level=level)
    (tokens,) = (node.id for node in model.program.sops.values() if node.label == "tokens")
    others = [-1, 0.5, -1]
    patches = [
        {"sop": tokens, "position": place, "code": model.options.vocab.index(x)} for place, x in enumerate(others)
    ]
    ((page,),) = in_node([(model, [[0, 0, -1]], [patches])])
    (output,) = model.outputs
    assert isinstance(output.domain, Finite)
    values = [output.domain.values[code] for code in page["model"][0]]
    assert values == model(others) == [1.0, 0.0625, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(5_000, usual(5_600, long=7_000), 200))
def test_many_random_programs(start: int) -> None:
    """The same by the hundred."""
    jobs = models(200, start=start)
    for (model, inputs, _), got in zip(jobs, in_node(jobs), strict=True):
        assert_same(model, inputs, got)


@pytest.mark.parametrize("count", [5, *slow([20])])
def test_the_library(count: int) -> None:
    """Every program of the library: with few inputs at one level, with more at every level."""
    jobs: list[Job] = []
    for number, example in enumerate(EXAMPLES.values()):
        for level in (0, 1, 2) if count > 5 else (number % 3,):
            model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
            rng = np.random.default_rng(0)
            inputs = [
                [example.vocab[i] for i in rng.integers(len(example.vocab), size=1 + n % example.max_seq_len)]
                for n in range(count)
            ]
            jobs.append((model, [xs for xs in inputs if len(xs) >= model.program.lengths[0]], []))
    for (model, inputs, _), got in zip(jobs, in_node(jobs), strict=True):
        assert assert_same(model, inputs, got)


@pytest.mark.parametrize("level", [1, 2])
def test_values_in_bits(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary of more than 1,024 tokens; and everything with more than two values, as if that were many."""
    many = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, EQ), rasp.Map(lambda x: x // 100, rasp.tokens))
    large = compile_quietly(many, range(1100), 4, level=level)
    jobs: list[Job] = [(large, [[7, 1099, 7], [512, 0, 1023, 1024]], [])]
    monkeypatch.setattr(bits, "IN_BITS_ABOVE", 2)
    monkeypatch.setattr(bits, "FEW_CLASSES", 1000)
    for name in ("reverse", "sort", "hist2", "induction"):
        example = EXAMPLES[name]
        model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
        rng = np.random.default_rng(0)
        inputs = [rng.permutation(np.array(example.vocab, dtype=object))[:n].tolist() for n in (1, 2, 3)]
        jobs.append((model, inputs, []))
    assert all(any(variable.compact for variable in model.layout.slots) for model, _, _ in jobs)
    for (model, inputs, _), got in zip(jobs, in_node(jobs), strict=True):
        assert assert_same(model, inputs, got)
    assert assert_patched(with_patches(jobs)) > 5


def test_values_of_all_types() -> None:
    """Equal values of different types, the string "None", tuples, functions that fail."""
    tokens = rasp.tokens
    mixed = rasp.Map(lambda x: {1: True, 2: "None", 3: None, 4: ("a", 1)}[x], tokens)
    ones = rasp.SelectorWidth(rasp.Select(tokens, tokens, lambda k, q: k == 1))
    failing = rasp.SequenceMap(lambda x, y: 1 / (3 - x - y), ones, rasp.SelectorWidth(rasp.Select(tokens, tokens, EQ)))
    before = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)
    programs = [mixed, failing, rasp.Aggregate(before, mixed, 7), rasp.Aggregate(before, tokens, "none")]
    inputs: list[list[Value]] = [[1, 2, 3, 4], [4, 3], [3, 3, 1], [2], [1, 2, 1]]
    jobs: list[Job] = [(compile_quietly(p, (1, 2, 3, 4), 4), inputs, []) for p in programs]
    found = [assert_same(model, inputs, got) for (model, _, _), got in zip(jobs, in_node(jobs), strict=True)]
    assert found == [5, 3, 5, 5]


def with_patches(jobs: Sequence[Job]) -> list[Job]:
    """The same jobs, with one variable set at one position for each input."""
    rng = np.random.default_rng(0)
    found: list[Job] = []
    for model, inputs, _ in jobs:
        able = [g["sop"] for g in page_data(model, [], "", "")["groups"] if g["settable"]]
        able = [number for number in able if isinstance(model.program.sops[number].domain, Finite)]
        able = [number for number in able if model.program.sops[number].label not in model.circuit.rewriting.absorbed]
        patches = []
        for tokens in inputs:
            number = able[rng.integers(len(able))]
            size = model.program.sops[number].domain.size
            change = {"sop": number, "position": int(rng.integers(len(tokens))), "code": int(rng.integers(size))}
            patches.append([change])
        found.append((model, inputs, patches))
    return found


def assert_patched(jobs: Sequence[Job]) -> int:
    """Program and model run on from what is set as in Python; returns for how many inputs the program has a value."""
    compared = 0
    for (model, inputs, patches), got in zip(jobs, in_node(jobs), strict=True):
        for tokens, (change,), page in zip(inputs, patches, got, strict=True):
            node = model.program.sops[change["sop"]]
            batch = Batch.of([tokens], model.options.vocab)
            codes = np.array(np.broadcast_to(evaluate_batch(model.program, batch).codes[node.id], batch.codes.shape))
            if evaluate_batch(model.program, batch).errors.any():
                continue
            codes[0, change["position"]] = change["code"]
            evaluation = evaluate_batch(model.program, batch, {node.id: codes})
            assert page["fails"] == bool(evaluation.errors[0])
            values = [node.domain.values[code] for code in codes[0]]  # type: ignore[union-attr]
            try:
                run = model.run(tokens, set={node.label: values})
            except InputError:  # the page says why it has no answer, or does not let the variable be patched
                continue
            for output, shown in zip(model.outputs, page["model"], strict=True):
                assert_same_values(output.domain, shown, output.codes(run.logits[0, 1:]).tolist())
            if not page["fails"]:
                assert_codes(evaluation, 0, page["program"])
                compared += 1
    return compared


@pytest.mark.slow
def test_patches() -> None:
    """A variable set at one position, dimensions that are used again or not."""
    jobs = with_patches(models(24, start=1000))
    assert sum(len(model.residual.dimensions) > len(model.residual) for model, _, _ in jobs) > 3
    assert assert_patched(jobs) > 60
