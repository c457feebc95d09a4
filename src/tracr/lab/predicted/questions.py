"""Questions about interventions, and their true answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracr.ground_truth.edge_keys import as_text
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.sampling import changed_positions
from tracr.saving.values_json import encode_value
from tracr.values import Value

__all__ = ["KINDS", "Question"]

KINDS = ("set", "patch")
"""The kinds of interventions."""

Answer = tuple[Value, ...]


@dataclass(frozen=True)
class Question:
    """What is the answer at each position of `tokens` under one intervention?

    "set": `variable` has `value` at `position`, and its own values elsewhere. "patch": the reader of `edge` sees what
    its writer writes on the input `other`. `true` is the answer under the intervention, `unchanged` that without.
    """

    number: int
    kind: str
    tokens: tuple[Value, ...]
    unchanged: Answer
    true: Answer
    variable: str = ""
    position: int = 0
    value: Value = None
    edge: EdgeKey = ("", "")
    other: tuple[Value, ...] = ()

    @property
    def matters(self) -> bool:
        """Whether the intervention changes the answer."""
        return bool(changed_positions(self.true, self.unchanged))

    def as_json(self) -> dict[str, Any]:
        """The question without its answer; the answer without the intervention is part of it."""
        asked: dict[str, Any] = {"id": self.number, "kind": self.kind, "input": _encoded(self.tokens)}
        if self.kind == "set":
            asked["set"] = {
                "variable": self.variable,
                "position": self.position,
                "value": encode_value(self.value),
            }
        else:
            asked["patch"] = {"edge": as_text(self.edge), "other": _encoded(self.other)}
        return {**asked, "unchanged": _encoded(self.unchanged)}


def _encoded(values: tuple[Value, ...]) -> list[Any]:
    return [encode_value(value) for value in values]
