"""Level 0 has the structure the paper describes; level 1 is never larger."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

import tracr
from tracr.rasp import programs, rasp

FRAC_PREVS = [
    *("tokens:a", "tokens:b", "tokens:c", "tokens:x", "tokens:bos", "tokens:pad"),
    *("indices:0", "indices:1", "indices:2", "indices:3", "indices:4"),
    *("one", "is_x", "frac_prevs"),
]


def frac_prevs(annotated: bool) -> rasp.SOp:
    """The paper's running example, with or without encoding annotations."""
    is_x = (rasp.tokens == "x").named("is_x")
    if annotated:
        return programs.make_frac_prevs(rasp.numerical(is_x))
    prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    return rasp.Aggregate(prevs, is_x).named("frac_prevs")


@pytest.mark.parametrize("annotated", [False, True])
def test_frac_prevs_has_the_papers_14_dimensions(annotated: bool) -> None:
    """Figure 1: the labels, and which sub-layers are no-ops."""
    model = tracr.compile(frac_prevs(annotated), vocab="abcx", max_seq_len=5, level=0)
    assert model.residual.labels == FRAC_PREVS
    assert model.show("schedule").splitlines() == ["attn 0: no-op", "mlp 0: is_x", "attn 1: frac_prevs", "mlp 1: no-op"]


def test_frac_prevs_residual_stream_is_figure_1() -> None:
    """The residual stream after each sub-layer, for the paper's input."""
    model = tracr.compile(frac_prevs(True), vocab="abcx", max_seq_len=5, level=0)
    run = model.run("xacx")
    start, attn_1, mlp_1, attn_2, mlp_2 = (
        run[name][0]
        for name in (
            "blocks.0.hook_resid_pre",
            "blocks.0.hook_resid_mid",
            "blocks.0.hook_resid_post",
            "blocks.1.hook_resid_mid",
            "blocks.1.hook_resid_post",
        )
    )
    labels = model.residual.labels
    hot = [{labels[i] for i in row.nonzero()[0]} for row in start]
    assert hot[0] == {"tokens:bos", "one"}
    assert hot[2] == {"tokens:a", "indices:1", "one"}
    assert (attn_1 == start).all()
    assert mlp_1[:, labels.index("is_x")].tolist() == [0, 1, 0, 0, 1]
    assert attn_2[:, labels.index("frac_prevs")] == pytest.approx([0, 1, 1 / 2, 1 / 3, 1 / 2], abs=1e-6)
    assert (mlp_2 == attn_2).all()


def changes(model: tracr.CompiledModel, tokens: Sequence[rasp.Value]) -> list[set[str]]:
    """The variables each sub-layer changes on an input: the red borders of the paper's figures."""
    run = model.run(tokens)
    names = [f"blocks.{i}.hook_resid_{place}" for i in range(model.n_layers) for place in ("pre", "mid")]
    stages = [run[name][0] for name in (*names, f"blocks.{model.n_layers - 1}.hook_resid_post")]
    return [
        {model.residual[int(i)].variable for i in (after != before).any(axis=0).nonzero()[0]}
        for before, after in pairwise(stages)
    ]


def held(model: tracr.CompiledModel, tokens: Sequence[rasp.Value], variable: str) -> list[list[float]]:
    """What the final residual stream holds of a variable, a row for each token."""
    final = model.run(tokens)[f"blocks.{model.n_layers - 1}.hook_resid_post"][0]
    slots = [model.residual.labels.index(dimension.label) for dimension in model.residual.of(variable)]
    return final[1:, slots].astype(float).round(4).tolist()


def one_hot(index: int, size: int) -> list[float]:
    """1 at an index, 0 elsewhere."""
    return [float(i == index) for i in range(size)]


def test_sort_unique_is_figure_4() -> None:
    """Attn 0 and MLP 0 compute target_pos, attn 1 moves the tokens, MLP 1 is a no-op."""
    model = tracr.compile(programs.make_sort_unique(rasp.tokens, rasp.tokens), (1, 2, 3), 3, level=0)
    assert changes(model, [3, 1, 2]) == [{"target_pos_share"}, {"target_pos"}, {"sort"}, set()]
    assert held(model, [3, 1, 2], "target_pos") == [one_hot(i, 4) for i in (2, 0, 1)]
    assert held(model, [3, 1, 2], "sort") == [one_hot(i, 4) for i in (0, 1, 2)]
    assert model.show("schedule").splitlines() == [
        "attn 0: target_pos_share",
        "mlp 0: target_pos",
        "attn 1: sort",
        "mlp 1: no-op",
    ]


def test_pair_balance_computes_both_fractions_in_parallel() -> None:
    """Attn 0 no-op, MLP 0 and attn 1 both calls of frac_prevs, MLP 1 the difference."""
    model = tracr.compile(programs.make_pair_balance(rasp.tokens, "(", ")"), "()a", 4, level=0)
    assert model.show("schedule").splitlines() == [
        "attn 0: no-op",
        "mlp 0: bools_open, bools_close",
        "attn 1: opens, closes",
        "mlp 1: pair_balance",
    ]


