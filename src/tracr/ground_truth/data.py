"""The mechanism of a compiled model as data: its nodes and its edges.

Nodes are the embeddings, heads, groups of neurons and the unembedding. An edge carries one variable from its writer
into one input of a reader. Both are found in the weights (`wiring.py`). `docs/ground-truth.md` is the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from tracr.errors import TracrError
from tracr.extras import need
from tracr.ground_truth.scoring import QKV, EdgeTruth
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ground_truth.ablations import Ablation
    from tracr.ground_truth.circuits import MinimalCircuit
    from tracr.ground_truth.input_pairs import TokenPair
    from tracr.ground_truth.pair_truth import PairTruth
    from tracr.ground_truth.scores import EdgeKey
    from tracr.model.designed import DesignedModel

__all__ = [
    "GRANULARITIES",
    "Attends",
    "Edge",
    "FoldedVariable",
    "Granularity",
    "GroundTruth",
    "HookPlace",
    "ModelNode",
    "Written",
]

FORMAT, VERSION = "tracr ground truth", 1
Granularity = Literal["component", "head", "qkv", "neuron_group"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
FINEST: Granularity = "neuron_group"


@dataclass(frozen=True)
class HookPlace:
    """The place of an activation: a TransformerLens hook, and its head or its neurons (from, up to)."""

    hook: str
    head: int | None = None
    neurons: tuple[int, int] | None = None


@dataclass(frozen=True)
class Written:
    """A variable that a node writes: its expression, its source line, and the dimensions written."""

    variable: str
    expression: str
    line: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Attends:
    """The one key every query attends to: `offset` from itself, or at `position` (BOS is 0, the first token 1).

    If the input has no such key, or a causal mask hides it, the query attends to BOS.
    """

    offset: int | None = None
    position: int | None = None

    def key(self, query: int, length: int, *, causal: bool = False) -> int:
        """The key that a query attends to, in an input of `length` tokens; BOS attends to itself."""
        wanted = query + self.offset if self.offset is not None else self.position or 0
        return wanted if query and 1 <= wanted <= (query if causal else length) else 0


@dataclass(frozen=True)
class ModelNode:
    """A node of the model. `kind` is embedding, head, neurons or unembedding (attention or mlp if several are merged).

    Neurons that clear (at level 2) remove the variables they "write" from the residual stream. `roles` are of the list
    `tracr.explaining.roles.ROLES`; `sentence` says what the node does, and `computes` also where it is and what it
    writes.
    """

    id: str
    kind: str
    layer: int | None
    head: int | None
    neurons: tuple[int, int] | None
    writes: tuple[Written, ...]
    computes: str
    output: HookPlace
    inputs: tuple[tuple[str, HookPlace], ...]
    attends: Attends | None = None
    clears: bool = False
    roles: tuple[str, ...] = ()
    sentence: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables the node writes."""
        return tuple(written.variable for written in self.writes)


@dataclass(frozen=True)
class Edge:
    """A variable that flows from the node that writes it into an input (q, k, v; else in) of a node that reads it.

    `slots` are the dimensions that carry it. `positions` are the (source, target) positions of a head's values if they
    are the same for every input of the longest length, else `None`. `cancelled`: the slots held the variable and were
    cleared before the reader; the writes of the writer and of the clearing neurons add up to 0.
    """

    source: str
    target: str
    input: str
    variable: str
    slots: tuple[int, ...]
    source_place: HookPlace
    target_place: HookPlace
    positions: tuple[tuple[int, int], ...] | None = None
    cancelled: bool = False

    def __str__(self) -> str:
        name = self.target if self.input == "in" else f"{self.target}.{self.input}"
        return f"{self.source} -> {name}: {self.variable}{' (cancelled)' if self.cancelled else ''}"


@dataclass(frozen=True)
class FoldedVariable:
    """A variable without dimensions (level 2): the variables read in its place, and the inputs that read them."""

    variable: str
    expression: str
    line: str
    made_of: tuple[str, ...]
    readers: tuple[str, ...]

    def __str__(self) -> str:
        readers = ", ".join(self.readers) or "no component"
        return f"{self.variable}: {', '.join(self.made_of)} read in its place by {readers}"


