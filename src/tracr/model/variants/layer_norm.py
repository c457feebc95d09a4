"""Layer norms that change nothing, for architectures with layer norms.

A layer norm gives y = g (x - m) / sqrt(v + e), with m the mean of x and v its variance. Two more dimensions and one
constant make it the identity for every reader.

**Balance.** Every write adds minus its own sum to one more dimension. Therefore the mean is 0, up to rounding.

**Anchor.** Another dimension is never written. After the norm it holds -m g / sqrt(v + e), which the norm has added to
every dimension, and each reader subtracts it: coordinate i is written along e_i - e_balance and read with
e_i - e_anchor. Therefore a mean that is not 0 because of rounding does not reach the readers.

**Epsilon.** Let N be the sum of the largest squares the variables can have (1 for a one-hot code). With the balance,
b² = (sum x_i)² <= D |x|², so v <= (|x|² + b²)/(D + 2) <= |x|² <= N, in any orthogonal basis. With e a power of 4, at
least 2**24 N, and g = sqrt(e), y = x / sqrt(1 + v/e) is x up to a relative error of 2**-25. In float32 v + e rounds to
e, its root is a power of two, and g x / sqrt(e) is x to the last bit.

This holds at tokens and at BOS. PAD positions may hold larger numbers, but no token attends to them: a key that is
scaled down a little keeps its distance. A larger epsilon costs nothing, and 2**80 leaves room for N up to 2**56, for
float64, and for a certificate's bounds, which are larger than N and include PAD.

**In float32**, y_i is therefore x_i - m rounded once, for the computed m, and the anchor is -m.

- If the stream consists of multiples of some 2**-k that add up within 24 bits, such as one-hot codes and integers, m is
  0 for any order of the sum, and the norm changes no bit. `exactness.py` proves this from the possible contents of
  variables.
- Otherwise (shares of attention, means) a reader of coordinate i sees x_i with a relative error of at most 2**-23, and
  sees a coordinate that is 0 as 0 up to 2**-24 |m|, the rounding error of a rounding error. Constructions that need
  exact numbers are not proved for such errors. Therefore the outputs and variables of such a model are checked on up to
  2,000 inputs (`readback.py`), and the model is refused if one is wrong. The contents of BOS are the same for every
  input. Therefore every check includes the most sensitive part: what heads that compute sums read at BOS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import TracrError
from tracr.model.variants.exactness import is_exact
from tracr.model.variants.readback import checked
from tracr.model.variants.variant_model import VariantModel, changed

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.running import RunnableModel

__all__ = ["LayerNorm", "largest_square", "require_plain_norms", "with_layer_norm"]

Tensor = Any
EPSILON = 2.0**80
HALF_ULP = 2.0**-24


@dataclass(frozen=True)
class LayerNorm:
    """A layer norm with gain sqrt(epsilon) and without bias, over all dimensions or the first `width`."""

    epsilon: float
    width: int | None = None

    @property
    def gain(self) -> float:
        """The factor of the normalised stream."""
        return math.sqrt(self.epsilon)

    def __call__(self, stream: Tensor, xp: Any) -> Tensor:
        """The normalised stream."""
        if self.width is not None:
            seen = LayerNorm(self.epsilon)(stream[..., : self.width], xp)
            return xp.concatenate([seen, stream[..., self.width :]], axis=-1)
        centred = stream - stream.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + self.epsilon) * self.gain


def with_layer_norm(model: DesignedModel) -> VariantModel:
    """The model for an architecture with a layer norm before every attention, every MLP and the unembedding."""
    if model.norm is not None:
        raise TracrError("the model has layer norms already", hint="use this model")
    size = model.d_model
    write, read = np.zeros((size, size + 2)), np.zeros((size + 2, size))
    write[:, :size] = read[:size] = np.eye(size)
    write[:, size] = read[size + 1] = -1.0
    enough = 4.0 ** math.ceil(math.log(largest_square(model) / HALF_ULP, 4))
    norm = LayerNorm(max(EPSILON, enough))
    found = changed(model, "with_layer_norm()", basis=(write, read), layer_norm=norm)
    return found if is_exact(found) else checked(found, "use the model without layer norms")


def require_plain_norms(model: RunnableModel, what: str) -> None:
    """Refuse a model with changed weights, whose layer norms may matter, for a format without layer norms."""
    if model.norm is not None and not model.own_weights:
        raise TracrError(
            f"after the change of its weights the model's layer norms may change what it computes, and {what} has none",
            hint="use to_torch or to_jax",
        )


def largest_square(model: DesignedModel) -> float:
    """N: a bound on the square of the residual stream's size, in an orthogonal basis, at tokens and at BOS."""
    largest = 0.0
    for variable in model.layout.slots:
        number = max(abs(variable.low), abs(variable.high)) if variable.numerical else 1.0
        code = 1.0 if variable.codebook is None else float((variable.codebook**2).sum(axis=1).max())
        at_bos = float(variable.bos_code() @ variable.bos_code())
        largest += max(1.0, number**2, code, at_bos)
    return largest