def test_pair_balance_figure() -> None:
    """As many layers as frac_prevs; the sub-layers change both fractions, then their difference."""
    model = tracr.compile(programs.make_pair_balance(rasp.tokens, "(", ")"), "()a", 4, level=0)
    assert model.n_layers == tracr.compile(frac_prevs(True), "abcx", 5, level=0).n_layers
    assert changes(model, "())(") == [set(), {"bools_open", "bools_close"}, {"opens", "closes"}, {"pair_balance"}]
    assert held(model, "())(", "pair_balance") == [[1], [0], [-0.3333], [0]]


def test_sort_figure() -> None:
    """Attn 0 is a no-op, MLP 0 makes the keys distinct, and the rest is sort_unique."""
    program = programs.make_sort(rasp.tokens, rasp.tokens, max_seq_len=4, min_key=1)
    model = tracr.compile(program, (1, 2, 3), 4, level=0)
    unique = tracr.compile(programs.make_sort_unique(rasp.tokens, rasp.tokens), (1, 2, 3), 4, level=0)
    of_sort, of_unique = model.show("schedule").splitlines(), unique.show("schedule").splitlines()
    assert of_sort[:2] == ["attn 0: no-op", "mlp 0: distinct_keys"]
    assert [line.split(": ")[1] for line in of_sort[2:]] == [line.split(": ")[1] for line in of_unique]
    assert changes(model, [2, 1, 2]) == [set(), {"distinct_keys"}, *changes(unique, [2, 1, 3])]
    keys = [dimension.value for dimension in model.residual.of("distinct_keys")]
    assert held(model, [2, 1, 2], "distinct_keys") == [one_hot(keys.index(key), len(keys)) for key in (2, 1.25, 2.5)]
    assert held(model, [2, 1, 2], "sort") == [one_hot(i, 4) for i in (0, 1, 1)]


DYCK_2 = {
    "attn 0": ["length_share"],
    "mlp 0": ["length", "bools_open", "bools_close", "bools_open_2", "bools_close_2"],
    "attn 1": ["opens", "closes", "opens_2", "closes_2"],
    "mlp 1": ["map", "balance_()", "balance_{}"],  # map is length - 1
    "attn 2": ["no-op"],
    "mlp 2": ["map_2", "map_3", "map_4", "map_5"],  # each balance == 0, each balance < 0
    "attn 3": ["no-op"],
    "mlp 3": ["all_zero", "any_negative"],
    "attn 4": ["last_zero", "has_neg"],
    "mlp 4": ["map_6"],  # not has_neg
    "attn 5": ["no-op"],
    "mlp 5": ["shuffle_dyck2"],
}


def test_dyck_2_follows_the_papers_program() -> None:
    """Both pairs side by side up to their balances, then signs, conjunctions, both aggregates, the answer."""
    model = tracr.compile(programs.make_shuffle_dyck2(), "(){}", 4, level=0)
    assert model.show("schedule").splitlines() == [f"{place}: {', '.join(names)}" for place, names in DYCK_2.items()]
    balance = tracr.compile(programs.make_pair_balance(rasp.tokens, "(", ")"), "(){}", 4, level=0)
    assert [len(layer.W_Q) for layer in model.parameters.layers] == [
        1,
        2 * len(balance.parameters.layers[1].W_Q),
        0,
        0,
        2,
        0,
    ]


def test_dyck_2_figure() -> None:
    """A sub-layer changes what it computes and nothing else; `())(` closes too early, `({)}` does not."""
    model = tracr.compile(programs.make_shuffle_dyck2(), "(){}", 4, level=0)
    changed = [set().union(*parts) for parts in zip(*(changes(model, xs) for xs in ("({)}", "())(")), strict=True)]
    assert changed == [set(names) - {"no-op"} for names in DYCK_2.values()]
    assert held(model, "())(", "balance_()") == [[1], [0], [-0.3333], [0]]
    assert held(model, "())(", "has_neg") == [[0.25]] * 4
    assert held(model, "())(", "shuffle_dyck2") == [one_hot(0, 2)] * 4
    assert held(model, "({)}", "has_neg") == [[0]] * 4
    assert held(model, "({)}", "shuffle_dyck2") == [one_hot(1, 2)] * 4


def test_level_1_merges_heads_with_one_pattern() -> None:
    """Both fractions of pair_balance share a selector, so one head computes them."""
    program = programs.make_pair_balance(rasp.tokens, "(", ")")
    zero, one = (tracr.compile(program, "()a", 4, level=level) for level in (0, 1))
    assert [len(layer.W_Q) for layer in zero.parameters.layers] == [0, 2]
    assert [len(layer.W_Q) for layer in one.parameters.layers] == [0, 1]


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_level_1_is_never_larger(name: str) -> None:
    """Neither in layers nor in dimensions nor in parameters."""
    example = programs.EXAMPLES[name]
    zero, one = (tracr.compile(example.program, example.vocab, example.max_seq_len, level=level) for level in (0, 1))
    assert one.n_layers <= zero.n_layers
    assert one.d_model <= zero.d_model
    assert one.n_parameters <= zero.n_parameters
