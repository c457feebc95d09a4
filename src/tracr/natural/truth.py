"""The ground truth of a twin: the teacher's nodes and edges, each with its measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracr.natural.admission import Admission, SiteAdmission
from tracr.natural.sites import EMBED

if TYPE_CHECKING:
    from tracr.ground_truth.data import Edge, GroundTruth, ModelNode

__all__ = ["TwinTruth", "edge_site"]


def edge_site(edge: Edge) -> str:
    """The name of the site of an edge between heads and MLPs; token and position embeddings are one writer.

    Edges have the granularity "qkv".
    """
    writer = EMBED if edge.source in ("embed", "pos_embed") else edge.source
    return f"{writer}->{edge.target if edge.input == 'in' else f'{edge.target}.{edge.input}'}"


@dataclass(frozen=True, eq=False)
class TwinTruth:
    """Which components of a twin matter to which, as measured; variables flow along edges by value only."""

    teacher: GroundTruth
    admission: Admission

    @property
    def edges(self) -> tuple[SiteAdmission, ...]:
        """The teacher's edges, merged over variables, with the measurements of each in the twin."""
        names = dict.fromkeys(map(edge_site, self.teacher.edges("qkv")))
        return tuple(self.admission.by_name[name] for name in names)

    @property
    def nodes(self) -> tuple[SiteAdmission, ...]:
        """The teacher's heads and MLPs, with the measurements of each in the twin."""
        names = [node.id for node in self.teacher.nodes("qkv") if node.layer is not None]
        return tuple(self.admission.by_name[name] for name in names)

    def computes(self, node: str) -> ModelNode:
        """The teacher's node of that name, with what it computes."""
        return next(one for one in self.teacher.nodes("qkv") if one.id == node)

    def minimal(self, *, data: Sequence[Sequence[Any]], ablation: Any = "resample", seed: int = 0) -> tuple[str, ...]:
        """The names of the edges that the teacher needs on `data`: see `GroundTruth.minimal`."""
        found = self.teacher.minimal(data=data, ablation=ablation, seed=seed)
        return tuple(dict.fromkeys(edge_site(edge) for edge in found.edges("qkv")))

    def __repr__(self) -> str:
        verdict = "admitted" if self.admission.admitted else "not admitted"
        return f"TwinTruth({len(self.nodes)} nodes, {len(self.edges)} edges, {verdict})"

    def show(self) -> str:
        """One line per node and edge of the teacher, with its verdict."""
        return "\n".join(map(str, (*self.nodes, *self.edges)))
