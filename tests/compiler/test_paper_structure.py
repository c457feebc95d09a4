"""Level 0 has the structure the paper describes; level 1 is never larger."""

from __future__ import annotations

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
    assert model.show("schedule").splitlines() == ["attn 1: no-op", "mlp 1: is_x", "attn 2: frac_prevs", "mlp 2: no-op"]


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


def test_sort_unique_is_figure_4() -> None:
    """Attn 1 and MLP 1 compute target_pos, attn 2 moves the tokens, MLP 2 is a no-op."""
    model = tracr.compile(programs.make_sort_unique(rasp.tokens, rasp.tokens), (1, 2, 3), 3, level=0)
    assert model.show("schedule").splitlines() == [
        "attn 1: target_pos_share",
        "mlp 1: target_pos",
        "attn 2: sort",
        "mlp 2: no-op",
    ]


def test_pair_balance_computes_both_fractions_in_parallel() -> None:
    """Attn 1 no-op, MLP 1 and attn 2 both calls of frac_prevs, MLP 2 the difference."""
    model = tracr.compile(programs.make_pair_balance(rasp.tokens, "(", ")"), "()a", 4, level=0)
    assert model.show("schedule").splitlines() == [
        "attn 1: no-op",
        "mlp 1: bools_open, bools_close",
        "attn 2: opens, closes",
        "mlp 2: pair_balance",
    ]


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
