"""Every expression and every operation is known everywhere: a forgotten place fails here, by name.

`docs/extending.md` adds a primitive in a copy of the package, and runs this file there.
"""

from __future__ import annotations

import inspect
import itertools
import pickle
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import tracr
from tests.agreement import load_compiled
from tests.primitives import LONGEST, SAMPLES, VOCAB
from tracr.compiler.frontend.rules.state import infer_node
from tracr.compiler.lower.lower import _lower
from tracr.datasets.meaning import meaning
from tracr.datasets.printing import run_python, to_python
from tracr.datasets.structure import same_structure
from tracr.errors import TracrError
from tracr.ir.ops import KINDS, Op, Operation, SumLookup
from tracr.ir.program import Program
from tracr.rasp import expressions, rasp
from tracr.rasp.base import RASPExpr
from tracr.rasp.interpreter import _evaluate
from tracr.rasp.traversal import topological
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.saving.json_reader import Reader
from tracr.saving.program_json import program_json, program_tables, read_program
from tracr.text.drawing.plan import plan
from tracr.text.printer import to_rasp
from tracr.viz.explorer.data import KNOWN

PAGE = Path(__file__).parents[1] / "web/src/core/program.js"
INPUTS = [list(xs) for length in range(1, LONGEST + 1) for xs in itertools.product(VOCAB, repeat=length)]
ABSTRACT = {rasp.SOp, rasp.Selector}
THE_OPTIMISERS = {"sum_lookup"}  # never part of what the explorer page computes


def below(kind: Any) -> list[Any]:
    """The classes that are derived from one, and are the package's own and public."""
    found = [one for own in kind.__subclasses__() for one in (own, *below(own))]
    return [one for one in dict.fromkeys(found) if one.__module__.startswith("tracr.") and one.__name__[0] != "_"]


EXPRESSIONS = [kind for kind in below(RASPExpr) if kind not in ABSTRACT]
OPERATIONS = below(Operation)


@pytest.mark.parametrize("kind", EXPRESSIONS, ids=lambda kind: kind.__name__)
class TestExpression:
    def test_is_exported_and_has_a_sample(self, kind: type[RASPExpr]) -> None:
        """`rasp.NAME` is the class, and `tests/primitives.py` has a program with it."""
        assert getattr(rasp, kind.__name__, None) is getattr(expressions, kind.__name__, None) is kind
        assert kind.__name__ in vars(rasp)["__all__"]
        assert kind.__name__ in vars(expressions)["__all__"]
        assert any(isinstance(expr, kind) for expr in topological([SAMPLES[kind]]))

    def test_is_interpreted_and_inferred(self, kind: type[RASPExpr]) -> None:
        """Both tables of rules have one for it."""
        tables: tuple[Any, ...] = (_evaluate, infer_node)
        for rules in tables:
            assert rules.dispatch(kind) is not rules.dispatch(object), f"no rule of {rules.__name__}"

    def test_constructor_takes_fields(self, kind: type[RASPExpr]) -> None:
        """Python text, pickles and copies are made from the fields, which are the parameters' names."""
        switches = {"simplify"}  # how to build, not what
        fields = SAMPLES[kind].fields().keys() if type(SAMPLES[kind]) is kind else _fields(kind)
        assert inspect.signature(kind).parameters.keys() - switches <= set(fields)


