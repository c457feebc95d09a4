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

from tracr.compiler.assemble import assemble, check_size
from tracr.compiler.circuit import Circuit
from tracr.compiler.construct import Construction, construct, lay_out
from tracr.compiler.domains import TWINS, finite
from tracr.compiler.encode import choose_encodings
from tracr.compiler.factor import embed_functions, factor, factored_kinds
from tracr.compiler.fold import fold
from tracr.compiler.fuse import fuse
from tracr.compiler.infer import infer
from tracr.compiler.narrow import narrow
from tracr.compiler.neurons import share_neurons
from tracr.compiler.options import Options
from tracr.compiler.prune import prune
from tracr.compiler.rewrite import rewritten
from tracr.compiler.schedule import Schedule, assign_to_layers, depth, merge_heads
from tracr.compiler.share import drop_unused, share
from tracr.compiler.size import Size, size_of
from tracr.compiler.smallest import smallest
from tracr.compiler.solve import solve
from tracr.compiler.split import split
from tracr.compiler.suggest import suggest_vocabulary
from tracr.compiler.trace import Graph, Outputs, trace
from tracr.compiler.translate import translate
from tracr.compiler.translation.numbers import RoundingTwins
from tracr.compiler.typed import Attention, LengthOp, Typed
from tracr.errors import CompileError, FunctionError
from tracr.model.compiled import CompiledModel
from tracr.model.saving.saved_graph import SavedGraph

__all__ = ["compile_program", "compile_typed", "tabulated"]


def compile_program(outputs: Outputs, options: Options) -> CompiledModel:
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


def _compiled(graph: Graph, options: Options, near: float = 0.0) -> CompiledModel:
    attempts = _Attempts()
    try:
        typed = tabulated(graph, options, attempts, near)
    except FunctionError as error:
        suggest_vocabulary(error, graph, options)
        raise
    return compile_typed(graph, typed, attempts=attempts)


def tabulated(graph: Graph, options: Options, attempts: _Attempts | None = None, near: float = 0.0) -> Typed:
    """Step 2: the program as data. The user's functions are called here, and nowhere later."""
    inferred = infer(graph, options, near)
    _check_gap(inferred)
    double = {number for number, first in inferred.same.items() if number != first} if options.on("share") else set()
    if double.isdisjoint(inferred.sops):  # no s-op has other readers then
        typed = choose_encodings(drop_unused(share(inferred) if double else inferred))
    else:
        typed = choose_encodings(drop_unused(inferred))
        shared = choose_encodings(drop_unused(share(inferred)))
        if _same_codes(shared, typed, inferred.same) or not _deeper(shared, typed):
            typed = shared
    attempts = attempts or _Attempts()
    if options.on("rank"):
        typed = split(typed, attempts)
    if any(map(options.on, ("linear_tables", "match", "few_bits"))):
        typed = smallest(typed, attempts)
    typed.verify()
    return typed


def _check_gap(typed: Typed) -> None:
    """Refuse a gap that is too small, if the program has attention at all."""
    if any(isinstance(node.op, Attention | LengthOp) for node in typed.sops.values()):
        typed.options.check_gap()


def _same_codes(shared: Typed, apart: Typed, same: Mapping[int, int]) -> bool:
    """Whether every s-op has the code it would have by itself: then its readers need no other conversions."""
    return all(shared.sops[same[number]].encoding is node.encoding for number, node in apart.sops.items())


def _deeper(shared: Typed, apart: Typed) -> bool:
    """Whether sharing costs layers: one code for readers with different wishes may need a conversion in between."""
    try:
        shortest = _depth(apart)
    except CompileError:  # only what is shared can be compiled
        return False
    return _depth(shared) > shortest


def _depth(typed: Typed) -> int:
    circuit = translate(typed)
    return depth(prune(fold(circuit) if typed.options.on("fold") else circuit))


