"""The passes as objects: their order, what flows between them, switches, and what `check_each` finds."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.compiler import pipeline
from tracr.compiler.frontend.trace import TracedGraph
from tracr.compiler.pipeline import PIPELINE, stages
from tracr.ir.circuit import Circuit
from tracr.ir.inferred import Inferred
from tracr.ir.layout import Layout
from tracr.ir.ops import Table
from tracr.ir.options import LEVELS, Options
from tracr.ir.parameters import Parameters
from tracr.ir.passes import Pass
from tracr.ir.program import Program
from tracr.ir.rewriting import Rewritten
from tracr.ir.schedule import PlacedCircuit, Schedule
from tracr.ir.switches import OPTIONS, PASSES, OptionName, PassName
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.rasp import Comparison

NAMES = [one.name for one in PIPELINE]


def watched(level: int, name: str = "shuffle_dyck2", **options: Any) -> list[tuple[Pass, Any]]:
    """What is seen of a compilation of a program of the library."""
    seen: list[tuple[Pass, Any]] = []
    example = EXAMPLES[name]
    tracr.compile(
        example.program,
        example.vocab,
        example.max_seq_len,
        level=level,
        watch=lambda one, value: seen.append((one, value)),
        **options,
    )
    return seen


# The list


def test_the_pipeline_has_every_name_once_in_order() -> None:
    """The Enum of names is in the order the passes run, and nothing else has a pass's name."""
    assert list(PassName) == NAMES
    assert not {*PassName} & {*OptionName}


def test_each_pass_takes_what_the_one_before_gives() -> None:
    """From outputs to parameters, without a gap."""
    assert (PIPELINE[0].takes, PIPELINE[-1].gives) == (Mapping, Parameters)
    for before, after in itertools.pairwise(PIPELINE):
        assert before.gives is after.takes, (before.name, after.name)


def test_passes_that_may_be_off_change_no_type() -> None:
    """Otherwise what follows could not run without them."""
    for one in PIPELINE:
        if one.switches:
            assert one.takes is one.gives, one.name
            assert one.level in (1, 2, None), one.name
        else:
            assert one.level == 0, one.name


def test_every_switch_belongs_to_a_pass_or_is_an_option() -> None:
    """Passes with a switch of their own are those of `tracr.PASSES`; levels and sentences are the same."""
    own = {one.name: (one.level, one.does) for one in PIPELINE if one.switches == (one.name,)}
    assert own == {name: (switch.level, switch.does) for name, switch in PASSES.items()}
    assert [*OPTIONS] == [*OptionName]
    assert all(one.does for one in PIPELINE)


def test_the_map_in_the_docstring_is_the_pipeline() -> None:
    """Names, types and levels in the order of the list."""
    rows = re.findall(r"^    (\w+) +(\*?) +(\w+) +(\w+) +(always|asked|\d) ", pipeline.__doc__ or "", re.MULTILINE)
    levels = {0: "always", None: "asked"}
    kinds: dict[type, str] = {Mapping: "outputs"}
    expected = [
        (
            one.name,
            *(kinds.get(kind, kind.__name__) for kind in (one.takes, one.gives)),
            levels.get(one.level, str(one.level)),
        )
        for one in PIPELINE
    ]
    assert [(name, takes, gives, level) for name, _, takes, gives, level in rows] == expected
    assert {name for name, star, *_ in rows if star} == {
        one.name for one in PIPELINE if "choose_" in one.run.__qualname__
    }


def test_the_documentation_has_every_pass_and_option() -> None:
    """With its sentence, in the order they run, options apart."""
    text = (Path(__file__).parents[2] / "docs" / "optimiser.md").read_text(encoding="utf-8")
    tables = [
        re.findall(r"^\| `(\w+)`(?: \*)? \| [\w ]+ \| ([^|]+?)(?: \(switched by [^|]*\))? \|", part, re.MULTILINE)
        for part in text.split("\n## ")[1:3]
    ]
    assert tables == [
        [(one.name, one.does) for one in PIPELINE],
        [(name, option.does) for name, option in OPTIONS.items()],
    ]


