"""The roles of components, and what is said of one."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["HEAD_ROLES", "NEURON_ROLES", "ROLES", "Explanation"]

HEAD_ROLES = MappingProxyType(
    {
        "count": "attention whose weight on BOS encodes how many positions are selected",
        "copy": "attention to the selected position, whose value it copies",
        "copy_by_position": "the same, if the position selected depends on the own position only",
        "average": "attention to all selected positions, whose values it averages",
    }
)
NEURON_ROLES = MappingProxyType(
    {
        "decode": "neurons that turn what attention wrote into a count or a value",
        "compare": "neurons that test a condition: the result is True or False",
        "map": "neurons that compute any other function of one variable, or write it in another code",
        "combine": "neurons that compute any other function of several variables",
        "add": "neurons that compute a weighted sum",
        "clear": "neurons that remove a variable from the residual stream",
    }
)
ROLES = MappingProxyType(
    {
        "embed": "writes the tokens or the positions into the residual stream",
        **HEAD_ROLES,
        **NEURON_ROLES,
        "read_out": "reads the answer off the residual stream",
        "none": "does nothing that the program needs: a head or MLP of a twin that its teacher does not have",
    }
)
"""The roles, each with its meaning."""


@dataclass(frozen=True)
class Explanation:
    """The roles of a component (several if it computes several variables), and a sentence without a full stop."""

    roles: tuple[str, ...]
    sentence: str
