"""JAX: the shared forward pass as a pure function of a parameter tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from tracr.errors import InputError
from tracr.ir.parameters import Parameters
from tracr.model.format_check import require_format
from tracr.model.number_formats import format_of
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["applied", "require_enabled", "to_jax"]

Tree = dict[str, jax.Array]


def _softmax(scores: jax.Array, axis: int) -> jax.Array:
    """The softmax; that of a short format is computed in float32, as torch does."""
    wide = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    return jax.nn.softmax(wide, axis).astype(scores.dtype)


NAMESPACE = SimpleNamespace(**vars(jnp), relu=jax.nn.relu, softmax=_softmax)


def to_jax(model: DesignedModel, dtype: Any, check: bool) -> tuple[Callable[..., jax.Array], Tree]:
    """`apply(params, ids)` and `params`, a dict under TransformerLens names; `check` as in `CompiledModel.to_jax`."""
    require_enabled(dtype)
    require = partial(require_format, model, stored=False) if check else None  # XLA may keep more bits than bfloat16
    if require is not None:
        require(dtype)
    apply = applied(model.vocabulary.longest, require, causal=model.options.causal, norm=model.norm)
    return apply, {name: jnp.asarray(array) for name, array in model.cast(dtype, check=False).named()}


def require_enabled(dtype: Any) -> None:
    """Refuse float64 if JAX would silently make it float32."""
    if format_of(dtype) == "float64" and not jax.config.jax_enable_x64:
        raise InputError("JAX is set to 32 bits", hint='call jax.config.update("jax_enable_x64", True) first')


def applied(longest: int, require: Callable[[Any], None] | None, **functions: Any) -> Callable[..., jax.Array]:
    """`apply(params, ids)`: the forward pass with these functions, for up to `longest` tokens after BOS.

    `require(dtype)`, if given, refuses number formats.
    """

    def apply(params: Tree, ids: Any, hook: Callable[[str, Any], Any] | None = None) -> jax.Array:
        """Logits [batch, position, d_vocab_out]; `hook(name, activation)` as in `CompiledModel.run`."""
        ids = jnp.asarray(ids)
        if ids.ndim != 2 or ids.shape[1] > longest + 1:
            raise InputError(
                f"ids have the shape {ids.shape}, not [batch, up to {longest + 1}]", hint="use model.encode"
            )
        if require is not None:
            require(params["embed.W_E"].dtype)
        with jax.default_matmul_precision("highest"):  # some devices round products to fewer bits by default
            return forward(Parameters.of(params), ids, NAMESPACE, hook=hook, **functions)

    return apply
