"""The compiler on one page: six steps, each a pure function from one frozen value to the next.

    step                     from          to             file
      fuse                   SOp           SOp            fuse.py        .rasp: an expression, an operation
    1 trace                  SOp           Graph          trace.py
    2 infer                  Graph         Typed          infer.py
        share                Typed         Typed          share.py       level 1: equal s-ops become one, unless that
                                                                         would take more layers
        drop unused          Typed         Typed          share.py
        choose encodings     Typed         Typed          encode.py
        split                Typed         Typed          split.py       level 1: large comparisons as several heads
        smallest             Typed         Typed          smallest.py    level 2: other ways to store what is computed
      rewrite                Typed         Typed          rewrite.py     level 2: fewer operations, by three passes
        simplify             Typed         rewrites       simplify.py    what is constant or known from the position
        fuse                 Typed         rewrites       map_fusion.py  a table of a table is one
        sums                 Typed         rewrites       sums.py        functions of a weighted sum
    3 translate              Typed         Circuit        translate.py
        fold                 Circuit       Circuit        fold.py        level 2: linear functions need no MLP
        prune                Circuit       Circuit        prune.py       level 1: drops what nothing reads
        factor               Circuit       Circuit        factor.py      level 2: embeds what is read of tokens
    4 assign to layers       Circuit       Schedule       schedule.py
        narrow               Circuit       Schedule       narrow.py      level 2: a narrower stream, as deep
        solve                Circuit       Schedule       solve.py       if asked for: the best schedule
        merge heads          Schedule      Schedule       schedule.py    level 1: heads with one pattern become one
        share neurons        Schedule      Schedule       neurons.py     level 2: neurons that read the same become one
    5 construct              Schedule      Construction   construct.py
    6 assemble               Construction  Parameters     assemble.py

Every intermediate value has `verify()`, run here on those that the model is made of, and `show()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from tracr.compiler.circuit.embed_features import embed_functions, factor, factored_kinds
from tracr.compiler.circuit.fold import fold
from tracr.compiler.circuit.prune import prune
from tracr.compiler.frontend.fuse_expressions import fuse
from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.suggest import suggest_vocabulary
from tracr.compiler.frontend.trace import Outputs, trace
from tracr.compiler.layers.assign import assign_to_layers, depth, merge_heads
from tracr.compiler.layers.narrow import narrow
from tracr.compiler.layers.share_neurons import share_neurons
from tracr.compiler.lower.lower import lower
from tracr.compiler.lower.numbers import RoundingTwins
from tracr.compiler.optimal.solve import solve
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.rewrite import rewritten
from tracr.compiler.program.share import drop_unused, share
from tracr.compiler.residual.assemble import assemble, check_size
from tracr.compiler.residual.lay_out import lay_out, placed
from tracr.compiler.search import smallest
from tracr.compiler.selectors.splitting import split
from tracr.errors import CompileError, FunctionError
from tracr.ir.circuit import Circuit
from tracr.ir.compilation import Compilation
from tracr.ir.domains import finite
from tracr.ir.graph import Graph
from tracr.ir.layout import Layout
from tracr.ir.ops import Attention, LengthOp
from tracr.ir.options import Options
from tracr.ir.program import Program
from tracr.ir.saved_graph import SavedGraph
from tracr.ir.schedule import Schedule
from tracr.ir.size import Size, size_of
from tracr.nearness import TWINS

__all__ = ["compile_program", "compile_tabulated", "tabulated"]


def compile_program(outputs: Outputs, options: Options) -> Compilation:
    """A transformer that computes the outputs.

    If it would have to tell numbers apart that differ by rounding only, they are taken for one value, which is recorded
    as an assumption; with `strict`, or if the vocabulary itself has such numbers, the program is refused.
    """
    graph = trace(fuse(outputs, options.vocab))
    graph.verify()
    try:
        return _compiled(graph, options)
    except RoundingTwins:
        if options.strict or len(finite(options.vocab, near=TWINS)) < len(options.vocab):
            raise
    return _compiled(graph, options, near=TWINS)


def _compiled(graph: Graph, options: Options, near: float = 0.0) -> Compilation:
    attempts = _Attempts()
    try:
        program = tabulated(graph, options, attempts, near)
    except FunctionError as error:
        suggest_vocabulary(error, graph, options)
        raise
    return compile_tabulated(graph, program, attempts=attempts)


def tabulated(graph: Graph, options: Options, attempts: _Attempts | None = None, near: float = 0.0) -> Program:
    """Step 2: the program as data. The user's functions are called here, and nowhere later."""
    inferred = infer(graph, options, near)
    _check_gap(inferred)
    double = {number for number, first in inferred.same.items() if number != first} if options.on("share") else set()
    if double.isdisjoint(inferred.sops):  # no s-op has other readers then
        program = choose_encodings(drop_unused(share(inferred) if double else inferred))
    else:
        program = choose_encodings(drop_unused(inferred))
        shared = choose_encodings(drop_unused(share(inferred)))
        if _same_codes(shared, program, inferred.same) or not _deeper(shared, program):
            program = shared
    attempts = attempts or _Attempts()
    if options.on("rank"):
        program = split(program, attempts)
    if any(map(options.on, ("linear_tables", "match", "few_bits"))):
        program = smallest(program, attempts)
    program.verify()
    return program


def _check_gap(program: Program) -> None:
    """Refuse a gap that is too small, if the program has attention at all."""
    if any(isinstance(node.op, Attention | LengthOp) for node in program.sops.values()):
        program.options.check_gap()


