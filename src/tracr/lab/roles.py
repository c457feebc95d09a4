"""What each component of a model does: roles from a small vocabulary, and a sentence (`tracr/explaining/`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracr.explaining.roles import ROLES

if TYPE_CHECKING:
    from tracr.ground_truth.data import Granularity
    from tracr.model.designed import DesignedModel

__all__ = ["ROLES", "ComponentRole", "roles_of"]


@dataclass(frozen=True)
class ComponentRole:
    """The roles of a component (several if it holds several groups of neurons, or merged heads), and a sentence."""

    component: str
    roles: tuple[str, ...]
    sentence: str


def roles_of(model: DesignedModel, granularity: Granularity = "head") -> dict[str, ComponentRole]:
    """The role of every node of the ground truth, by its id.

    >>> from tracr import zoo
    >>> for role in roles_of(zoo.load("hist")).values(): print(role.component, role.roles, role.sentence)
    embed ('embed',) Writes tokens.
    pos_embed ('embed',) Writes nothing.
    blocks.0.attn.0 ('count',) Counts, for hist, the positions with the same token.
    blocks.0.mlp ('decode',) Turns the count of the positions with the same token into hist.
    unembed ('read_out',) Reads out hist.
    """
    nodes = model.ground_truth.nodes(granularity)
    return {node.id: ComponentRole(node.id, node.roles, node.sentence) for node in nodes}