class _Attempt:
    """A program on its way to a model: each step is taken once, and only if somebody asks for what it gives."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed

    @cached_property
    def circuit(self) -> Circuit:
        return translate(self.typed)

    @cached_property
    def reduced(self) -> Circuit:
        return _reduced(self.circuit)

    @cached_property
    def factored(self) -> Circuit:
        return _factored(self.reduced)

    @cached_property
    def size(self) -> Size:
        schedule, _, layout = lay_out(_in_layers(self.factored, assign_to_layers), self.typed.options)
        return size_of(schedule, layout.width)

    def refuse_large(self) -> None:
        """Refuse a model whose size is known already and too large, if no pass that follows makes it smaller."""
        options = self.typed.options
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
        self._tried: dict[Typed, _Attempt] = {}
        self._bytes = 0

    def __getitem__(self, typed: Typed) -> _Attempt:
        return self._tried.setdefault(typed, _Attempt(typed))

    def alone(self, typed: Typed) -> _Attempt:
        """The attempt at a program; if all circuits together take too much memory, those of the others are dropped."""
        own = self[typed]
        if self._bytes > typed.options.max_memory // 8:
            for attempt in self._tried.values():
                if attempt is not own:
                    attempt.forget()
            self._bytes = own.nbytes
        return own

    def __call__(self, typed: Typed, most_layers: int | None) -> Size | None:
        """The size; `None` if the program is refused, or takes more layers than that."""
        own = self.alone(typed)
        try:
            if most_layers is not None and depth(own.reduced) > most_layers:
                return None
            return own.size
        except CompileError:
            return None
        finally:
            self._bytes += own.nbytes


def compile_typed(
    graph: Graph | SavedGraph,
    typed: Typed,
    source: str = "",
    schedule_of: Callable[[Circuit], Schedule] | None = None,
    attempts: _Attempts | None = None,
) -> CompiledModel:
    """Steps 3 to 6: also how a saved model is rebuilt from its tables, and the schedule that a solver found for it."""
    _check_gap(typed)
    attempts = attempts or _Attempts()
    chosen = attempts.alone(rewritten(typed, attempts))
    chosen.refuse_large()
    construction = _with_named_features(chosen, schedule_of or scheduled)
    schedule = construction.schedule
    for value in (schedule.circuit, schedule, construction):
        value.verify()
    parameters = assemble(construction, typed.options)
    return CompiledModel(typed.options, graph, typed, schedule.circuit, schedule, construction, parameters, source)


def _with_named_features(attempt: _Attempt, schedule_of: Callable[[Circuit], Schedule]) -> Construction:
    """Steps 4 and 5; functions of tokens that `factor` embeds are variables of the program where that costs nothing."""
    options = attempt.typed.options
    construction = construct(_in_layers(attempt.factored, schedule_of), options)
    for kinds in factored_kinds(attempt.circuit, attempt.factored):
        size = size_of(construction.schedule, construction.width)
        circuit = _factored(_reduced(embed_functions(attempt.circuit, kinds)))
        named = construct(_in_layers(circuit, schedule_of), options)
        if all(own <= other for own, other in zip(size_of(named.schedule, named.width), size, strict=True)):
            return named
    return construction


def _reduced(circuit: Circuit) -> Circuit:
    """The circuit without what needs no component of its own."""
    options = circuit.typed.options
    if options.on("fold"):
        circuit = fold(circuit)
    return prune(circuit) if options.on("prune") else circuit


def _factored(circuit: Circuit) -> Circuit:
    return factor(circuit) if circuit.typed.options.on("factor") else circuit


def _in_layers(circuit: Circuit, schedule_of: Callable[[Circuit], Schedule]) -> Schedule:
    """Step 4, with a way to choose the layers."""
    options = circuit.typed.options
    schedule = schedule_of(circuit)
    if options.on("merge_heads"):
        schedule = merge_heads(schedule)
    return share_neurons(schedule) if options.on("share_neurons") else schedule


def scheduled(circuit: Circuit) -> Schedule:
    """Step 4, as the passes say."""
    options = circuit.typed.options
    if options.on("solve"):
        return solve(circuit, options.solve_seconds)
    return narrow(circuit) if options.on("schedule") else assign_to_layers(circuit)
