"""The laboratory: methods that look for circuits, scored on models whose circuit is known.

one_case.py   `Case`: a program with samplers of inputs and of pairs, a metric and roles
sampling.py   the inputs of a case with their answers; `InputPair`: two of them
metric.py     the metric of a pair, as weights on the logits
roles.py      what each component of a compiled model does: a few roles, and a sentence
catalogue.py  `case` and `cases`: the programs of `tracr.zoo`
fresh.py      `private`: random programs, drawn from a seed
stored_subject.py  `write_subject` and `read_subject`: a model with its pairs, as a folder
formats/      circuits in the formats of other tools, checked and scored
methods/      methods: functions from a subject and data to a number for each edge; a registry, and runs with their cost
faithfulness.py  how much of the metric a circuit keeps: CPR and CMD
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = [
    "ROLES",
    "Case",
    "ComponentRole",
    "InputPair",
    "case",
    "cases",
    "private",
    "read_subject",
    "roles_of",
    "write_subject",
]

if TYPE_CHECKING:
    from tracr.lab.catalogue import case, cases
    from tracr.lab.fresh import private
    from tracr.lab.one_case import Case
    from tracr.lab.roles import ROLES, ComponentRole, roles_of
    from tracr.lab.sampling import InputPair
    from tracr.lab.stored_subject import read_subject, write_subject
else:
    LAZY = {
        "ROLES": "tracr.lab.roles",
        "Case": "tracr.lab.one_case",
        "ComponentRole": "tracr.lab.roles",
        "InputPair": "tracr.lab.sampling",
        "case": "tracr.lab.catalogue",
        "cases": "tracr.lab.catalogue",
        "private": "tracr.lab.fresh",
        "read_subject": "tracr.lab.stored_subject",
        "roles_of": "tracr.lab.roles",
        "write_subject": "tracr.lab.stored_subject",
    }

    def __getattr__(name: str) -> Any:
        """Names imported on first use."""
        if name in LAZY:
            return getattr(importlib.import_module(LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