@dataclass(frozen=True, eq=False)
class GroundTruth(EdgeTruth):
    """The nodes and edges of a compiled model, at four granularities, and its minimal circuits."""

    model: DesignedModel = field(repr=False)
    _nodes: tuple[ModelNode, ...] = field(repr=False)
    _edges: tuple[Edge, ...] = field(repr=False)
    folded: tuple[FoldedVariable, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"GroundTruth({len(self._nodes)} nodes, {len(self._edges)} edges)"

    def nodes(self, granularity: Granularity = FINEST) -> tuple[ModelNode, ...]:
        """The nodes. At "component" the heads of a layer are one node; its neurons are one except at the finest."""
        check_granularity(granularity)
        if granularity not in self._merged:
            groups: dict[str, list[ModelNode]] = {}
            for node in self._nodes:
                groups.setdefault(merged_id(node, granularity), []).append(node)
            merged = (_merged_node(name, group, granularity) for name, group in groups.items())
            self._merged[granularity] = tuple(merged)
        return self._merged[granularity]

    @cached_property
    def _merged(self) -> dict[Granularity, tuple[ModelNode, ...]]:
        """The nodes by granularity, kept after the first use."""
        return {}

    def edges(self, granularity: Granularity = FINEST) -> tuple[Edge, ...]:
        """The edges: the variable that each writer passes to each reader."""
        return self.coarsen(self._edges, granularity)

    def coarsen(self, edges: Iterable[Edge], granularity: Granularity) -> tuple[Edge, ...]:
        """Merge edges of the finest granularity into those of another."""
        check_granularity(granularity)
        target = {node.id: merged_id(node, granularity) for node in self._nodes}
        coarse = {node.id: node for node in self.nodes(granularity)}
        inputs = {node.id: dict(node.inputs) for node in coarse.values()}
        groups: dict[tuple[str, str, str, str], list[Edge]] = {}
        for edge in edges:
            reader = target[edge.target]
            into = edge.input if edge.input in inputs[reader] else "in"
            groups.setdefault((target[edge.source], reader, into, edge.variable), []).append(edge)
        return tuple(
            _merged_edge(key, group, coarse[key[0]].output, inputs[key[1]][key[2]]) for key, group in groups.items()
        )

    def show(self) -> str:
        """What every node computes, then one line per edge, then the folded and absorbed variables."""
        nodes = [f"{node.id}: {node.computes}" for node in self._nodes]
        folded = [f"folded {one}" for one in self.folded]
        absorbed = [f"absorbed {label}: {where}" for label, where in self.model.circuit.rewriting.absorbed.items()]
        return "\n".join([*nodes, *map(str, self._edges), *folded, *absorbed])

    def to_dict(self) -> dict[str, Any]:
        """The content of `to_json` as a dict."""
        options = self.model.options
        return {
            "format": FORMAT,
            "version": VERSION,
            "outputs": [output.name for output in self.model.outputs],
            "level": options.level,
            "causal": options.causal,
            "n_layers": self.model.n_layers,
            "max_seq_len": options.max_seq_len,
            "dimensions": self.model.residual.labels,
            "folded": [{**vars(one)} for one in self.folded],
            "absorbed": dict(self.model.circuit.rewriting.absorbed),
            **self._directions(),
            "granularities": {
                granularity: {
                    "nodes": [_node_json(node) for node in self.nodes(granularity)],
                    "edges": [edge_json(edge) for edge in self.edges(granularity)],
                }
                for granularity in GRANULARITIES
            },
        }

    def _directions(self) -> dict[str, Any]:
        """For a variant: how it was made, and the direction [d_model] of each slot."""
        variant = self.model.variant
        return {"variant": list(variant.steps), "directions": variant.basis.write.tolist()} if variant.steps else {}

    def to_json(self) -> str:
        """The ground truth as JSON (docs/ground-truth.md); the same model gives the same text."""
        return dump(self.to_dict())

    def to_networkx(self, granularity: Granularity = FINEST) -> Any:
        """A `networkx.MultiDiGraph`; the attributes of nodes and edges are the keys of the JSON."""
        networkx = need("networkx", extra="graph")
        graph = networkx.MultiDiGraph()
        for node in self.nodes(granularity):
            graph.add_node(node.id, **_node_json(node))
        for edge in self.edges(granularity):
            graph.add_edge(edge.source, edge.target, key=f"{edge.input}:{edge.variable}", **edge_json(edge))
        return graph

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """All granularities."""
        return GRANULARITIES

    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All pairs (writer, reader input) that the architecture allows, wired or not; variables are merged.

        Token and position embedding are one writer, `embed`.
        """
        from tracr.ground_truth.edge_keys import all_later, coarsened  # imported only when used

        check_granularity(granularity)
        parts = [node for node in self._nodes if node.layer is not None]
        readers = [f"{node.id}.{into}" if into != "in" else node.id for node in parts for into, _ in node.inputs]
        finest = all_later(["embed", *(node.id for node in parts)], [*readers, "unembed"])
        return tuple(dict.fromkeys(coarsened(key, granularity) for key in finest))

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that are edges of the model, and the others."""
        return self.split_by(self._edges, granularity)

    def split_by(
        self, edges: Iterable[Edge], granularity: Granularity
    ) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that contain one of these edges, and the others."""
        from tracr.ground_truth.edge_keys import coarsened, key_of_edge

        candidates = self.candidates(granularity)
        chosen = {coarsened(key_of_edge(edge), granularity) for edge in edges}
        return tuple(key for key in candidates if key in chosen), tuple(key for key in candidates if key not in chosen)

    @overload
    def minimal(
        self, *, data: Sequence[Sequence[Value]], ablation: Ablation = "resample", seed: int = 0
    ) -> MinimalCircuit: ...

    @overload
    def minimal(
        self, *, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = QKV
    ) -> PairTruth: ...

    def minimal(
        self,
        *,
        data: Sequence[Sequence[Value]] | None = None,
        pairs: Iterable[TokenPair] | None = None,
        ablation: Ablation = "resample",
        seed: int | None = None,
        granularity: Granularity | None = None,
    ) -> MinimalCircuit | PairTruth:
        """The edges that matter on `data` or on `pairs`.

        With `data`, a minimal circuit: edges that keep the outputs when all others are ablated. With `pairs`, the truth
        for each candidate: needed alone, needed jointly, or inert (docs/ground-truth.md, "Pairs").

        Args:
            data: inputs, as many as represent the distribution; together they are one padded batch.
            pairs: (clean, corrupted) inputs, the two of a pair of one length; together they are one padded batch.
            ablation: the values that a reader sees in place of an ablated edge's: "zero"; the "mean" at the position
                over `data` or the clean inputs; for "resample", the values of another input of the same length, or of
                the corrupted input.
            seed: with `data`, the seed that chooses those other inputs; 0 by default.
            granularity: with `pairs`, the granularity of the candidates; "qkv" by default.
        """
        from tracr.ground_truth.circuits import minimal  # imported only when used
        from tracr.ground_truth.pair_truth import pair_truth

        if pairs is not None and data is None and seed is None:
            return pair_truth(self, pairs, ablation, granularity or QKV)
        if data is not None and pairs is None and granularity is None:
            return minimal(self, data, ablation, seed or 0)
        raise TracrError(
            "minimal takes data= (with seed=) or pairs= (with granularity=)", hint="minimal(pairs=[(clean, corrupted)])"
        )

    def ablate(
        self, edges: Iterable[Edge], *, data: Sequence[Sequence[Value]], ablation: Ablation = "resample", seed: int = 0
    ) -> list[Any]:
        """The model's outputs on `data` with these edges (of any granularity) ablated; `None` if the program raises."""
        from tracr.ground_truth.circuits import ablate

        return ablate(self, edges, data, ablation, seed)

    def finest(self, edges: Iterable[Edge]) -> set[int]:
        """The numbers of the finest edges that make up the given edges, which can have any granularity."""
        wanted = dict.fromkeys((edge.source, edge.target, edge.input, edge.variable) for edge in edges)
        found: dict[tuple[str, str, str, str], list[int]] = {}
        for granularity in GRANULARITIES:
            names = {node.id: merged_id(node, granularity) for node in self._nodes}
            split = granularity in ("qkv", FINEST)
            for number, edge in enumerate(self._edges):
                into = edge.input if split else "in"
                found.setdefault((names[edge.source], names[edge.target], into, edge.variable), []).append(number)
        for name in wanted:
            if name not in found:
                raise TracrError(f"the model has no edge {name}", hint="take edges from ground_truth.edges()")
        return {number for name in wanted for number in found[name]}


def check_granularity(granularity: str) -> None:
    """Refuse an unknown granularity."""
    if granularity not in GRANULARITIES:
        raise TracrError(f"no granularity {granularity!r}", hint=f"there are {', '.join(GRANULARITIES)}")


def places(
    kind: str, layer: int | None, head: int | None, neurons: tuple[int, int] | None, granularity: Granularity
) -> tuple[HookPlace, tuple[tuple[str, HookPlace], ...]]:
    """The hooks of the output and the inputs of a head or MLP, at a granularity."""
    block = f"blocks.{layer}"
    if kind == "neurons" and granularity == FINEST:
        return HookPlace(f"{block}.mlp.hook_post", neurons=neurons), (
            ("in", HookPlace(f"{block}.mlp.hook_pre", neurons=neurons)),
        )
    if kind == "neurons":
        return HookPlace(f"{block}.hook_mlp_out"), (("in", HookPlace(f"{block}.hook_mlp_in")),)
    if granularity == "component":
        return HookPlace(f"{block}.hook_attn_out"), (("in", HookPlace(f"{block}.hook_attn_in")),)
    result = HookPlace(f"{block}.attn.hook_result", head=head)
    if granularity == "head":
        return result, (("in", HookPlace(f"{block}.hook_attn_in", head=head)),)
    return result, tuple((part, HookPlace(f"{block}.hook_{part}_input", head=head)) for part in "qkv")


def merged_id(node: ModelNode, granularity: Granularity) -> str:
    """The id of the node that contains `node` at a granularity."""
    if node.kind == "head" and granularity == "component":
        return f"blocks.{node.layer}.attn"
    if node.kind == "neurons" and granularity != FINEST:
        return f"blocks.{node.layer}.mlp"
    return node.id


def _merged_node(name: str, group: list[ModelNode], granularity: Granularity) -> ModelNode:
    first = group[0]
    if first.kind not in ("head", "neurons") or granularity == FINEST:
        return first
    output, inputs = places(first.kind, first.layer, first.head, first.neurons, granularity)
    if name == first.id:
        return replace(first, output=output, inputs=inputs)
    return ModelNode(
        name,
        "attention" if first.kind == "head" else "mlp",
        first.layer,
        None,
        None,
        tuple(written for node in group for written in node.writes),
        " ".join(node.computes for node in group),
        output,
        inputs,
        roles=tuple(dict.fromkeys(role for node in group for role in node.roles)),
        sentence=" ".join(node.sentence for node in group),
    )


def _merged_edge(key: tuple[str, str, str, str], group: list[Edge], output: HookPlace, place: HookPlace) -> Edge:
    """One edge for a group of edges; the key is its source, target, input and variable."""
    first = group[0]
    if len(group) == 1:
        return Edge(*key, first.slots, output, place, first.positions, first.cancelled)
    slots = tuple(sorted({slot for edge in group for slot in edge.slots}))
    positions = first.positions if len({edge.positions for edge in group}) == 1 else None
    return Edge(*key, slots, output, place, positions, all(edge.cancelled for edge in group))


def _node_json(node: ModelNode) -> dict[str, Any]:
    return {
        **vars(node),
        "writes": [{**vars(written)} for written in node.writes],
        "output": {**vars(node.output)},
        "inputs": {name: {**vars(place)} for name, place in node.inputs},
        "attends": None if node.attends is None else {**vars(node.attends)},
    }


def edge_json(edge: Edge) -> dict[str, Any]:
    """An edge under the keys of the schema."""
    return {
        **vars(edge),
        "source_place": {**vars(edge.source_place)},
        "target_place": {**vars(edge.target_place)},
    }


def dump(content: dict[str, Any]) -> str:
    """JSON text, the same for the same content."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
