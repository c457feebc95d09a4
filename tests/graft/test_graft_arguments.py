"""Wrong arguments: each of them gives an error that names it, and no error of numpy or torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.errors import InputError, TracrError

pytest.importorskip("torch")

import torch

from tracr import graft

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"
AT = "blocks.0.attn.0"


class Given:
    """A twin, its part, some inputs of five tokens, and their ids and answers."""

    def __init__(self) -> None:
        twin: Any = tracr.load(TWINS / "hist")
        self.twin, self.teacher, self.host = twin, twin.teacher, twin.to_torch()
        self.part = graft.Part(self.teacher, AT)
        self.inputs = [one for one in graft.inputs_of(self.teacher, 400) if len(one) == 5][:40]
        known = graft.data_of_program(self.teacher, self.inputs)
        self.ids, self.answers = known.ids, known.answers[0].wanted
        self.grafted = self.replace(data=self.inputs)

    def replace(self, at: Any = AT, part: Any = None, data: Any = None, **options: Any) -> graft.Grafted:
        """A graft, with the wrong arguments of a test."""
        made = self.inputs if data is None else data
        return graft.replace(self.host, at, self.part if part is None else part, made, **options)

    def padded(self, ids: torch.Tensor) -> torch.Tensor:
        """The logits of a graft that was fitted on inputs of several lengths."""
        logits: torch.Tensor = graft.replace(self.host, AT, self.part)(ids)
        return logits

    def data(self, ids: Any = None, answers: Any = None, **options: Any) -> graft.GraftData:
        """Data, with the wrong arguments of a test."""
        options = {"start": 1, **options}
        given = self.ids if ids is None else ids, self.answers if answers is None else answers
        return graft.data_of_ids(options.pop("inputs", self.inputs), *given, **options)


@pytest.fixture(scope="module")
def given() -> Given:
    return Given()


WRONG: dict[str, tuple[Callable[[Given], Any], str]] = {
    "a model as a part": (lambda one: one.replace(part=one.teacher), "part must be a list"),
    "a name as a part": (lambda one: one.replace(part=["hist"]), "part has 'hist', which is no part"),
    "a number as a place": (lambda one: one.replace(at=0), "there is no place 0"),
    "None as a place": (lambda one: graft.replace(one.host, None, one.part, one.inputs), "no place None"),  # type: ignore[arg-type]
    "a number as data": (lambda one: one.replace(data=3), "data must be a list"),
    "a negative seed": (lambda one: one.replace(seed=-1), "seed must be an integer from 0"),
    "a seed that is no number": (lambda one: one.grafted.report(seed="x"), "seed must be an integer"),  # type: ignore[arg-type]
    "ids out of range": (
        lambda one: one.replace(data=one.data(ids=one.ids + 100)),
        "no place for these ids, from 100 to",
    ),
    "negative ids": (lambda one: one.data(ids=-one.ids), "ids are 0 or more"),
    "ids that are fractions": (lambda one: one.data(ids=one.ids + 0.5), "tables of whole numbers"),
    "answers that are no numbers": (lambda one: one.data(answers=one.answers * np.nan), "tables of whole numbers"),
    "answers below -1": (lambda one: one.data(answers=one.answers * 0 - 7), "answers -1 or more"),
    "answers out of range": (lambda one: one.replace(data=one.data(answers=one.answers + 90)), "but the host has"),
    "no answers": (lambda one: one.replace(data=one.data(answers=one.answers * 0 - 1)), "no answer is asked for"),
    "a start that is no number": (lambda one: one.data(start="1"), "start must be an integer from 0"),
    "padding that is a token": (lambda one: one.data(pad=int(one.ids[0, 1])), "padding .* at other places"),
    "padding before tokens": (
        lambda one: one.data([[0, 1, 2], [0, 5, 1]], [[1, 1], [1, -1]], inputs=[("a", "b"), ("a",)], pad=5),
        "input 1 has 1 tokens",
    ),
    "inputs that are no lists": (lambda one: one.data(inputs=[1, 2]), "an input is a list of tokens, not 1"),
    "a model in a library": (lambda one: graft.explain(one.host, AT, [one.teacher], one.inputs), "which is no part"),
    "parts of no model": (lambda one: graft.parts_of("hist"), "parts are components of a compiled model"),  # type: ignore[arg-type]
    "a library for no tokens": (lambda one: graft.library("", 5), "no tokens"),
    "inputs of no model": (lambda one: graft.inputs_of("hist"), "drawn for a compiled model"),  # type: ignore[arg-type]
    "a control that is no part": (
        lambda one: one.grafted.report(others=["hist"]),  # type: ignore[list-item]
        "others has 'hist'",
    ),
    "a control of another kind": (
        lambda one: one.grafted.report(others=graft.parts_of(one.teacher)[1:]),
        "takes parts that are heads",
    ),
    "data without BOS": (
        lambda one: one.grafted.report(one.data(ids=one.ids[:, 1:], start=0)),
        "fitted with start=1",
    ),
    "ids that are no whole numbers": (lambda one: one.grafted(torch.zeros((1, 4))), "takes ids"),
    "ids that are truth values": (lambda one: one.grafted(torch.ones((1, 4), dtype=torch.bool)), "takes ids"),
    "all inputs to fit with": (lambda one: one.replace(share=1.0), "share must be below 1"),
    "more than all inputs": (lambda one: one.replace(share=2), "share must be below 1, not 2"),
    "no BOS": (lambda one: one.grafted(torch.as_tensor(one.ids[:, 1:])), "inputs begin with the ids \\[4\\]"),
    "padding before BOS": (
        lambda one: one.padded(torch.tensor([[5, 4, 0, 1]])),
        "inputs begin with the ids \\[4\\]",
    ),
    "padding before a token": (
        lambda one: one.padded(torch.tensor([[4, 5, 0, 1]])),
        "a token follows padding, the id 5",
    ),
    "a part for other tokens": (
        lambda one: one.replace(part=graft.library("xyz", 5, names="hist")[0]),
        "the part hist blocks.0.attn.0 does not take the inputs: token",
    ),
    "a part for shorter inputs": (
        lambda one: one.replace(part=graft.library("abcd", 4, names="hist")[0]),
        "the part hist blocks.0.attn.0 does not take the inputs: .* at most 4",
    ),
    "a library without heads": (
        lambda one: graft.explain(one.host, AT, graft.parts_of(one.teacher)[1:], one.inputs),
        "none of 1 is of the kind head",
    ),
    "parts that are constant": (
        lambda one: graft.explain(one.host, AT, one.part, ["a", "b", "c", "d"]),
        "constant on the 4 inputs",
    ),
    "ids of no token to run on": (
        lambda one: one.grafted(torch.as_tensor(one.ids * 0 + [4, 0, 0, 0, 0, 99])),
        "no place",
    ),
    "no ids": (lambda one: one.grafted.logits(one.ids[:0]), "there are no ids"),
    "hooks without functions": (
        lambda one: one.grafted.run_with_hooks(torch.as_tensor(one.ids), ["graft.out"]),  # type: ignore[arg-type]
        "hooks map names to functions",
    ),
    "a hook that is no function": (
        lambda one: one.grafted.run_with_hooks(torch.as_tensor(one.ids), {"graft.out": 3}),  # type: ignore[dict-item]
        "the hook at graft.out is 3",
    ),
    "tokens that are lists": (lambda one: graft.library([["a"]], 3), "not hashable"),  # type: ignore[list-item]
    "no inputs to compare on": (lambda one: graft.equal_in_program(one.part, one.part, []), "no inputs to compare"),
    "no token": (lambda one: one.grafted(torch.zeros((1, 1), dtype=torch.long)), "at least 2 positions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused(given: Given, name: str) -> None:
    """The message says which argument is wrong."""
    call, message = WRONG[name]
    with pytest.raises(TracrError, match=message) as caught:
        call(given)
    assert "hint" in str(caught.value)


def test_lists_may_be_given_where_data_are_wanted(given: Given) -> None:
    """A list of inputs is data for a report, as for `replace`; one part is a library, and one name a list of names."""
    assert given.grafted.report(given.inputs).inputs == len(given.inputs)
    assert graft.explain(given.host, AT, given.part, given.inputs).best.part is given.part
    assert [one.title for one in graft.library("ab", 4, names="hist")] == ["hist blocks.0.attn.0", "hist blocks.0.mlp"]


def test_a_host_that_tracr_made_needs_no_data(given: Given) -> None:
    """By default the inputs are those of the host's program; any other host needs ids and answers."""
    ranking = graft.explain(given.host, AT, graft.parts_of(given.teacher))
    assert ranking.best.part.name == AT
    grafted: Any = graft.replace(given.host, AT, given.part)
    assert len(grafted.fitted.bench.inputs) == len(graft.inputs_of(given.teacher))
    bare = torch.nn.ModuleDict({"blocks": given.host.blocks})
    for call in (graft.explain, graft.replace):
        with pytest.raises(InputError, match=r"needs data with ids and answers[\s\S]*data_of_ids"):
            call(bare, AT, given.part)


