"""The maps of a graft in closed form.

Reading. Rows x are what the host's component reads at tokens, each with the class of a variable. A map gives every
class an affine score; the class with the largest score is read. Maps are fitted on half of the rows; the kind that is
right more often on the other half is fitted again on all rows:

- *discriminant*: with the mean m_c of the rows of class c and the covariance S within classes (plus a ridge, small or
  larger), the score of c is m_c' S^-1 x - m_c' S^-1 m_c / 2 + log(share of c): linear discriminant analysis.
- *regression*: ridge regression y(x) on the codes; the nearest code k_c has the largest score 2 k_c' y(x) - k_c' k_c.

All need only the Gram matrix of the rows, which all variables share, and the sum of the rows of each class.

Writing. What the component wrote is fitted as the sum of a vector for each value of the part's output and a vector for
each position (ridge regression), or, as numbers are written, as a linear map of the output's code. An output with many
values has only the linear map.
A mean of what was written may be something that the component never writes. Therefore `exemplars` gives other maps: the
vector of a value is what the component wrote at one token with this value. `Workbench.write` keeps the map with which
the host loses least on inputs to fit with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracr.graft.observed import CodedValues

__all__ = [
    "MANY",
    "Gram",
    "ReadMap",
    "WriteMap",
    "exemplars",
    "fit_linear",
    "fit_read",
    "fit_write",
    "fit_write_means",
    "gram_of",
]

Array = NDArray[np.float64]
RIDGE, LARGER = 1e-6, 1e-3  # relative to the mean variance
NOTHING = 1e-6  # relative to the largest spread
MANY = 256  # an output with more values than this is written by a linear map of its code
ROWS = 8  # the same for fewer rows than this for each value


@dataclass(frozen=True, eq=False)
class Gram:
    """Rows, centred, with their mean and their Gram matrix."""

    rows: Array
    mean: Array
    matrix: Array

    def ridge(self, share: float) -> Array:
        """The ridge: a share of the mean variance."""
        width = len(self.mean)
        return np.asarray(np.eye(width) * (share * np.trace(self.matrix) / width + 1e-12))


@dataclass(frozen=True, eq=False)
class ReadMap:
    """Scores x @ weight + bias of the values of a variable, and the code of each value."""

    weight: Array
    bias: Array
    codes: Array

    def classes(self, rows: Array) -> NDArray[np.int64]:
        """The value with the largest score, for each row."""
        return np.asarray((rows @ self.weight + self.bias).argmax(axis=-1))


@dataclass(frozen=True, eq=False)
class WriteMap:
    """What is written: a vector for each output code and each token's position, and constants before and after them."""

    codes: Array
    vectors: Array
    positions: Array
    before: Array
    pad: Array

    def written(self, classes: NDArray[np.int64]) -> Array:
        """What is written [input, position, d_model] for outputs [input, token]; -1 where no token is."""
        tokens = self.vectors[np.maximum(classes, 0)] + self.positions[: classes.shape[1]]
        tokens = np.where((classes >= 0)[..., None], tokens, self.pad)
        before = np.broadcast_to(self.before, (len(classes), *self.before.shape))
        return np.concatenate([before, tokens], axis=1)


def gram_of(rows: Array) -> Gram:
    """The Gram matrix of rows."""
    mean = rows.mean(axis=0)
    centred = rows - mean
    return Gram(centred, mean, centred.T @ centred)


def fit_read(gram: Gram, halves: tuple[Gram, Gram], classes: NDArray[np.int64], codes: Array) -> tuple[ReadMap, float]:
    """The map that reads a variable, and how often the same kind of map, fitted on one half, is right on the other.

    `halves` are those of the rows, first half first.
    """
    if len(codes) == 1:
        return ReadMap(np.zeros((len(gram.mean), 1)), np.zeros(1), codes), 1.0
    middle = len(halves[0].rows)
    tried = [kind(halves[0], classes[:middle], codes) for kind in KINDS]
    other = halves[1].rows + halves[1].mean
    rights = [float((one.classes(other) == classes[middle:]).mean()) for one in tried]
    return KINDS[int(np.argmax(rights))](gram, classes, codes), max(rights)


def _discriminant(ridge: float) -> Callable[[Gram, NDArray[np.int64], Array], ReadMap]:
    def fit(gram: Gram, classes: NDArray[np.int64], codes: Array) -> ReadMap:
        members, sums = _by_class(gram.rows, classes, len(codes))
        total = members.sum()
        means = sums / np.maximum(members, 1)[:, None]
        within = gram.matrix - (means * members[:, None]).T @ means
        weight = np.linalg.solve(within + gram.ridge(ridge), means.T) * total
        bias = -0.5 * np.einsum("cd,dc->c", means, weight) + np.log(np.maximum(members, 1e-300) / total)
        return ReadMap(weight, bias - gram.mean @ weight, codes)

    return fit


