"""JAX: the shared forward pass as a pure function of a parameter tree."""

from __future__ import annotations

from collections.abc import Callable
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
    from tracr.model.compiled import CompiledModel

__all__ = ["to_jax"]

Tree = dict[str, jax.Array]
NAMESPACE = SimpleNamespace(**vars(jnp), relu=jax.nn.relu, softmax=jax.nn.softmax)


def to_jax(model: CompiledModel, dtype: Any, check: bool) -> tuple[Callable[..., jax.Array], Tree]:
    """`apply(params, ids)` and `params`, a dict under TransformerLens names; `check` as in `CompiledModel.to_jax`."""
    if format_of(dtype) == "float64" and not jax.config.jax_enable_x64:
        raise InputError("JAX is set to 32 bits", hint='call jax.config.update("jax_enable_x64", True) first')
    causal, longest = model.options.causal, model.vocabulary.longest + 1

    def apply(params: Tree, ids: Any, hook: Callable[[str, Any], Any] | None = None) -> jax.Array:
        """Logits [batch, position, d_vocab_out]; `hook(name, activation)` as in `CompiledModel.run`."""
        ids = jnp.asarray(ids)
        if ids.ndim != 2 or ids.shape[1] > longest:
            raise InputError(f"ids have the shape {ids.shape}, not [batch, up to {longest}]", hint="use model.encode")
        if check:
            require_format(model, params["embed.W_E"].dtype)
        with jax.default_matmul_precision("highest"):  # some devices round products to fewer bits by default
            return forward(Parameters.of(params), ids, NAMESPACE, causal=causal, hook=hook, norm=model.norm)

    return apply, {name: jnp.asarray(array) for name, array in model.cast(dtype, check=check).named()}
