"""What an intervention must give: the reference interpreter on the expressions themselves, some of them replaced."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import tracr
from tests.agreement import RAW, same
from tracr.ir.domains import Domain, Finite
from tracr.ir.program import InferredNode
from tracr.rasp.interpreter import CausalEvaluator, DefaultRASPEvaluator
from tracr.rasp.rasp import RASPExpr, Value

Rows = list[list[Value]]


def replaced_output(model: tracr.CompiledModel, tokens: Sequence[Value], given: Mapping[str, Sequence[Value]]) -> Any:
    """The program's (only) output with the expressions under these labels replaced: they have no children any more.

    User functions and the interpreter's own rules compute it, no table does; a TracrError if the program raises.
    """
    evaluator = CausalEvaluator() if model.options.causal else DefaultRASPEvaluator()
    exprs: dict[RASPExpr, Any] = {
        expr: given[node.label]
        for node, expr in zip(model.graph.nodes, model.expressions, strict=True)
        if node.label in given
    }

    def value(expr: RASPExpr) -> Any:
        if expr not in exprs:
            exprs[expr] = evaluator.evaluate_one(expr, list(tokens), [value(child) for child in expr.children])
        return exprs[expr]

    ((_, output),) = model.graph.outputs
    try:
        return value(model.expressions[output])
    except tracr.TracrError as error:
        return error


def domains_of(model: tracr.CompiledModel) -> dict[str, Domain]:
    """The domain of every variable that the program has an expression for, shared or not."""
    traced = {node.label for node in model.graph.nodes}
    nodes: Mapping[int, InferredNode] = (model.program.written or model.program).sops
    return {node.label: node.domain for node in nodes.values() if node.label in traced}


def random_values(
    domain: Domain, inputs: Sequence[Sequence[Value]], usual: Rows, rng: random.Random, odd: float = 0.5
) -> Rows:
    """Values of a domain for every token; `odd` of them any, the rest such as the variable takes on these inputs."""

    def one() -> Value:
        if not isinstance(domain, Finite):
            return rng.uniform(domain.low, domain.high)
        value = rng.choice(rng.choice(usual))
        return value if rng.random() > odd and value in domain.index else rng.choice(domain.values)

    return [[one() for _ in tokens] for tokens in inputs]


def interventions_agree(
    model: tracr.CompiledModel, inputs: Sequence[Sequence[Value]], seed: int, trials: int = 12
) -> tuple[int, int]:
    """Set random variables to random values of their domains: the model gives the interpreter's answer, or refuses.

    A third of the trials sets several, a third is padded; returns how many ran, and how many were refused.
    """
    rng = random.Random(seed)
    evaluator = CausalEvaluator() if model.options.causal else DefaultRASPEvaluator()
    exprs = {node.label: expr for node, expr in zip(model.graph.nodes, model.expressions, strict=True)}
    outputs = [model.expressions[number] for _, number in model.graph.outputs]
    usual = [evaluator.evaluate_all(outputs, tokens) for tokens in inputs]
    domains = domains_of(model)
    ran = refused = 0
    for trial in range(trials):
        labels = rng.sample(list(domains), min(len(domains), rng.choice([1, 1, 2, 3])))
        odd = rng.choice([0.0, 0.3, 1.0])
        change = {
            label: random_values(domains[label], inputs, [values[exprs[label]] for values in usual], rng, odd)
            for label in labels
        }
        given = [[*tokens] for tokens in inputs]
        if trial % 3 == 0:
            longest = model.program.lengths[1]
            given = [[*tokens, *[model.options.pad] * rng.randint(0, longest - len(tokens))] for tokens in inputs]
        try:
            decoded = model.run(given, set=change).decoded
        except tracr.InputError:
            refused += 1
            continue
        ran += 1
        for row, tokens in enumerate(inputs):
            own = {label: values[row] for label, values in change.items()}
            expected = replaced_output(model, tokens, own)
            assert not isinstance(expected, tracr.TracrError), (tokens, own, decoded[row], expected)
            got = decoded[row][: len(tokens)]
            assert all(same(a, b, RAW) for a, b in zip(got, expected, strict=True)), (tokens, own, got, expected)
    return ran, refused
