"""All methods by name, and a run of one with its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from tracr.errors import InputError, UnknownName
from tracr.extras import need
from tracr.lab.methods.acdc import acdc
from tracr.lab.methods.downstream import downstream
from tracr.lab.methods.eap import eap
from tracr.lab.methods.eap_ig_activations import eap_ig_activations
from tracr.lab.methods.eap_ig_inputs import eap_ig_inputs
from tracr.lab.methods.edge_probing import edge_probing
from tracr.lab.methods.exact_patching import exact_patching
from tracr.lab.methods.information_flow import information_flow
from tracr.lab.methods.node_probing import node_probing
from tracr.lab.methods.passes import counted
from tracr.lab.methods.random_edges import random_edges
from tracr.lab.methods.weight_norm import weight_norm
from tracr.spelling import did_you_mean

__all__ = ["ALIASES", "METHODS", "EdgeMethod", "Method", "MethodResult", "method_named", "run_method"]

EdgeMethod = Callable[..., Any]
"""A function `(subject, data, **settings) -> {edge: score}`; in other tracks it returns their answers."""


@dataclass(frozen=True)
class Method:
    """A method that looks for circuits. The same version with the same settings gives the same scores."""

    name: str
    version: int
    run: EdgeMethod = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    """The optional libraries that it imports; the extra `jax` has them."""
    track: str = "edges"
    """The track that it answers; "" if that is not known."""

    def with_settings(self, **settings: Any) -> Method:
        """The method with other settings."""
        unknown = [name for name in settings if name not in self.settings]
        if unknown:
            hint = did_you_mean(unknown[0], self.settings, f"{self.name} has no settings")
            raise UnknownName(f"{self.name} has no setting {unknown[0]}", hint=hint)
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True)
class MethodResult:
    """The answer of a method, and its cost in passes of one input and in seconds (compilation by JAX included)."""

    scores: Any = field(repr=False)
    """A number for each edge, as a pair or a string; the methods here give pairs. In other tracks their answers."""
    forwards: int
    backwards: int
    seconds: float


GATES = {"steps": 300, "rate": 0.1, "weight": 0.5, "seed": 0}
_ALL = (
    Method("exact", 1, exact_patching),
    Method("eap", 2, eap),
    Method("eap-ig-inputs", 2, eap_ig_inputs, {"steps": 10}),
    Method("eap-ig-activations", 2, eap_ig_activations, {"steps": 5}),
    Method("acdc", 1, acdc),
    Method("edge-probing", 1, edge_probing, GATES, ("jax", "optax")),
    Method("node-probing", 1, node_probing, GATES, ("jax", "optax")),
    Method("information-flow", 1, information_flow),
    Method("random", 1, random_edges, {"seed": 0}),
    Method("weight-norm", 1, weight_norm),
    Method("downstream", 1, downstream),
)
METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})
"""The methods of the laboratory; the last three are null methods."""
ALIASES: Mapping[str, str] = MappingProxyType(
    {"eap-ig": "eap-ig-inputs", "subnetwork-probing": "edge-probing", "exact-patching": "exact"}
)
"""Other names of methods."""


def method_named(name: str) -> Method:
    """A method of the registry.

    >>> method_named("eap-ig").name, method_named("eap-ig").settings
    ('eap-ig-inputs', {'steps': 10})
    >>> method_named("eap-gi")
    Traceback (most recent call last):
    tracr.errors.UnknownName: there is no method eap-gi
      hint: did you mean eap?
    """
    name = ALIASES.get(name, name)
    if name not in METHODS:
        raise UnknownName(f"there is no method {name}", hint=did_you_mean(name, METHODS, f"use one of {[*METHODS]}"))
    return METHODS[name]


def run_method(method: Method | EdgeMethod | str, subject: Any, data: Any) -> MethodResult:
    """Run a method, or a user's function `(subject, data) -> {edge: score}`, on a model or a subject.

    Passes of a user's function count if it calls the methods here, or `count_passes`.
    """
    if isinstance(method, str):
        method = method_named(method)
    elif not isinstance(method, Method):
        if not callable(method):
            raise InputError(f"{method!r} is no method", hint=f"use a function, or one of {', '.join(METHODS)}")
        method = Method(getattr(method, "__name__", type(method).__name__), 0, method)
    for library in method.needs:
        need(library, "jax")
    start = time.perf_counter()
    with counted() as counter:
        scores = method.run(subject, data, **method.settings)
    return MethodResult(scores, counter.forwards, counter.backwards, time.perf_counter() - start)
