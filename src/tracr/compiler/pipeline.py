"""The compiler on one page: `PIPELINE` lists its passes in the order they run.

    pass                from          to            level   what it does                                      in
    fuse_expressions    outputs       outputs       always  .rasp: merges the operations of one expression    frontend/
    trace               outputs       TracedGraph   always  lists the operations                              frontend/
    infer               TracedGraph   Inferred      always  calls the user's functions to fill tables         frontend/
    share            *  Inferred      Inferred      1       computes equal expressions once                   program/
    drop_unused         Inferred      Inferred      always  removes operations that no output needs           program/
    encode              Inferred      Program       always  stores each variable one-hot or as a number       program/
    split            *  Program       Program       1       splits large comparisons over several heads       selectors/
    store            *  Program       Program       2       tries numbers, weighted sums and bits             program/
    simplify         *  Program       Program       2       removes constant operations                       program/
    fuse             *  Program       Program       2       composes nested functions into one                program/
    sums             *  Program       Program       2       computes functions of several variables by a sum  program/
    lower               Program       Circuit       always  builds heads and neurons for every operation      lower/
    embed_functions  *  Circuit       Circuit       1       embeds functions of one token or position         circuit/
    fold                Circuit       Circuit       2       multiplies linear functions into their readers    circuit/
    prune               Circuit       Circuit       1       removes unread components and directions          circuit/
    factor              Circuit       Circuit       2       embeds only the features that are read            circuit/
    assign              Circuit       PlacedCircuit always  puts each component into its earliest layer       layers/
    schedule            PlacedCircuit PlacedCircuit 2       moves components to make the stream narrower      layers/
    solve               PlacedCircuit PlacedCircuit asked   finds the best schedule with a solver             optimal/
    stack               PlacedCircuit Schedule      always  collects the components of each layer             layers/
    merge_heads         Schedule      Schedule      1       merges heads with the same pattern                layers/
    share_neurons       Schedule      Schedule      2       merges neurons with the same input weights        layers/
    layout              Schedule      Layout        always  gives every direction a labelled dimension        residual/
    reuse               Layout        Layout        2       stores several variables in one dimension in turn residual/
    assemble            Layout        Parameters    always  writes the weights                                residual/

Every pass is a pure function from one frozen value to the next. A pass marked * proposes rivals. The search (`search/`)
runs the later passes on each rival until its size is known, and keeps one rival for the next pass. Level 0 has no
rivals; level 1 has those of `share`, `split` and `embed_functions`; level 2 has all.

The program of a compilation is the value after `store`. Models are checked against this program, saved with it and
shown as it. Loading a saved model runs the later passes again. Every value after `trace` has `show()`, and all but the
weights have `verify()`. This module verifies the values that the model is made of. `tracr compile --check-each`
verifies the value after every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracr.compiler.circuit.embed_features import factor
from tracr.compiler.circuit.fold import fold
from tracr.compiler.circuit.prune import prune
from tracr.compiler.frontend.fuse_expressions import fuse
from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.suggest import suggest_vocabulary
from tracr.compiler.frontend.trace import Outputs, TracedGraph, trace
from tracr.compiler.layers.assign import assign_to_layers, merge_heads, stack
from tracr.compiler.layers.narrow import narrow
from tracr.compiler.layers.share_neurons import share_neurons
from tracr.compiler.lower.lower import lower
from tracr.compiler.lower.numbers import RoundingTwins
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.functions_of_sums import sums
from tracr.compiler.program.fuse_tables import fuse_maps
from tracr.compiler.program.share import drop_unused
from tracr.compiler.program.simplify import simplify
from tracr.compiler.residual.assemble import assemble
from tracr.compiler.residual.lay_out import lay_out, with_reuse
from tracr.compiler.search import (
    Searcher,
    choose_embedding,
    choose_rewrites,
    choose_sharing,
    choose_splits,
    choose_storage,
)
from tracr.errors import FunctionError
from tracr.ir.circuit import Circuit, Component
from tracr.ir.compilation import Compilation
from tracr.ir.domains import finite
from tracr.ir.graph import Graph
from tracr.ir.inferred import Inferred
from tracr.ir.layout import Layout
from tracr.ir.ops import Attention, LengthOp
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.passes import Pass, Watch
from tracr.ir.program import Program, Tables
from tracr.ir.schedule import PlacedCircuit, Schedule
from tracr.ir.switches import PASSES, OptionName, PassName
from tracr.nearness import TWINS
from tracr.rasp.expressions import RASPExpr

__all__ = ["PIPELINE", "compile_inferred", "compile_program", "compile_tabulated", "stages", "tabulated", "verify"]

Run = Callable[[Any, Searcher], Any]


def _alone(function: Callable[[Any], Any]) -> Run:
    """A pass that needs only the value, not the search."""
    return lambda value, _: function(value)


def _switched(name: PassName, takes: type, gives: type, run: Run) -> Pass:
    """A pass with a switch of its own."""
    return Pass(name, PASSES[name].level, takes, gives, run, PASSES[name].does, (name,))


def _solved(placed: PlacedCircuit, search: Searcher) -> PlacedCircuit:
    """The schedule found by a solver, which is imported only when used."""
    from tracr.compiler.optimal.solve import solve

    return solve(placed.circuit, search.options.solve_seconds)


def _inferring(near: float = 0.0) -> Run:
    def run(traced: TracedGraph, search: Searcher) -> Inferred:
        try:
            inferred = infer(traced, search.options, near)
        except FunctionError as error:
            suggest_vocabulary(error, traced, search.options)
            raise
        _check_gap(inferred)
        return inferred

    return run


P = PassName
PIPELINE: tuple[Pass, ...] = (
    Pass(
        P.FUSE_EXPRESSIONS,
        0,
        Mapping,
        Mapping,
        lambda outputs, search: fuse(outputs, search.options.vocab),
        "merges the operations written in one expression of a .rasp text",
    ),
    Pass(P.TRACE, 0, Mapping, TracedGraph, _alone(trace), "lists every operation that the outputs are built from"),
    Pass(
        P.INFER,
        0,
        TracedGraph,
        Inferred,
        _inferring(),
        "finds the values each variable can take, and turns the program's functions into tables",
    ),
    _switched(P.SHARE, Inferred, Inferred, choose_sharing),
    Pass(P.DROP_UNUSED, 0, Inferred, Inferred, _alone(drop_unused), "removes operations that no output needs"),
    Pass(
        P.ENCODE,
        0,
        Inferred,
        Program,
        _alone(choose_encodings),
        "decides for each variable whether it is stored as a one-hot code or as a number",
    ),
    Pass(
        P.SPLIT,
        1,
        Program,
        Program,
        choose_splits,
        "splits large comparisons over several narrow heads, if that makes the model smaller",
        (OptionName.RANK,),
    ),
    Pass(
        P.STORE,
        2,
        Program,
        Program,
        choose_storage,
        "tries other encodings (numbers, weighted sums, bits) and keeps those that make the model smaller",
        (OptionName.LINEAR_TABLES, OptionName.MATCH, OptionName.FEW_BITS),
    ),
    _switched(P.SIMPLIFY, Program, Program, choose_rewrites(P.SIMPLIFY, simplify)),
    _switched(P.FUSE, Program, Program, choose_rewrites(P.FUSE, fuse_maps)),
    _switched(P.SUMS, Program, Program, choose_rewrites(P.SUMS, sums)),
    Pass(P.LOWER, 0, Program, Circuit, _alone(lower), "builds the attention heads and neurons of every operation"),
    Pass(
        P.EMBED_FUNCTIONS,
        1,
        Circuit,
        Circuit,
        choose_embedding,
        "lets the embedding write functions of one token or position, if no size of the model grows",
        (P.PRUNE, P.FACTOR),
    ),
    _switched(P.FOLD, Circuit, Circuit, _alone(fold)),
    _switched(P.PRUNE, Circuit, Circuit, _alone(prune)),
    _switched(P.FACTOR, Circuit, Circuit, _alone(factor)),
    Pass(
        P.ASSIGN,
        0,
        Circuit,
        PlacedCircuit,
        _alone(assign_to_layers),
        "puts each head and each group of neurons into the earliest possible layer",
    ),
    _switched(P.SCHEDULE, PlacedCircuit, PlacedCircuit, lambda placed, _: narrow(placed.circuit)),
    _switched(
        P.SOLVE,
        PlacedCircuit,
        PlacedCircuit,
        _solved,
    ),
    Pass(P.STACK, 0, PlacedCircuit, Schedule, _alone(stack), "collects the heads and the neurons of each layer"),
    _switched(P.MERGE_HEADS, Schedule, Schedule, _alone(merge_heads)),
    _switched(P.SHARE_NEURONS, Schedule, Schedule, _alone(share_neurons)),
    Pass(
        P.LAYOUT,
        0,
        Schedule,
        Layout,
        lambda schedule, _: lay_out(schedule, schedule.options),
        "gives every variable its own labelled dimensions of the residual stream",
    ),
    _switched(P.REUSE, Layout, Layout, _alone(with_reuse)),
    Pass(
        P.ASSEMBLE,
        0,
        Layout,
        Parameters,
        lambda layout, _: assemble(layout, layout.schedule.options),
        "writes the weights",
    ),
)
INFERRED = [one.name for one in PIPELINE].index(P.INFER) + 1  # how many passes run before the program is inferred
TABULATED = [one.name for one in PIPELINE].index(P.STORE) + 1  # how many passes run before the program is saved
VERIFIED = (P.TRACE, P.STORE, P.SUMS, P.FACTOR, P.REUSE)  # the values that a model is made of


def compile_program(outputs: Outputs, options: Options, watch: Watch | None = None) -> Compilation:
    """A transformer that computes the outputs; `watch` is called with every pass and its result.

    If the model would have to tell apart numbers that differ only by rounding, they are treated as one value, and this
    is recorded as an assumption. With `strict`, or if the vocabulary itself has such numbers, the program is refused.
    """
    try:
        return _compiled(outputs, options, watch, PIPELINE)
    except RoundingTwins:
        if options.strict or len(finite(options.vocab, near=TWINS)) < len(options.vocab):
            raise
    return _compiled(outputs, options, watch, _with_run(P.INFER, _inferring(TWINS)))


def compile_inferred(outputs: Outputs, traced: TracedGraph, inferred: Inferred) -> Compilation:
    """What `compile_program` gives for outputs that are traced and inferred already, with the options of `inferred`.

    They must not be expressions of a .rasp text, which are merged before they are traced.
    """
    options = inferred.options
    _check_gap(inferred)
    verify(traced)
    search = Searcher(PIPELINE, options)
    try:
        made = _run(PIPELINE[INFERRED:], inferred, search)
    except RoundingTwins:
        return compile_program(outputs, options)
    return _compilation(made, traced.graph, traced.expressions, made[P.STORE], search)


def _compiled(outputs: Outputs, options: Options, watch: Watch | None, passes: Sequence[Pass]) -> Compilation:
    search = Searcher(passes, options)
    made = _run(passes, outputs, search, watch)
    traced: TracedGraph = made[P.TRACE]
    return _compilation(made, traced.graph, traced.expressions, made[P.STORE], search)


def tabulated(traced: TracedGraph, options: Options) -> Program:
    """The program as data: the passes from `infer` to `store`. No later pass calls the user's functions."""
    first = [one.name for one in PIPELINE].index(P.INFER)
    made = _run(PIPELINE[first:TABULATED], traced, Searcher(PIPELINE, options))
    program: Program = made[P.STORE]
    return program


