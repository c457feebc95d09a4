"""Compiled parts in the place of components of trained models (docs/replacing.md).

part.py        `Part`: a component of a compiled model; observed.py, the values of its variables on inputs
parts_library.py `library`: the parts of all programs of the zoo
place.py       where a part is put; host.py, running a host with a component replaced
data.py        inputs with the host's ids and the right answers
fitting.py     the maps that read and write, in closed form; refining.py, by gradient
replacing.py   `replace`; grafted.py is `Grafted`, of modules.py; saving.py writes to disk
controls.py    ablations, and what a replacement must beat; recovery.py, shares and intervals; reporting.py, `report`
ranking.py     `explain`: the parts of a library, by what they recover
injection/     `inject`: a compiled circuit in added heads, neurons and dimensions of a GPT-2 (docs/injecting.md)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracr.extras import need

__all__ = [
    "GraftData",
    "Grafted",
    "Injected",
    "Part",
    "PartRanking",
    "PartVariable",
    "ReplacementReport",
    "data_of_ids",
    "data_of_program",
    "equal_in_program",
    "explain",
    "inject",
    "inputs_of",
    "library",
    "load",
    "parts_of",
    "replace",
]

if TYPE_CHECKING:
    from tracr.graft.data import GraftData, data_of_ids, data_of_program, inputs_of
    from tracr.graft.equality import equal_in_program
    from tracr.graft.grafted import Grafted
    from tracr.graft.injection import Injected, inject
    from tracr.graft.part import Part, PartVariable, parts_of
    from tracr.graft.parts_library import library
    from tracr.graft.ranking import PartRanking, explain
    from tracr.graft.replacing import replace
    from tracr.graft.reporting import ReplacementReport
    from tracr.graft.saving import load
else:
    LAZY = {
        "GraftData": "tracr.graft.data",
        "Grafted": "tracr.graft.grafted",
        "Injected": "tracr.graft.injection",
        "Part": "tracr.graft.part",
        "PartRanking": "tracr.graft.ranking",
        "PartVariable": "tracr.graft.part",
        "ReplacementReport": "tracr.graft.reporting",
        "data_of_ids": "tracr.graft.data",
        "data_of_program": "tracr.graft.data",
        "equal_in_program": "tracr.graft.equality",
        "explain": "tracr.graft.ranking",
        "inject": "tracr.graft.injection",
        "inputs_of": "tracr.graft.data",
        "library": "tracr.graft.parts_library",
        "load": "tracr.graft.saving",
        "parts_of": "tracr.graft.part",
        "replace": "tracr.graft.replacing",
    }

    def __getattr__(name: str) -> Any:
        """Names imported on first use, because hosts need torch."""
        if name in LAZY:
            try:
                module = importlib.import_module(LAZY[name])
            except ModuleNotFoundError as error:
                if error.name and error.name.partition(".")[0] != "tracr":
                    need(error.name, "torch")  # says how to install the library that the module imports
                raise
            return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