# Running them


@pytest.mark.parametrize("level", LEVELS)
def test_passes_run_in_the_order_of_the_list(level: int) -> None:
    """Those that the level has, each once, and every value is of the type it should be."""
    seen = watched(level)
    assert [one.name for one, _ in seen] == [
        one.name for one in PIPELINE if one.level is not None and one.level <= level
    ]
    for one, value in seen:
        assert isinstance(value, one.gives), one.name


def test_a_pass_that_is_switched_off_is_not_run() -> None:
    """One with a switch of its own, and one that an option switches."""
    names = [one.name for one, _ in watched(2, passes={"fold": False, "rank": False})]
    assert "fold" not in names
    assert "split" not in names
    assert "prune" in names


def test_the_model_is_made_of_what_the_passes_made() -> None:
    """The model has the very objects that the passes returned, not copies."""
    example = EXAMPLES["sort"]
    seen: dict[str, Any] = {}
    model = tracr.compile(
        example.program,
        example.vocab,
        example.max_seq_len,
        level=2,
        watch=lambda one, value: seen.update({one.name: value}),
    )
    assert model.graph is seen["trace"].graph
    assert model.program is seen["store"]
    assert model.layout is seen["reuse"]
    assert model.parameters is seen["assemble"]
    assert model.circuit is seen["factor"]
    assert model.circuit.rewriting.applied(model.program).show() in seen["sums"].show()


def test_stages_gives_every_value() -> None:
    """The same from Python, each with its text."""
    made = stages({"previous": programs.make_reverse(rasp.tokens)}, Options(tuple("abc"), 4, level=2))
    kinds = {type(value) for one, value in made if one.name != "fuse_expressions"}
    assert kinds - {Rewritten} == {
        TracedGraph,
        Inferred,
        Program,
        Circuit,
        PlacedCircuit,
        Schedule,
        Layout,
        Parameters,
    }
    assert all(value.show() for one, value in made if one.name != "fuse_expressions")


def test_numbers_that_differ_by_rounding_are_inferred_again() -> None:
    """The passes run a second time, and the second values are those of the model; checking finds nothing."""
    everywhere = rasp.Select(1, 1, Comparison.EQ)
    tenths = rasp.Map(lambda x: x * 0.1, rasp.tokens)
    before = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1), tenths, default=0)
    total = rasp.Aggregate(everywhere, rasp.SequenceMap(lambda x, y: x + y, tenths, before))
    seen: list[tuple[str, Any]] = []
    model = compile_quietly(
        rasp.Map(lambda x: x == 0.3, total),
        (1, 2, 3),
        3,
        watch=lambda one, value: seen.append((one.name, value)),
        check_each=True,
    )
    assert [name for name, _ in seen].count("infer") == 2
    assert model.assumptions
    assert seen[-1][1] is model.parameters


@pytest.mark.parametrize("name", ["fodl", "Fold", 3])
def test_a_misspelt_switch_is_refused(name: Any) -> None:
    """In a mapping and in a list."""
    for passes in ({name: True}, [name]):
        with pytest.raises(tracr.CompileError, match="there is no pass"):
            tracr.compile(rasp.tokens, "ab", 3, passes=passes)


def test_a_pass_without_a_switch_is_refused() -> None:
    """With the names that can be switched."""
    with pytest.raises(tracr.CompileError, match="the pass 'lower' has no switch"):
        tracr.compile(rasp.tokens, "ab", 3, passes={"lower": False})


def test_names_may_be_members_of_the_enums() -> None:
    """What is kept is their text, as in JSON."""
    model = tracr.compile(rasp.tokens, "ab", 3, passes={PassName.FOLD: True, OptionName.RANK: False})
    assert model.options.on(PassName.FOLD)
    assert not model.options.on(OptionName.RANK)
    assert {type(name) for name in model.options.passes or ()} == {str}


