"""Layer norms that change nothing: how a compiled model fits an architecture that has them.

A layer norm gives y = g (x - m) / sqrt(v + e), m the mean of x and v its variance. Two dimensions and one constant make
that the identity for every reader.

**Balance.** Every write adds minus its own sum to one more dimension. So the mean is 0, but for rounding.

**Anchor.** Another dimension is never written. After the norm it holds what every dimension lost, -m g / sqrt(v + e),
and each reader subtracts it: coordinate i is written along e_i - e_balance and read with e_i - e_anchor. So what
rounding leaves of the mean is not seen either.

**Epsilon.** Let N be the sum of the largest squares the variables can have (1 for a one-hot code). With the balance,
b² = (sum x_i)² <= D |x|², so v <= (|x|² + b²)/(D + 2) <= |x|² <= N, in any orthogonal basis. With e a power of 4, at
least 2**24 N, and g = sqrt(e), y = x / sqrt(1 + v/e) is x but for a relative 2**-25. (2**40 does up to N = 65,536.)
In float32 v + e even rounds to e, its root is a power of two, and g x / sqrt(e) is x to the last bit.

That is at tokens and at BOS. PAD positions may hold more; no token attends to them, and a key that is scaled down there
a little is as far away as before.

**In float32**, then, y_i is x_i - m rounded once, for the m that was computed, and -m at the anchor.

- Where the stream consists of multiples of some 2**-k that add up within 24 bits, as one-hot codes and integers do, m
  is 0 in whatever order it is added up, and the norm changes no bit at all. `exactness.py` proves this from what
  variables can hold.
- Elsewhere (shares of attention, means) a reader of coordinate i sees x_i with a relative error of at most 2**-23, and
  a coordinate that is 0 as 0, but for 2**-24 |m|, the rounding error of a rounding error. Constructions that rely on
  exact numbers are not proved to bear that, so such a model is checked on up to 2,000 inputs, outputs and variables
  (`readback.py`), and refused if something is wrong. What BOS holds is the same for every input, so what heads that add
  up read there, the most sensitive part, is part of every check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import TracrError
from tracr.model.variants.exactness import is_exact
from tracr.model.variants.readback import checked
from tracr.model.variants.variant import changed

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["LayerNorm", "largest_square", "require_plain_norms", "with_layer_norm"]

Tensor = Any
EPSILON = 2.0**40
HALF_ULP = 2.0**-24


@dataclass(frozen=True)
class LayerNorm:
    """A layer norm with gain sqrt(epsilon) and no bias, of all dimensions or of the first `width`."""

    epsilon: float
    width: int | None = None

    @property
    def gain(self) -> float:
        """What the normalised stream is multiplied with."""
        return math.sqrt(self.epsilon)

    def __call__(self, stream: Tensor, xp: Any) -> Tensor:
        """The normalised stream."""
        if self.width is not None:
            seen = LayerNorm(self.epsilon)(stream[..., : self.width], xp)
            return xp.concatenate([seen, stream[..., self.width :]], axis=-1)
        centred = stream - stream.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + self.epsilon) * self.gain


def with_layer_norm(model: CompiledModel) -> CompiledModel:
    """The model for an architecture with a layer norm before every attention, every MLP and the unembedding."""
    if model.variant and model.variant.layer_norm:
        raise TracrError("the model has layer norms already", hint="use it as it is")
    size = model.d_model
    write, read = np.zeros((size, size + 2)), np.zeros((size + 2, size))
    write[:, :size] = read[:size] = np.eye(size)
    write[:, size] = read[size + 1] = -1.0
    enough = 4.0 ** math.ceil(math.log(largest_square(model) / HALF_ULP, 4))
    norm = LayerNorm(max(EPSILON, enough))
    found = changed(model, "with_layer_norm()", basis=(write, read), layer_norm=norm)
    return found if is_exact(found) else checked(found, "use the model without layer norms")


def require_plain_norms(model: CompiledModel, what: str) -> None:
    """Refuse a model whose weights were changed, so that its layer norms matter, for what has none."""
    if model.norm is not None and not model.certified:
        raise TracrError(
            f"the model's layer norms change what it computes, as its weights were changed, and {what} has none",
            hint="use to_torch or to_jax",
        )


def largest_square(model: CompiledModel) -> float:
    """N: a bound on the square of the residual stream's size, in an orthogonal basis, at tokens and at BOS."""
    largest = 0.0
    for variable in model.layout.slots:
        number = max(abs(variable.low), abs(variable.high)) if variable.numerical else 1.0
        code = 1.0 if variable.codebook is None else float((variable.codebook**2).sum(axis=1).max())
        at_bos = float(variable.bos_code() @ variable.bos_code())
        largest += max(1.0, number**2, code, at_bos)
    return largest
