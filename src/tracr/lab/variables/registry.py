"""The methods of the track "variables", by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tracr.lab.methods.registry import Method
from tracr.lab.track import VARIABLES
from tracr.lab.variables.boundless_das import boundless_das
from tracr.lab.variables.das import das
from tracr.lab.variables.difference_of_means import difference_of_means
from tracr.lab.variables.invertible import invertible
from tracr.lab.variables.linear_probe import linear_probe
from tracr.lab.variables.mlp_probe import mlp_probe
from tracr.lab.variables.random_subspace import random_subspace
from tracr.lab.variables.true_subspace import true_subspace_of

__all__ = ["VARIABLE_METHODS"]

JAX = ("jax", "optax")
_ALL = (
    Method("linear-probe", 1, linear_probe, {"steps": 200, "rate": 0.05, "seed": 0}),
    Method("mlp-probe", 1, mlp_probe, {"hidden": 64, "steps": 200, "rate": 0.01, "seed": 0}),
    Method("difference-of-means", 1, difference_of_means),
    Method("das", 1, das, {"steps": 150, "rate": 0.05, "most": 8, "seed": 0}, JAX),
    Method("boundless-das", 1, boundless_das, {"steps": 150, "rate": 0.05, "weight": 0.2, "seed": 0}, JAX),
    Method("invertible", 1, invertible, {"steps": 400, "rate": 0.005, "blocks": 3, "hidden": 64, "seed": 0}, JAX),
    Method("random-subspace", 1, random_subspace, {"seed": 0}),
    Method("true-subspace", 1, true_subspace_of),
)
VARIABLE_METHODS: Mapping[str, Method] = MappingProxyType(
    {one.name: Method(one.name, one.version, one.run, one.settings, one.needs, VARIABLES.name) for one in _ALL}
)
"""All methods; the last but one is a null method, and the last is the truth."""