def _same_codes(shared: Program, apart: Program, same: Mapping[int, int]) -> bool:
    """Whether every s-op has the code it would have by itself: then its readers need no other conversions."""
    return all(shared.sops[same[number]].encoding is node.encoding for number, node in apart.sops.items())


def _deeper(shared: Program, apart: Program) -> bool:
    """Whether sharing costs layers: one code for readers with different wishes may need a conversion in between."""
    try:
        shortest = _depth(apart)
    except CompileError:  # only what is shared can be compiled
        return False
    return _depth(shared) > shortest


def _depth(program: Program) -> int:
    circuit = lower(program)
    return depth(prune(fold(circuit) if program.options.on("fold") else circuit))


class _Attempt:
    """A program on its way to a model: each step is taken once, and only if somebody asks for what it gives."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def circuit(self) -> Circuit:
        return lower(self.program)

    @cached_property
    def reduced(self) -> Circuit:
        return _reduced(self.circuit)

    @cached_property
    def factored(self) -> Circuit:
        return _factored(self.reduced)

    @cached_property
    def size(self) -> Size:
        schedule, _, slots = placed(_in_layers(self.factored, assign_to_layers), self.program.options)
        return size_of(schedule, slots.width)

    def refuse_large(self) -> None:
        """Refuse a model whose size is known already and too large, if no pass that follows makes it smaller."""
        options = self.program.options
        if "size" in vars(self) and not any(map(options.on, ("factor", "schedule", "solve"))):
            check_size(self.size, options)

    @property
    def nbytes(self) -> int:
        """How much memory the circuits take."""
        return sum(part.nbytes for part in vars(self).values() if isinstance(part, Circuit))

    def forget(self) -> None:
        """Let the circuits go; who needs them again makes them again."""
        for name in ("circuit", "reduced", "factored"):
            vars(self).pop(name, None)


class _Attempts:
    """How large the models of programs are: what has been tried is not compiled again.

    The circuits of what was tried take an eighth of the memory at most; beyond, only those of the last one are kept.
    """

    def __init__(self) -> None:
        self._tried: dict[Program, _Attempt] = {}
        self._bytes = 0

    def __getitem__(self, program: Program) -> _Attempt:
        return self._tried.setdefault(program, _Attempt(program))

    def alone(self, program: Program) -> _Attempt:
        """The attempt at a program; if all circuits together take too much memory, those of the others are dropped."""
        own = self[program]
        if self._bytes > program.options.max_memory // 8:
            for attempt in self._tried.values():
                if attempt is not own:
                    attempt.forget()
            self._bytes = own.nbytes
        return own

    def __call__(self, program: Program, most_layers: int | None) -> Size | None:
        """The size; `None` if the program is refused, or takes more layers than that."""
        own = self.alone(program)
        try:
            if most_layers is not None and depth(own.reduced) > most_layers:
                return None
            return own.size
        except CompileError:
            return None
        finally:
            self._bytes += own.nbytes


def compile_tabulated(
    graph: Graph | SavedGraph,
    program: Program,
    schedule_of: Callable[[Circuit], Schedule] | None = None,
    attempts: _Attempts | None = None,
) -> Compilation:
    """Steps 3 to 6: also how a saved model is rebuilt from its tables, and the schedule that a solver found for it."""
    _check_gap(program)
    attempts = attempts or _Attempts()
    chosen = attempts.alone(rewritten(program, attempts))
    chosen.refuse_large()
    layout = _with_named_features(chosen, schedule_of or scheduled)
    schedule = layout.schedule
    for value in (schedule.circuit, schedule, layout):
        value.verify()
    parameters = assemble(layout, program.options)
    return Compilation(program.options, graph, program, schedule.circuit, schedule, layout, parameters)


def _with_named_features(attempt: _Attempt, schedule_of: Callable[[Circuit], Schedule]) -> Layout:
    """Steps 4 and 5; functions of tokens that `factor` embeds are variables of the program where that costs nothing."""
    options = attempt.program.options
    layout = lay_out(_in_layers(attempt.factored, schedule_of), options)
    for kinds in factored_kinds(attempt.circuit, attempt.factored):
        size = size_of(layout.schedule, layout.width)
        circuit = _factored(_reduced(embed_functions(attempt.circuit, kinds)))
        named = lay_out(_in_layers(circuit, schedule_of), options)
        if all(own <= other for own, other in zip(size_of(named.schedule, named.width), size, strict=True)):
            return named
    return layout


def _reduced(circuit: Circuit) -> Circuit:
    """The circuit without what needs no component of its own."""
    options = circuit.program.options
    if options.on("fold"):
        circuit = fold(circuit)
    return prune(circuit) if options.on("prune") else circuit


def _factored(circuit: Circuit) -> Circuit:
    return factor(circuit) if circuit.program.options.on("factor") else circuit


def _in_layers(circuit: Circuit, schedule_of: Callable[[Circuit], Schedule]) -> Schedule:
    """Step 4, with a way to choose the layers."""
    options = circuit.program.options
    schedule = schedule_of(circuit)
    if options.on("merge_heads"):
        schedule = merge_heads(schedule)
    return share_neurons(schedule) if options.on("share_neurons") else schedule


def scheduled(circuit: Circuit) -> Schedule:
    """Step 4, as the passes say."""
    options = circuit.program.options
    if options.on("solve"):
        return solve(circuit, options.solve_seconds)
    return narrow(circuit) if options.on("schedule") else assign_to_layers(circuit)