def test_tables_are_what_notebooks_show(given: Given) -> None:
    """A ranking and a report show their tables, with a heading."""
    ranking = graft.explain(given.host, AT, given.part, given.inputs)
    assert repr(ranking) == str(ranking)
    assert str(ranking).splitlines()[1].split() == ["recovered", "agreement", "entropy", "part"]
    report = given.grafted.report()
    assert repr(report) == str(report)


def test_a_host_without_hooks_says_how_to_get_them(given: Given) -> None:
    """A model of Hugging Face has no hook points: the message names the bridge."""
    with pytest.raises(TracrError, match=r"TransformerBridge\.boot_transformers"):
        graft.replace(torch.nn.Linear(2, 2), AT, given.part, given.data())


def test_a_host_that_drops_values_is_refused(given: Given) -> None:
    """In training mode with dropout, answers are random; without dropout the mode makes no difference."""
    host = given.twin.to_torch()
    host.blocks[0].hook_mlp_out.register_forward_hook(
        lambda module, _, found: torch.dropout(found, 0.3, module.training)
    )
    with pytest.raises(TracrError, match=r"host\.eval"):
        graft.replace(host.train(), AT, given.part, given.inputs)
    assert graft.replace(host.eval(), AT, given.part, given.inputs).report().counts
    assert graft.replace(given.twin.to_torch().train(), AT, given.part, given.inputs).report().counts


def test_a_host_with_numbers_that_are_not_finite_is_refused(given: Given) -> None:
    """One NaN among the weights."""
    host = given.twin.to_torch()
    with torch.no_grad():
        host.blocks[0].mlp.W_in[0, 0] = torch.nan
    with pytest.raises(InputError, match="not finite"):
        graft.replace(host, AT, given.part, given.inputs)
