"""The weights of a model in an order that depends on nothing but the weights.

The dimensions of the residual stream, the heads of a layer, the dimensions inside a head (those of queries and keys,
and those of values) and the neurons of a layer can be permuted without changing what a model computes, up to the order
of sums. `canonical` undoes any such permutation: permuted models get the same arrays, bit for bit. Tokens, positions,
logits and layers keep their order.

Method: the units above are the nodes of a graph, with an edge for every nonzero weight between two of them. Every node
has a colour, at first a hash of its weights to tokens, positions, logits and biases. In a round, each colour is hashed
with the colours and weights at the other ends of its edges. Rounds end when no more colours are told apart (colour
refinement). If nodes still share a colour, one of them gets a new colour, and rounds go on: the one whose rounds end in
the smallest colours, or any if there are several. Nodes with the same neighbours are exchangeable, and need no rounds.

The choice among several is arbitrary only if they are told apart neither by refinement nor by the refinement after
choosing one; in that case permuted models may get different orders. This was not met in the random programs of the
tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["WeightOrder", "canonical"]

Colours = NDArray[np.uint64]
Places = NDArray[np.intp]

READS_Q, READS_K, READS_V, WRITES_O, READS_IN, WRITES_OUT, IN_QUERY_KEY, IN_VALUES = range(1, 9)  # kinds of edges
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the constants of the hash are those of the splitmix64 generator


@dataclass(frozen=True, eq=False)
class WeightOrder:
    """For each unit of the reordered model, its place in the given one.

    `dimensions[3]` is the old place of dimension 3. `heads` and `neurons` have an array for each layer; `query_key` and
    `values` have [head, d_head] for each layer, with heads in the new order.
    """

    dimensions: Places
    heads: tuple[Places, ...]
    query_key: tuple[Places, ...]
    values: tuple[Places, ...]
    neurons: tuple[Places, ...]

    def applied(self, parameters: Parameters) -> Parameters:
        """The weights in this order."""
        along = self.dimensions
        layers = tuple(
            _layer(layer, along, heads, compared, carried, neurons)
            for layer, heads, compared, carried, neurons in zip(
                parameters.layers, self.heads, self.query_key, self.values, self.neurons, strict=True
            )
        )
        W_E, W_pos, W_U = parameters.W_E[:, along], parameters.W_pos[:, along], parameters.W_U[along]
        return Parameters(W_E, W_pos, layers, W_U).map(np.ascontiguousarray)

    def to_json(self) -> dict[str, Any]:
        """The order as lists."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else [array.tolist() for array in value]
            for name, value in vars(self).items()
        }


def _layer(
    layer: LayerParameters, along: Places, heads: Places, compared: Places, carried: Places, neurons: Places
) -> LayerParameters:
    across, within = heads[:, None, None], along[None, :, None]
    return LayerParameters(
        W_Q=layer.W_Q[across, within, compared[:, None, :]],
        b_Q=layer.b_Q[heads[:, None], compared],
        W_K=layer.W_K[across, within, compared[:, None, :]],
        b_K=layer.b_K[heads[:, None], compared],
        W_V=layer.W_V[across, within, carried[:, None, :]],
        b_V=layer.b_V[heads[:, None], carried],
        W_O=layer.W_O[across, carried[:, :, None], along[None, None, :]],
        b_O=layer.b_O[along],
        W_in=layer.W_in[along[:, None], neurons],
        b_in=layer.b_in[neurons],
        W_out=layer.W_out[neurons[:, None], along],
        b_out=layer.b_out[along],
    )


def canonical(parameters: Parameters) -> tuple[Parameters, WeightOrder]:
    """The weights in canonical order, in float32, and the order.

    Dimensions come in the order of the sub-layer that writes them first: the tokens, the positions, the attention and
    the MLP of each layer; then those that nothing writes. Within this, and for the other units, colours decide; units
    without weights come last.
    """
    plain = parameters.map(lambda array: np.asarray(array, dtype=np.float32) + np.float32(0))  # -0 becomes 0
    graph = _Graph(plain)
    order = graph.order(graph.discrete())
    return order.applied(plain), order


