"""Parts that are right without explaining anything: they do not count, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.errors import TracrError
from tracr.rasp import rasp

pytest.importorskip("torch")

import torch

from tracr import graft
from tracr.graft.host import HostModel, is_causal

PLACE = "blocks.1.mlp"


def other_token(step: int) -> Any:
    """The token so many positions before."""
    there = rasp.Map(lambda place: place - step, rasp.indices).named("there")
    return rasp.Aggregate(rasp.Select(rasp.indices, there, rasp.Comparison.EQ), rasp.tokens, default=0).named("other")


def compiled(function: Callable[[int, int], int], after: Callable[[int], Any] | None = None) -> tracr.CompiledModel:
    """A function of a token and the token before it, and perhaps of that alone."""
    found = rasp.SequenceMap(function, other_token(1), rasp.tokens).named("answer")
    program = found if after is None else rasp.Map(after, found).named("after")
    return tracr.compile(program, range(4), 5, causal=True)


def part_of(model: tracr.CompiledModel, kind: str) -> graft.Part:
    """The last head, or the last MLP."""
    return [one for one in graft.parts_of(model) if one.kind == kind][-1]


def head_of(program: Any, *, causal: bool) -> graft.Part:
    """The head of a program."""
    return part_of(tracr.compile(program, range(4), 5, causal=causal), "head")


def mixed(one: int, other: int) -> int:
    """A sum that no affine map of the tokens tells, but that can often be guessed from their sizes."""
    return (one + other * other) % 4


def test_a_part_that_reads_the_answer_does_not_count() -> None:
    """The variable of the part is the host's answer, which a map that reads can often guess from the stream.

    The part only gives it another name. It does as well as the variable that is written as it was read.
    """
    model = compiled(mixed)
    cheat = part_of(compiled(mixed, lambda answer: "wxyz"[answer]), "mlp")
    assert [one.label for one in cheat.inputs] == ["answer"]
    host, inputs = model.to_torch(), graft.inputs_of(model, 500)
    report = graft.replace(host, PLACE, cheat, inputs, share=0.75).report()
    assert report.reads["answer"] < 0.95
    controls = {one.name: one for one in report.controls}
    alone = controls.pop("answer as it is read, nothing computed")
    assert all(one.beaten for one in controls.values())
    assert not alone.beaten
    assert alone.accuracy == report.line("replaced").accuracy
    assert not report.counts
    honest = graft.replace(host, PLACE, part_of(model, "mlp"), inputs, share=0.75).report()
    assert honest.counts
    assert "variable" not in {one.kind for one in honest.controls}


def test_the_variable_alone_is_refined_like_the_part() -> None:
    """Also with refined maps and on other inputs, the part and its variable do the same."""
    model = compiled(mixed)
    cheat = part_of(compiled(mixed, lambda answer: "wxyz"[answer]), "mlp")
    inputs = graft.inputs_of(model, 500)
    grafted = graft.replace(model.to_torch(), PLACE, cheat, inputs[:-60], share=0.75, refine=2)
    for data in (None, inputs[-60:]):
        report = grafted.report(data)
        assert "answer as it is read, nothing computed" in {one.name for one in report.controls if not one.beaten}


def test_parts_that_look_at_later_tokens_are_refused_in_a_causal_host() -> None:
    """The next token is the answer that a language model has to guess; a part that copies it would always count."""
    model = compiled(mixed)
    host, inputs = model.to_torch(), graft.inputs_of(model, 300)
    ahead, honest = head_of(other_token(-1), causal=False), head_of(other_token(1), causal=False)
    with pytest.raises(TracrError, match="looks at later tokens"):
        graft.replace(host, "blocks.1.attn.0", ahead, inputs)
    grafted = graft.replace(host, "blocks.1.attn.0", honest, inputs)  # compiled without a mask, but it looks back
    with pytest.raises(TracrError, match="looks at later tokens"):
        grafted.report(others=[ahead])
    ranking = graft.explain(host, "blocks.1.attn.0", [ahead, honest], inputs)
    assert [one.part for one in ranking.rows] == [honest]
    with pytest.raises(TracrError, match="looks at later tokens"):
        graft.explain(host, "blocks.1.attn.0", [ahead], inputs)


def test_later_tokens_may_be_read_where_the_host_sees_them() -> None:
    """In a host with attention in both directions the same part is one like any other."""
    model = tracr.compile(other_token(-1), range(4), 5)
    ahead = head_of(other_token(-1), causal=False)
    grafted = graft.replace(model.to_torch(), f"blocks.{ahead.layer}.attn.0", ahead, graft.inputs_of(model, 300))
    assert grafted.report().counts


def test_a_report_on_fitted_inputs_says_so() -> None:
    """Maps may know these inputs by heart: nothing counts on them, and the heading does not say they are new."""
    model = compiled(mixed)
    inputs = graft.inputs_of(model, 300)
    grafted = graft.replace(model.to_torch(), PLACE, part_of(model, "mlp"), inputs)
    report = grafted.report(inputs)
    assert 0 < report.fitted < report.inputs
    assert "were not fitted on" not in str(report)
    assert report.verdict == f"does not count: the maps were fitted on {report.fitted} of the {report.inputs} inputs"
    assert not report.counts
    assert grafted.report().fitted == 0


def test_whether_a_host_sees_later_tokens() -> None:
    """Known of models that tracr made, whatever they compute; found out for any other host."""
    for causal in (True, False):
        back = tracr.compile(other_token(1), range(4), 5, causal=causal).to_torch()  # looks back only
        ids = np.asarray([[4, *row] for row in np.ndindex(4, 4, 4)])
        assert is_causal(HostModel(back), ids) == causal
        assert is_causal(HostModel(torch.nn.Sequential(back)), ids)  # which does not say how it was made
    ahead = tracr.compile(other_token(-1), range(4), 5).to_torch()
    assert not is_causal(HostModel(torch.nn.Sequential(ahead)), ids)
    assert not is_causal(HostModel(torch.nn.Sequential(ahead)), ids[:1])  # nothing to compare
