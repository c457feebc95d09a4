"""Methods that look for circuits: functions `(subject, data) -> {edge: score}`; larger scores say more important.

registry.py             `METHODS`, and `run_method`: a run with its cost
data.py                 what a method gets: clean and corrupted inputs, and a metric
passes.py               the clean and the corrupted pass, and the count of passes
exact_patching.py       every edge patched in turn
eap.py                  edge attribution patching
eap_ig_inputs.py        the same, with gradients integrated over the inputs
eap_ig_activations.py   the same, with gradients integrated over activations
acdc.py                 edges removed one by one, for a sweep of thresholds
edge_probing.py         subnetwork probing with a trained gate on every edge
node_probing.py         the same, with a gate on every head and MLP
information_flow.py     information flow routes
random_edges.py, weight_norm.py, downstream.py   null methods
edge_gradients.py       the gradient of the metric at every reader, in numpy; norm_slope.py, through layer norms
edge_network.py         a transformer in JAX with masks for edges
hard_concrete.py        the gates of subnetwork probing and their training, in JAX
"""

from __future__ import annotations

from tracr.lab.methods.acdc import acdc
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.downstream import downstream
from tracr.lab.methods.eap import eap
from tracr.lab.methods.eap_ig_activations import eap_ig_activations
from tracr.lab.methods.eap_ig_inputs import eap_ig_inputs
from tracr.lab.methods.edge_probing import edge_probing
from tracr.lab.methods.exact_patching import exact_patching
from tracr.lab.methods.information_flow import information_flow
from tracr.lab.methods.node_probing import node_probing
from tracr.lab.methods.passes import count_passes
from tracr.lab.methods.random_edges import random_edges
from tracr.lab.methods.registry import ALIASES, METHODS, Method, MethodResult, run_method
from tracr.lab.methods.weight_norm import weight_norm

__all__ = [
    "ALIASES",
    "METHODS",
    "Method",
    "MethodData",
    "MethodResult",
    "acdc",
    "count_passes",
    "downstream",
    "eap",
    "eap_ig_activations",
    "eap_ig_inputs",
    "edge_probing",
    "exact_patching",
    "information_flow",
    "node_probing",
    "random_edges",
    "run_method",
    "weight_norm",
]
