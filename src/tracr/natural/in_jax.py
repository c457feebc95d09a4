"""Twins in JAX: the pure function of `adapters/jax.py` with the twin's layer norms and activation function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from tracr.adapters.jax import Tree, applied, require_enabled
from tracr.model.number_formats import format_of
from tracr.natural.formats import require_format

if TYPE_CHECKING:
    from tracr.natural.twin_model import TwinModel

__all__ = ["to_jax"]


def to_jax(twin: TwinModel, dtype: Any, check: bool) -> tuple[Callable[..., jax.Array], Tree]:
    """`apply(params, ids)` and `params`, a dict under TransformerLens names."""
    require_enabled(dtype)
    kind = format_of(dtype)
    if check:
        require_format(kind)
    apply = applied(
        twin.vocabulary.longest,
        require_format if check else None,
        causal=twin.teacher.options.causal,
        norm=twin.architecture.norm,
        activation=twin.architecture.act(jax.nn),
    )
    return apply, {name: jnp.asarray(array, dtype=kind) for name, array in twin.parameters.named()}