# Checking each


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["frac_prevs", "sort", "shuffle_dyck2", "most_freq", "reverse"])
def test_every_pass_is_right_on_the_library(name: str, level: int) -> None:
    """`check_each` finds nothing."""
    watched(level, name, check_each=True)


@pytest.mark.parametrize("level", LEVELS)
def test_every_pass_is_right_on_random_programs(level: int) -> None:
    """Causal or not, of numbers or strings; most of them compile."""
    compiled = 0
    for seed in range(12):
        vocab, causal = (("a", "b", "c"), (-1, 0, 0.5))[seed % 2], seed % 3 == 0
        program = random_program(seed, max_ops=8, vocab=vocab, max_seq_len=4, causal=causal)
        try:
            compile_quietly(program, vocab, 4, causal=causal, level=level)
        except tracr.CompileError:
            continue
        compile_quietly(program, vocab, 4, causal=causal, level=level, check_each=True)
        compiled += 1
    assert compiled >= 10


def broken_table(program: Any) -> Any:
    """The last table that an output reads gives the same value everywhere."""
    number = max(number for number, node in program.sops.items() if isinstance(node.op, Table))
    node = program.sops[number]
    assert isinstance(node.op, Table)
    op = replace(node.op, table=np.zeros_like(node.op.table))
    return replace(program, sops={**program.sops, number: replace(node, op=op)})


def broken_circuit(circuit: Circuit) -> Circuit:
    """The last component writes nothing but zeros."""
    *rest, last = circuit.components
    zero = replace(last, writes=tuple((variable, matrix * 0) for variable, matrix in last.writes))
    return replace(circuit, components=(*rest, zero))


def broken_schedule(schedule: Schedule) -> Schedule:
    """The layers the other way round."""
    return replace(schedule, layers=schedule.layers[::-1])


def broken_placement(placed: PlacedCircuit) -> PlacedCircuit:
    """The sub-layers the other way round."""
    last = max(placed.placement.times)
    times = tuple(last - time for time in placed.placement.times)
    return replace(placed, placement=replace(placed.placement, times=times))


def broken_layout(layout: Layout) -> Layout:
    """All directions in one dimension."""
    return replace(layout, directions=tuple(direction._replace(slot=0) for direction in layout.directions))


def broken_weights(parameters: Parameters) -> Parameters:
    """All weights zero."""
    return parameters.map(np.zeros_like)


BROKEN: dict[str, Callable[[Any], Any]] = {
    "infer": broken_table,
    "share": broken_table,
    "encode": broken_table,
    "store": broken_table,
    "simplify": broken_table,
    "lower": broken_circuit,
    "fold": broken_circuit,
    "prune": broken_circuit,
    "factor": broken_circuit,
    "assign": broken_placement,
    "stack": broken_schedule,
    "merge_heads": broken_schedule,
    "layout": broken_layout,
    "reuse": broken_layout,
    "assemble": broken_weights,
}


def _then_broken(one: Pass, breaks: Callable[[Any], Any], value: Any, search: Any) -> Any:
    return breaks(one.run(value, search))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pass_is_found_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kind of value it makes: without the check some of them would give a wrong model."""
    passes = tuple(
        replace(one, run=partial(_then_broken, one, BROKEN[name])) if one.name == name else one for one in PIPELINE
    )
    monkeypatch.setattr(pipeline, "PIPELINE", passes)
    program = rasp.SequenceMap(lambda n, token: (n > 1, token), programs.make_hist(), rasp.tokens).named("repeated")
    with pytest.raises(tracr.TracrError, match=f"after the pass {name}: "):
        tracr.compile(program, "abc", 4, level=2, check_each=True)


def test_a_pass_that_gives_another_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is done with it."""
    passes = tuple(replace(one, run=lambda value, search: value) if one.name == "trace" else one for one in PIPELINE)
    monkeypatch.setattr(pipeline, "PIPELINE", passes)
    with pytest.raises(tracr.TracrError, match="after the pass trace: it gives a dict, not a TracedGraph"):
        tracr.compile(rasp.tokens, "abc", 4, check_each=True)