class _Graph:
    """The units of a model as numbered nodes, with their first colours and their edges."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.width = int(parameters.W_E.shape[1])
        self.size = self.width
        self.numbers: list[dict[str, Places]] = []  # for each layer, the numbers of its units by kind
        for layer in parameters.layers:
            heads, inside = layer.b_Q.shape
            both = heads, inside
            counts = {"heads": (heads,), "query_key": both, "values": both, "neurons": layer.b_in.shape}
            self.numbers.append({kind: self._number(shape) for kind, shape in counts.items()})
        self.first = self._first()
        ends = list(self._edges())
        empty = np.zeros(0, dtype=np.intp)
        one = np.concatenate([empty, *(fst for fst, _, _ in ends)])
        other = np.concatenate([empty, *(snd for _, snd, _ in ends)])
        labels = np.concatenate([np.zeros(0, dtype=np.uint64), *(label for _, _, label in ends)])
        owner = np.concatenate([one, other])
        by_owner = np.argsort(owner, kind="stable")
        self.owner = owner[by_owner]
        self.other = np.concatenate([other, one])[by_owner]
        self.labels = np.concatenate([labels, labels + GOLDEN])[by_owner]  # an edge has two directions
        self.owners, self.starts = np.unique(self.owner, return_index=True)

    def _number(self, shape: tuple[int, ...]) -> Places:
        count = int(np.prod(shape))
        found = np.arange(self.size, self.size + count, dtype=np.intp).reshape(shape)
        self.size += count
        return found

    def _first(self) -> Colours:
        """The colours that units have by themselves: from tokens, positions, logits and biases, in their order."""
        parameters = self.parameters
        colours = np.zeros(self.size, dtype=np.uint64)
        rows: list[NDArray[Any]] = [parameters.W_E, parameters.W_pos, parameters.W_U.T]
        rows += [bias[None, :] for layer in parameters.layers for bias in (layer.b_O, layer.b_out)]
        colours[: self.width] = _hash_columns(np.concatenate(rows))
        for number, (layer, own) in enumerate(zip(parameters.layers, self.numbers, strict=True)):
            for place, (kind, units) in enumerate(own.items()):
                colours[units] = np.uint64(8 * number + place + 1)
                biases = {"query_key": (layer.b_Q, layer.b_K), "values": (layer.b_V,), "neurons": (layer.b_in,)}
                if kind in biases and units.size:
                    flat = np.stack([bias.reshape(-1) for bias in biases[kind]])
                    colours[units] = _mixed(colours[units] + _hash_columns(flat).reshape(units.shape))
        return colours

    def _edges(self) -> Iterator[tuple[Places, Places, Colours]]:
        """Every nonzero weight between two units, and the units inside each head."""
        every = np.arange(self.width, dtype=np.intp)
        for layer, own in zip(self.parameters.layers, self.numbers, strict=True):
            heads, compared, carried, neurons = own.values()
            across = np.broadcast_to(every[None, :, None], layer.W_Q.shape)
            yield _weights(across, compared[:, None, :], layer.W_Q, READS_Q)
            yield _weights(across, compared[:, None, :], layer.W_K, READS_K)
            yield _weights(across, carried[:, None, :], layer.W_V, READS_V)
            yield _weights(every[None, None, :], carried[:, :, None], layer.W_O, WRITES_O)
            yield _weights(every[:, None], neurons[None, :], layer.W_in, READS_IN)
            yield _weights(every[None, :], neurons[:, None], layer.W_out, WRITES_OUT)
            ones = np.ones(compared.shape, dtype=np.float32)
            yield _weights(heads[:, None], compared, ones, IN_QUERY_KEY)
            yield _weights(heads[:, None], carried, ones, IN_VALUES)

    def _gathered(self, colours: Colours) -> Colours:
        """For each node the sum, modulo 2**64, of the hashes of its edges with the colours at their other ends."""
        sums = np.zeros(self.size, dtype=np.uint64)
        if self.owners.size:
            sums[self.owners] = np.add.reduceat(_mixed(self.labels ^ colours[self.other]), self.starts)
        return sums

    def refined(self, colours: Colours) -> Colours:
        """The colours after as many rounds as tell more nodes apart."""
        count = len(np.unique(colours))
        while True:
            new = _mixed(colours * GOLDEN + self._gathered(colours))
            now = len(np.unique(new))
            if now <= count:
                return colours
            colours, count = new, now

    def discrete(self) -> Colours:
        """Colours that are all different."""
        exact = self._gathered(_mixed(np.arange(self.size, dtype=np.uint64)))  # equal for nodes with equal neighbours
        colours = self.refined(self.first)
        while shared := _classes(colours):
            alike = [group for group in shared if (exact[group] == exact[group[0]]).all()]
            for group in alike:
                numbers: Colours = np.arange(len(group), dtype=np.uint64)
                colours[group] = _mixed(colours[group] + numbers)
            if not alike:
                colours = min((self._with(colours, node) for node in shared[0]), key=_summary)
        return colours

    def _with(self, colours: Colours, node: int) -> Colours:
        """The colours after one node got a new one."""
        own = colours.copy()
        own[node : node + 1] = _mixed(_mixed(own[node : node + 1]))
        return self.refined(own)

    def order(self, colours: Colours) -> WeightOrder:
        """The order that colours give, with units without weights last."""
        bare = np.ones(self.size, dtype=bool)
        bare[self._with_weights()] = False
        dimensions = np.lexsort((colours[: self.width], self._stages()))
        heads, compared, carried, neurons = [], [], [], []
        for own in self.numbers:
            across = np.argsort(colours[own["heads"]], kind="stable")
            heads.append(across)
            compared.append(_sorted(own["query_key"][across], bare, colours))
            carried.append(_sorted(own["values"][across], bare, colours))
            neurons.append(_sorted(own["neurons"], bare, colours))
        return WeightOrder(dimensions, tuple(heads), tuple(compared), tuple(carried), tuple(neurons))

    def _with_weights(self) -> Places:
        """The units with a nonzero weight to the residual stream, or a bias."""
        found = [self.owner[self.other < self.width]]
        for layer, own in zip(self.parameters.layers, self.numbers, strict=True):
            found.append(own["query_key"][(layer.b_Q != 0) | (layer.b_K != 0)])
            found.append(own["values"][layer.b_V != 0])
            found.append(own["neurons"][layer.b_in != 0])
        return np.concatenate(found)

    def _stages(self) -> Places:
        """The number of the first sub-layer that writes to each dimension."""
        writers = [(table != 0).any(axis=0) for table in (self.parameters.W_E, self.parameters.W_pos)]
        for layer in self.parameters.layers:
            writers.append((layer.W_O != 0).any(axis=(0, 1)) | (layer.b_O != 0))
            writers.append((layer.W_out != 0).any(axis=0) | (layer.b_out != 0))
        written = np.stack([*writers, np.ones(self.width, dtype=bool)])
        stages: Places = written.argmax(axis=0)
        return stages


def _sorted(units: Places, bare: NDArray[np.bool_], colours: Colours) -> Places:
    """The order of units along their last axis."""
    order: Places = np.lexsort((colours[units], bare[units]), axis=-1)
    return order


def _weights(fst: Places, snd: Places, weights: NDArray[np.float32], kind: int) -> tuple[Places, Places, Colours]:
    """The edges of the nonzero weights between two families of nodes."""
    places = np.nonzero(weights)
    one, other = np.broadcast_to(fst, weights.shape)[places], np.broadcast_to(snd, weights.shape)[places]
    return one, other, _mixed(_bits(weights[places]) + np.uint64(kind << 32))


def _classes(colours: Colours) -> list[Places]:
    """The nodes that share a colour, by colour."""
    _, numbers, counts = np.unique(colours, return_inverse=True, return_counts=True)
    return [np.flatnonzero(numbers == number) for number in np.flatnonzero(counts > 1)]


def _summary(colours: Colours) -> bytes:
    return bytes(np.sort(colours).tobytes())


def _hash_columns(rows: NDArray[np.float32]) -> Colours:
    """A hash of each column; the order of the rows matters."""
    places = np.arange(1, len(rows) + 1, dtype=np.uint64)[:, None]
    return _mixed(np.sum(_mixed(_bits(rows) + places * GOLDEN), axis=0, dtype=np.uint64))


def _bits(weights: NDArray[np.float32]) -> Colours:
    return np.ascontiguousarray(weights, dtype=np.float32).view(np.uint32).astype(np.uint64)


def _mixed(numbers: Colours) -> Colours:
    """A hash of each number: the last steps of splitmix64."""
    x = numbers + GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