def compile_tabulated(
    graph: Graph, program: Program, schedule_of: Callable[[Circuit], PlacedCircuit] | None = None
) -> Compilation:
    """Rebuild a saved model from its tables and, if a solver was used, from the schedule that it found."""
    _check_gap(program)
    passes = PIPELINE
    if schedule_of is not None:
        passes = _with_run(P.SOLVE, lambda placed, _: schedule_of(placed.circuit))
    search = Searcher(passes, program.options)
    made = _run(passes[TABULATED:], program, search)
    return replace(_compilation(made, graph, (), program, search), search=None)


def stages(outputs: Outputs, options: Options) -> list[tuple[Pass, Any]]:
    """Every pass that runs, with its result.

    >>> from tracr.rasp import rasp
    >>> made = stages({"output": (rasp.tokens == "x").named("is_x")}, Options(("x", "y"), 3))
    >>> [str(one.name) for one, _ in made][:4]
    ['fuse_expressions', 'trace', 'infer', 'share']
    >>> print(dict((one.name, value) for one, value in made)["lower"].show())
    embedding writes tokens[2]
    MLP of 2 neurons: tokens -> is_x[2]  # table of tokens (x == 'x')
    output output: is_x
    """
    found: dict[PassName, tuple[Pass, Any]] = {}
    compile_program(outputs, options, lambda one, value: found.update({one.name: (one, value)}))
    return list(found.values())


