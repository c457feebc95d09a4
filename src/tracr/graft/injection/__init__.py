"""Injection: a compiled circuit inside a trained GPT-2, under its layer norm (docs/injecting.md).

injecting.py   `inject`
host.py        the host's configuration and weights; running.py, its forward pass; bounds.py, how long its stream can be
interface.py   how tokens ask the program, and which tokens are its answers
support.py     which programs are refused, and why
demands.py     the variables to store, and which of their values are told apart
steps.py       tables as steps; variable_steps.py, the steps of each operation
scores.py      conditions as scores of heads; embedded.py, the dimensions of tokens and positions
planning.py    the whole circuit by layers; circuit.py has its types
freeing.py     unused heads and neurons of a host, measured
sizes.py       the sizes of the injected model and of its σ; building.py, the weights; precision.py, rounding
injected.py    `Injected`; truth.py, its ground truth; measuring.py, what changed and whether answers are right
"""

from __future__ import annotations

from tracr.graft.injection.injected import Injected
from tracr.graft.injection.injecting import inject

__all__ = ["Injected", "inject"]