def _fields(kind: type[RASPExpr]) -> set[str]:
    return next(set(expr.fields()) for expr in topological([SAMPLES[kind]]) if type(expr) is kind)


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.__name__)
class TestOperation:
    def test_is_one_of_the_operations(self, kind: Any) -> None:
        """It is in the union, under a kind of its own, so that mypy misses it in matches that end in assert_never."""
        assert kind in get_args(Op)
        assert KINDS[kind.kind] is kind

    def test_owns_its_facts(self, kind: Any) -> None:
        """Every field has a role; phrase, text and, with a table, shape are its own."""
        roles = kind.roles()
        wanted = ["phrase", "text", *(["shape"] if any(role.name == "TABLE" for role in roles.values()) else [])]
        assert [name for name in wanted if getattr(kind, name) is getattr(Operation, name)] == []

    def test_is_lowered(self, kind: Any) -> None:
        """There is a lowering for it."""
        assert _lower.dispatch(kind) is not _lower.dispatch(object), f"no lowering of {kind.__name__}"


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
class TestSample:
    @pytest.mark.parametrize("level", [0, 1, 2])
    def test_model_computes_it(self, kind: type[RASPExpr], level: int, tmp_path: Path) -> None:
        """Model, loaded model and tabulated program give what the interpreter gives, on every input."""
        program = SAMPLES[kind]
        model = tracr.compile(program, VOCAB, LONGEST, level=level)
        assert model.verify()  # against the program as data
        model.save(tmp_path / "model")
        loaded = load_compiled(tmp_path / "model")
        assert meaning(loaded.program) == meaning(model.program)
        assert loaded.program.show() == model.program.show()
        for xs in INPUTS:
            wanted = program(xs)
            assert model(xs) == wanted
            assert loaded(xs) == wanted

    def test_python_text_gives_it_back(self, kind: type[RASPExpr]) -> None:
        """`to_python` and `run_python` are inverse."""
        assert same_structure(run_python(to_python(SAMPLES[kind])), SAMPLES[kind])

    def test_textual_language_says_it(self, kind: type[RASPExpr]) -> None:
        """`to_rasp` gives a text that computes the same."""
        text = to_rasp(SAMPLES[kind], vocab=VOCAB, max_seq_len=LONGEST)
        read = tracr.parse(text)
        output = read[text.rstrip(";").splitlines()[-1].split(" = ")[0]]
        assert [output(xs) for xs in INPUTS] == [SAMPLES[kind](xs) for xs in INPUTS]

    def test_travels_and_is_drawn(self, kind: type[RASPExpr]) -> None:
        """Pickles give it back; a drawing shows what it computes."""
        assert same_structure(pickle.loads(pickle.dumps(SAMPLES[kind])), SAMPLES[kind])
        rows = [row for layer in plan(SAMPLES[kind], VOCAB).layers for row in layer.rows]
        rows += [row for layer in plan(SAMPLES[kind], VOCAB).layers for head in layer.heads for row in head.rows]
        assert [list(row.values) for row in rows if row.result] == [SAMPLES[kind](VOCAB)]

    def test_explorer_shows_it_or_says_why_not(self, kind: type[RASPExpr]) -> None:
        """The page is made, or refused because it cannot compute an operation, which the message names."""
        model = tracr.compile(SAMPLES[kind], VOCAB, LONGEST)
        missing = {node.op.kind for node in model.program.sops.values()} - KNOWN
        if not missing:
            assert "<html" in model.explore(VOCAB).html
            return
        with pytest.raises(TracrError, match="|".join(missing)):
            model.explore(VOCAB)


def optimised() -> Program:
    """A program with a function of a sum, which only the optimiser makes."""
    sides = [rasp.SelectorWidth(rasp.Select(rasp.tokens, token, rasp.Comparison.EQ)) == 1 for token in VOCAB]
    model = tracr.compile(sides[0] & sides[1] & sides[2], VOCAB, LONGEST, level=2)
    return model.circuit.rewriting.applied(model.program)


def test_optimised_programs_can_be_saved() -> None:
    """Every operation is written and read by the roles of its fields, those that only the optimiser makes too."""
    program = optimised()
    assert any(isinstance(node.op, SumLookup) for node in program.sops.values())
    written = Reader(program_json(program), "program")
    read = read_program(written, program_tables(program), program.options)
    assert read.show() == program.show()
    assert evaluate_batch(read, INPUTS).values(read.outputs[0][1]) == evaluate_batch(program, INPUTS).values(
        program.outputs[0][1]
    )


def test_renumbering_moves_everything_that_is_read() -> None:
    """An operation with other numbers reads the s-ops and selectors of those numbers; with the same it is itself."""
    programs = [optimised(), *(tracr.compile(sample, VOCAB, LONGEST).program for sample in SAMPLES.values())]
    seen = set()
    for node in (node for program in programs for node in program.sops.values()):
        moved = node.op.renumbered(lambda number: number + 100)
        read, reads = [(*op.inputs, *op.attended, *op.selectors) for op in (node.op, moved)]
        assert reads == tuple(number + 100 for number in read)
        assert node.op.renumbered(lambda number: number) is node.op
        seen.add(type(node.op))
    assert seen == set(OPERATIONS)


def test_explorer_page_computes_what_it_is_said_to_know() -> None:
    """KNOWN is the list of cases in the page's source; what is left out is named here."""
    source = PAGE.read_text()
    switch = source[source.index("  at(sop, op, position) {") :]
    cases = set(re.findall(r'case "(\w+)":', switch[: switch.index("default:")]))
    assert cases == KNOWN
    assert set(KINDS) - cases >= THE_OPTIMISERS