def _with_run(name: PassName, run: Run) -> tuple[Pass, ...]:
    """The passes of `PIPELINE`, with another function for one of them."""
    return tuple(replace(one, run=run) if one.name is name else one for one in PIPELINE)


def _run(passes: Sequence[Pass], value: Any, search: Searcher, watch: Watch | None = None) -> dict[PassName, Any]:
    """The value after each pass; a pass that is off does not change the value."""
    made: dict[PassName, Any] = {}
    verified = None
    checked: frozenset[Component] = frozenset()
    for one in passes:
        if one.name is P.LOWER:
            search.settle(value)
        if one.on(search.options):
            value = search.run(one.name, value)
            if watch is not None:
                watch(one, value)
        if one.name in VERIFIED and value is not verified:
            verify(value, checked)
            verified = value
            checked = frozenset(value.components) if isinstance(value, Circuit) else checked
        made[one.name] = value
    return made


def _compilation(
    made: Mapping[PassName, Any],
    graph: Graph,
    expressions: tuple[RASPExpr, ...],
    program: Program,
    search: Searcher,
) -> Compilation:
    layout: Layout = made[P.REUSE]
    circuit: Circuit = made[P.FACTOR]
    schedule = layout.schedule
    record = search.record(layout)
    return Compilation(
        program.options, graph, expressions, program, circuit, schedule, layout, made[P.ASSEMBLE], record
    )


def verify(value: Any, checked: Collection[Component] = ()) -> None:
    """Raise if a value between two passes, or a part of it, breaks an invariant.

    The matrices of `checked` components are known to fit their variables.
    """
    if isinstance(value, Layout):
        value.schedule.verify(checked)
    if not isinstance(value, Mapping | Parameters):  # expressions and weights have no invariants
        value.verify()


def _check_gap(program: Tables) -> None:
    """Refuse a gap that is too small, if the program uses attention."""
    if any(isinstance(node.op, Attention | LengthOp) for node in program.sops.values()):
        program.options.check_gap()