def _regression(gram: Gram, classes: NDArray[np.int64], codes: Array) -> ReadMap:
    members, sums = _by_class(gram.rows, classes, len(codes))
    middle = members @ codes / members.sum()
    found = np.linalg.solve(gram.matrix + gram.ridge(RIDGE), sums.T @ (codes - middle))
    weight = 2 * found @ codes.T
    bias = 2 * codes @ middle - (codes * codes).sum(axis=1)
    return ReadMap(weight, bias - gram.mean @ weight, codes)


KINDS = (_discriminant(RIDGE), _discriminant(LARGER), _regression)


def _by_class(rows: Array, classes: NDArray[np.int64], count: int) -> tuple[Array, Array]:
    """The number of rows of each class, and their sum."""
    order = np.argsort(classes, kind="stable")
    sums = np.zeros((count, rows.shape[1]))
    present, starts = np.unique(classes[order], return_index=True)
    sums[present] = np.add.reduceat(rows[order], starts, axis=0)
    return np.bincount(classes, minlength=count).astype(np.float64), sums


def fit_write(output: CodedValues, written: Array, start: int, there: NDArray[np.bool_]) -> list[WriteMap]:
    """The maps that write an output [input, token] as a component wrote, [input, position, d_model], at some tokens.

    The first is linear in the code of the output. The second, if the output has few values, has a vector for each; a
    value that no row has keeps the vector of the first.
    """
    classes = output.classes[there]
    means = fit_write_means(written, output.classes >= 0, start)
    places = np.eye(there.shape[1])[np.nonzero(there)[1]]
    left = written[:, start:][there] - places @ means.positions
    codes = output.codes - output.codes.mean(axis=0)
    linear = _fit_vectors(codes, classes, places, left, means, output.codes)
    if output.count > min(MANY, max(2, len(classes) // ROWS)):
        return [linear]
    each = _fit_vectors(np.eye(output.count), classes, places, left, means, output.codes)
    seen = np.isin(np.arange(output.count), classes)[:, None]
    return [linear, replace(each, vectors=np.where(seen, each.vectors, linear.vectors))]


def _fit_vectors(
    features: Array, classes: NDArray[np.int64], places: Array, left: Array, means: WriteMap, codes: Array
) -> WriteMap:
    """Ridge regression on the features of each row's class, and on its position."""
    design = np.concatenate([features[classes], places], axis=1)
    product = design.T @ design
    product += np.eye(len(product)) * (RIDGE * len(classes) / len(product) + 1e-9)
    found = np.linalg.solve(product, design.T @ left)
    width = features.shape[1]
    return replace(means, codes=codes, vectors=features @ found[:width], positions=means.positions + found[width:])


def exemplars(
    fitted: WriteMap, output: CodedValues, written: Array, start: int, there: NDArray[np.bool_], seed: int | None
) -> WriteMap:
    """The map with what the component wrote at one token of each value: the nearest to the mean, or drawn."""
    classes, wanted = output.classes[there], written[:, start:][there]
    vectors = fitted.vectors + fitted.positions.mean(axis=0)  # of values that no row has
    rng = None if seed is None else np.random.default_rng(seed)
    for value in range(output.count):
        mine = wanted[classes == value]
        if not len(mine):
            continue
        middle = ((mine - mine.mean(axis=0)) ** 2).sum(axis=1).argmin() if rng is None else rng.integers(len(mine))
        vectors[value] = mine[middle]
    return replace(fitted, vectors=vectors, positions=np.zeros_like(fitted.positions))


def fit_write_means(written: Array, real: NDArray[np.bool_], start: int) -> WriteMap:
    """The map that writes the mean at each position, whatever the input."""
    mine = written[:, start:]
    counted = real.sum(axis=0)
    positions = (mine * real[..., None]).sum(axis=0) / np.maximum(counted, 1)[:, None]
    positions[counted == 0] = mine[real].mean(axis=0)  # no input reaches this position
    pad = mine[~real].mean(axis=0) if not real.all() else np.zeros(mine.shape[-1])
    nothing = np.zeros((1, 0))
    return WriteMap(nothing, np.zeros((1, mine.shape[-1])), positions, written[:, :start].mean(axis=0), pad)


def fit_linear(rows: Array, wanted: Array, rank: int) -> tuple[Array, Array, Array]:
    """The affine map rows @ into @ out + bias of at most this rank that is nearest to `wanted`.

    This is reduced-rank regression. The numbers rows @ into have variance 1. Directions with almost no variance are
    left out: dividing by it would leave rounding errors of size 1.
    """
    gram = gram_of(rows)
    middle = wanted.mean(axis=0)
    full = np.linalg.solve(gram.matrix + gram.ridge(RIDGE), gram.rows.T @ (wanted - middle))
    fitted = gram.rows @ full
    directions = np.linalg.eigh(fitted.T @ fitted)[1][:, ::-1][:, : max(rank, 0)]
    spread = (fitted @ directions).std(axis=0)
    kept = spread > NOTHING * spread.max(initial=0.0)
    directions, spread = directions[:, kept], spread[kept]
    into, out = full @ directions / spread, (directions * spread).T
    return into, out, middle - gram.mean @ into @ out
