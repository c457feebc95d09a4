"""The record of the search: what was tried, what was kept, and that the model is what was chosen."""

from __future__ import annotations

import ast
import copy
import itertools
import pickle
from pathlib import Path

import pytest

import tracr
from tests.agreement import compile_quietly
from tracr import CompiledModel
from tracr.ir.options import LEVELS
from tracr.ir.search import Search
from tracr.ir.size import Size
from tracr.ir.switches import PassName
from tracr.rasp import rasp
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.rasp import Comparison

SOURCES = Path(tracr.__file__).parent


def compiled(name: str, level: int, **options: object) -> CompiledModel:
    """A program of the library."""
    example = EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level, **options)  # type: ignore[arg-type]


def record(model: CompiledModel) -> Search:
    """The record of a model that was just compiled."""
    assert model.search is not None
    return model.search


def size(model: CompiledModel) -> Size:
    """Counted in the weights themselves."""
    heads = sum(len(layer.W_Q) for layer in model.parameters.layers)
    return Size(model.n_layers, model.d_model, heads, model.n_parameters)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_the_record_is_of_the_model(name: str, level: int) -> None:
    """Its size is the model's; of every pass the last rival kept is no larger than any that was measured before."""
    model = compiled(name, level)
    search = record(model)
    assert search.size == size(model)
    for step in dict.fromkeys(trial.step for trial in search.trials):
        trials = search.of(step)
        assert trials[0].kept
        kept = [trial.size for trial in trials if trial.kept and trial.size is not None]
        assert kept == sorted(kept, key=lambda one: (one.layers, one.parameters), reverse=True)


def test_the_levels_try_what_they_should() -> None:
    """Nothing at level 0; whether to share, split and embed at level 1; everything at level 2."""
    steps = {}
    for level in LEVELS:
        steps[level] = {trial.step for name in EXAMPLES for trial in record(compiled(name, level)).trials}
    assert steps[0] == set()
    assert steps[1] <= {PassName.SHARE, PassName.SPLIT, PassName.EMBED_FUNCTIONS}
    assert steps[2] >= {PassName.SHARE, PassName.STORE, PassName.FUSE, PassName.SUMS, PassName.EMBED_FUNCTIONS}


def test_what_was_chosen_is_what_was_built() -> None:
    """The program after a pass is the last rival kept: with the passes that follow off, the model has its size."""
    off = dict.fromkeys(("schedule", "factor", "simplify", "fuse", "sums"), False)
    model = compiled("reverse", 2, passes=off)
    *_, chosen = [trial for trial in record(model).of("store") if trial.kept]
    assert chosen.what.startswith("sums: ")
    assert model.program.stored.sums
    assert chosen.size == size(model)


def test_refusals_and_deeper_rivals_say_so() -> None:
    """Without a size, with a reason."""
    trials = [trial for name in EXAMPLES for trial in record(compiled(name, 2)).trials]
    deeper = [trial for trial in trials if trial.size is None and trial.measured.layers is not None]
    assert deeper
    assert {trial.why for trial in deeper if not trial.kept} <= {"more layers"}
    assert all(trial.why for trial in trials)


def test_splitting_is_recorded_at_level_1() -> None:
    """A comparison of many values, split because that is worth its heads."""
    order = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.LT).named("smaller")).named("rank")
    model = tracr.compile(order, range(200), 4)
    trials = record(model).of(PassName.SPLIT)
    assert [trial.kept for trial in trials] == [True, True]
    assert trials[-1].size == record(model).size == size(model)
    assert model.program.stored.split


def test_the_table_has_a_line_for_every_rival() -> None:
    """And titles, and the model."""
    search = record(compiled("shuffle_dyck2", 2))
    lines = search.show().splitlines()
    assert len(lines) == len(search.trials) + 2
    assert lines[0].split()[:2] == ["pass", "rival"]
    assert lines[-1].split() == ["model", *(f"{number:,}" for number in search.size)]
    assert "nothing was tried" in record(compiled("frac_prevs", 0)).show()


def test_a_loaded_model_has_no_record(tmp_path: Path) -> None:
    """Nor one from a pickle; a copy keeps it."""
    model = compiled("reverse", 2)
    model.save(tmp_path / "model")
    loaded = tracr.load(tmp_path / "model")
    assert isinstance(loaded, tracr.CompiledModel)
    assert loaded.search is None
    assert pickle.loads(pickle.dumps(model)).search is None
    assert copy.copy(model).search is model.search


def test_random_programs_are_no_larger_than_the_start() -> None:
    """Every rival kept has no more layers and parameters than the one kept before; the record's size is the model's."""
    compared = 0
    for seed in range(40):
        vocab = (("a", "b", "c"), (-1, 0, 0.5))[seed % 2]
        program = random_program(seed, max_ops=8, vocab=vocab, max_seq_len=4)
        try:
            search = record(model := compile_quietly(program, vocab, 4, level=2))
        except tracr.CompileError:
            continue
        assert search.size == size(model)
        for step in (PassName.STORE, PassName.SIMPLIFY, PassName.FUSE, PassName.SUMS):
            sizes = [trial.size for trial in search.of(step) if trial.kept and trial.size is not None]
            for before, after in itertools.pairwise(sizes):
                assert after.layers <= before.layers
                assert after.parameters <= before.parameters or step == PassName.STORE
                compared += 1
    assert compared >= 10


def test_only_the_search_lowers_and_measures() -> None:
    """No other module of the compiler lowers a program, but the list of passes, or asks how wide a model would be."""
    importing: dict[str, set[str]] = {"lower": set(), "narrowest_width": set(), "Searcher": set()}
    for path in (SOURCES / "compiler").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                if alias.name in importing:
                    importing[alias.name].add(path.relative_to(SOURCES / "compiler").parts[0])
    assert importing == {
        "lower": {"pipeline.py"},
        "narrowest_width": {"search"},
        "Searcher": {"search", "pipeline.py"},
    }
