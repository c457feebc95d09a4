"""Backups: a second computation of a variable, which acts if the output of the first is replaced by zeros.

The compiler builds the components of the variable twice (`compiler/lower/backups.py`), the second time in later layers.
An MLP writes the first code, or the second if the first is zero, and all readers read this MLP.

The passes `prune` and `merge_heads` are off in the new model. The second computation waits for the first by reading it
with weights of 0, and `prune` would remove them. A merged head could compute a part of the variable and something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tracr.compiler.pipeline import compile_tabulated
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, LinearMap
from tracr.craft.variables import Variable
from tracr.errors import TracrError
from tracr.ground_truth.ablations import Ablation
from tracr.ground_truth.data import Edge
from tracr.ir.circuit import Component
from tracr.ir.program import Program, SOpNode
from tracr.ir.schedule import Schedule
from tracr.ir.switches import PassName, level_of
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.variants.variant_model import VariantModel
from tracr.spelling import did_you_mean
from tracr.values import Value, short_repr

__all__ = ["Redundancy", "backup", "redundancies"]

OFF = (PassName.PRUNE, PassName.MERGE_HEADS)


@dataclass(frozen=True, eq=False)
class Redundancy:
    """A variable that a model computes twice. Nodes are named as in `model.ground_truth`.

    `first` and `second` are the nodes that compute it, and nothing else, in the order of the forward pass; `chooser`
    writes the code that readers see. `answered` are the nodes of `first` whose output can be replaced by zeros, at all
    positions, without changing an answer: the last one, and the head of a count.
    """

    model: DesignedModel = field(repr=False)
    variable: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    chooser: str
    answered: tuple[str, ...]

    @property
    def first_edges(self) -> tuple[Edge, ...]:
        """The edges into and out of the nodes of the first computation."""
        return self._of(self.first)

    @property
    def second_edges(self) -> tuple[Edge, ...]:
        """The edges into and out of the nodes of the second computation."""
        return self._of(self.second)

    def _of(self, nodes: Sequence[str]) -> tuple[Edge, ...]:
        edges = self.model.ground_truth.edges()
        return tuple(edge for edge in edges if edge.source in nodes or edge.target in nodes)

    def circuits(self, ablation: Ablation = "zero") -> tuple[tuple[Edge, ...], ...]:
        """The acceptable circuits: sets of edges, of which each is enough if all other edges are ablated so.

        Without the second computation the answers are always right. Without the first they are right if its edges are
        replaced by zeros. A resampled or a mean code is not missing; then the first circuit is the only one. The
        circuits contain every edge that is not part of the other computation, also edges that carry a constant.
        """
        edges, without_second = self.model.ground_truth.edges(), set(self.second_edges)
        found = [tuple(edge for edge in edges if edge not in without_second)]
        if ablation == "zero":
            without_first = set(self.first_edges)
            found.append(tuple(edge for edge in edges if edge not in without_first))
        return tuple(found)

    def accepts(
        self, edges: Iterable[Edge], data: Sequence[Sequence[Value]], ablation: Ablation = "zero", *, seed: int = 0
    ) -> bool:
        """Whether a circuit is enough on some inputs: ablates all other edges, and compares the answers."""
        truth, inside = self.model.ground_truth, set(edges)
        outside = [edge for edge in truth.edges() if edge not in inside]
        kept = truth.ablate([], data=data, ablation=ablation, seed=seed)
        return bool(truth.ablate(outside, data=data, ablation=ablation, seed=seed) == kept)


def backup(model: CompiledModel, variable: str, ablation: Literal["zero"] = "zero") -> CompiledModel:
    """The model with a second computation of a variable, which acts if the output of the first is replaced by zeros.

    The model has the program and the options of `model`, but the passes `prune` and `merge_heads` are off. The second
    computation has components, dimensions and labels of its own (`NAME_backup`), in later layers. Readers read
    `NAME_either`: the first code, or the second if the first is zero. `redundancies(model)` gives the nodes and the
    acceptable circuits. Several variables can have backups: apply it again.

    Args:
        model: a compiled model of level 0 or 1, not a variant.
        variable: the name of a variable (`model.variables`) with a one-hot code that a head or an MLP computes.
        ablation: the ablation that the backup answers to. Only "zero" is possible: a resampled value is a valid code,
            and nothing in the model can see that it is wrong.

    >>> import tracr
    >>> from tracr.rasp import programs
    >>> made = backup(tracr.compile(programs.make_hist(), vocab="ab", max_seq_len=3), "hist")
    >>> (one,) = redundancies(made)
    >>> one.first, one.second, one.chooser
    (('blocks.0.attn.0', 'blocks.0.mlp.0'), ('blocks.1.attn.0', 'blocks.1.mlp.0'), 'blocks.2.mlp.0')
    >>> len(one.circuits("zero")), len(one.circuits("resample"))
    (2, 1)
    """
    _check(model, ablation)
    node = _node(model, variable)
    passes = [name for name in model.options.passes or () if name not in OFF]
    stored = replace(model.program.stored, backups=(*model.program.stored.backups, node.id))
    program = replace(model.program, options=replace(model.options, passes=passes), stored=stored)
    compilation = compile_tabulated(model.graph, program)
    made = CompiledModel(replace(compilation, expressions=model.expressions), model.source)
    redundancies(made)
    return made


def redundancies(model: DesignedModel) -> tuple[Redundancy, ...]:
    """The variables that a model computes twice (`backup`), in the order of their backups."""
    if not isinstance(model, DesignedModel):
        what = f"only compiled models have backups, not a {type(model).__name__}"
        raise TracrError(what, hint="use tracr.natural.backup(model, variable)")
    return tuple(_redundancy(model, model.program.sops[number]) for number in model.program.stored.backups)


def _check(model: object, ablation: object) -> None:
    """Refuse a model that cannot have backups, and other ablations."""
    if isinstance(model, VariantModel):
        raise TracrError("backups are compiled, and this model has other weights", hint="use model.plain")
    if not isinstance(model, CompiledModel):
        raise TracrError(f"backup needs a compiled model, not a {type(model).__name__}", hint="use tracr.compile(...)")
    if ablation != "zero":
        raise TracrError(
            f"a backup cannot answer to the ablation {short_repr(ablation)}",
            hint='use ablation="zero": only a code of zeros is seen to be missing',
        )
    if model.options.soft is not None:
        raise TracrError("the model is softened", hint="make the backup first, then soften the result")
    late = [name for name in model.options.passes or () if level_of(name) not in (0, 1)]
    if model.options.level > 1 or late:
        what = f"the pass {late[0]}" if late else "level 2"
        raise TracrError(f"{what} may merge the two computations of a variable", hint="compile with level=1")


def _node(model: CompiledModel, variable: object) -> SOpNode:
    """The s-op of a variable, or an error that says why it has none or cannot have a backup."""
    program: Program = model.program
    labels = {node.label: node for node in program.sops.values()}
    if not isinstance(variable, str):
        what = f"a variable is named by a text, not by {short_repr(variable)}"
        raise TracrError(what, hint=f"there are {', '.join(labels)}")
    if variable in program.shared:
        same = program.shared[variable]
        what = f"{variable} computes the same as {same}, and the model computes both once"
        raise TracrError(what, hint=f"use {same!r}")
    if variable not in labels:
        hint = did_you_mean(variable, list(labels), f"there are {', '.join(labels)}")
        raise TracrError(f"the program has no variable {variable!r}, or the compiler removed it", hint=hint)
    if labels[variable].id in program.stored.backups:
        raise TracrError(f"{variable} has a backup already", hint="back up another variable")
    if any(one.variable.label == variable for one in model.circuit.embedded):
        what = f"{variable} is written by the embedding, which computes nothing"
        raise TracrError(what, hint="back up a variable that a head or an MLP computes")
    return labels[variable]


def _redundancy(model: DesignedModel, node: SOpNode) -> Redundancy:
    """The two computations of a variable, found in the layers of the model."""
    placed = dict(_placed(model.schedule))
    writers = {variable: name for name, part in placed.items() for variable, _ in part.writes}
    first = next(variable for variable in writers if variable.label == node.label)
    chooser = next(name for name, part in placed.items() if any(_reads(linear, first) for linear in part.maps))
    second = next(one for one in placed[chooser].reads if one.node == node.id and one is not first)
    own, other = (_nodes(placed, writers, variable) for variable in (first, second))
    counted = tuple(name for name in own[:-1] if _reads_share(placed[name]))
    return Redundancy(model, node.label, own, other, chooser, (*counted, own[-1]))


def _reads(linear: LinearMap, variable: Variable) -> bool:
    """Whether a map reads a variable with weights that are not 0."""
    return variable in linear.blocks and bool(linear.blocks[variable].any())


def _reads_share(part: Component) -> bool:
    """Whether a head reads BOS's share, which is never 0: an MLP that reads 0 writes nothing."""
    return isinstance(part, Head) and set(part.value.blocks) == {BOS}


def _placed(schedule: Schedule) -> Iterator[tuple[str, Any]]:
    """The components, by the names of their nodes."""
    yield from ((one.name, one.head) for one in schedule.heads())
    yield from ((one.name, one.group) for one in schedule.neurons())


def _nodes(placed: dict[str, Component], writers: dict[Variable, str], variable: Variable) -> tuple[str, ...]:
    """The nodes that compute a variable and its intermediate results, the writer of the variable last."""
    found, waiting = [writers[variable]], [writers[variable]]
    while waiting:
        for read in placed[waiting.pop()].reads:
            if read.scratch and read.node == variable.node and writers[read] not in found:
                found.append(writers[read])
                waiting.append(writers[read])
    return tuple(reversed(found))
