"""The ground truth of a twin: the teacher's nodes and edges, each with its measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from tracr.errors import TracrError
from tracr.ground_truth.circuits import MinimalCircuit
from tracr.ground_truth.edge_keys import coarsened
from tracr.ground_truth.scoring import QKV, EdgeTruth
from tracr.natural.admission import Admission, SiteAdmission
from tracr.natural.sites import EMBED

if TYPE_CHECKING:
    from tracr.ground_truth.ablations import Ablation
    from tracr.ground_truth.data import Edge, Granularity, GroundTruth, ModelNode
    from tracr.ground_truth.input_pairs import TokenPair
    from tracr.ground_truth.pair_truth import PairTruth
    from tracr.ground_truth.scores import EdgeKey

__all__ = ["TwinTruth", "edge_site"]


def edge_site(edge: Edge) -> str:
    """The name of the site of an edge between heads and MLPs; token and position embeddings are one writer.

    Edges have the granularity "qkv".
    """
    writer = EMBED if edge.source in ("embed", "pos_embed") else edge.source
    return f"{writer}->{edge.target if edge.input == 'in' else f'{edge.target}.{edge.input}'}"


@dataclass(frozen=True, eq=False)
class TwinTruth(EdgeTruth):
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

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """All granularities with whole MLPs."""
        return ("component", "head", "qkv")

    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All pairs (writer, reader input) of the twin, also of heads and MLPs that the teacher does not have."""
        if granularity not in self.granularities:
            hint = f"there are {', '.join(self.granularities)}; the MLPs of a twin are whole"
            raise TracrError(f"a twin has no granularity {granularity!r}", hint=hint)
        edges = [site.site.split("->") for site in self.admission.sites if "->" in site.site]
        return tuple(dict.fromkeys(coarsened((writer, reader), granularity) for writer, reader in edges))

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that are edges of the teacher, and the others."""
        candidates = self.candidates(granularity)
        wired, _ = self.teacher.split(granularity)
        return wired, tuple(key for key in candidates if key not in wired)

    @overload
    def minimal(
        self, *, data: Sequence[Sequence[Any]], ablation: Ablation = "resample", seed: int = 0
    ) -> tuple[str, ...]: ...

    @overload
    def minimal(
        self, *, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = QKV
    ) -> PairTruth: ...

    def minimal(self, *, ablation: Any = "resample", **given: Any) -> tuple[str, ...] | PairTruth:
        """The edges that the teacher needs: see `GroundTruth.minimal`.

        With `data`, their names. With `pairs`, the truth for each candidate of the twin; those of heads and MLPs that
        the teacher does not have are inert. An edge that the teacher needs alone is *undecided* if patching it changed
        the teacher's answer only in interventions without a true answer: what the twin does there was not measured.
        """
        found: MinimalCircuit | PairTruth = self.teacher.minimal(ablation=ablation, **given)
        if isinstance(found, MinimalCircuit):
            return tuple(dict.fromkeys(edge_site(edge) for edge in found.edges("qkv")))
        needed, candidates = {*found.alone, *found.jointly}, self.candidates(found.granularity)
        measured = self._changing(found.granularity)
        return replace(
            found,
            truth=self,
            alone=tuple(key for key in found.alone if key in measured),
            inert=tuple(key for key in candidates if key not in needed),
            undecided=tuple(key for key in found.alone if key not in measured),
            caveat="" if self.admission.admitted else "the teacher's: the twin is NOT ADMITTED",
        )

    def _changing(self, granularity: Granularity) -> set[EdgeKey]:
        """The edges for which interventions with a true answer were found that change the teacher's answer."""
        sites = [site.site.split("->") for site in self.admission.sites if "->" in site.site and site.agreement.tries]
        return {coarsened((writer, reader), granularity) for writer, reader in sites}

    def to_json(self) -> dict[str, Any]:
        """Whether the twin is admitted, the measurements of the teacher's nodes and edges, and all that is missed."""
        return {
            "admitted": self.admission.admitted,
            "nodes": [{**_measured(node), "computes": self.computes(node.site).computes} for node in self.nodes],
            "edges": [_measured(edge) for edge in self.edges],
            "missed": [site.site for site in self.admission.missed],
        }

    def __repr__(self) -> str:
        verdict = "admitted" if self.admission.admitted else "not admitted"
        return f"TwinTruth({len(self.nodes)} nodes, {len(self.edges)} edges, {verdict})"

    def show(self) -> str:
        """A line per node and edge of the teacher, with its verdict.

        If the twin is not admitted, the first line says so, and missed nodes and edges that the teacher does not have
        are listed too.
        """
        own = (*self.nodes, *self.edges)
        if self.admission.admitted:
            return "\n".join(map(str, own))
        names = {site.site for site in own}
        others = [site for site in self.admission.missed if site.site not in names]
        right = f"right on {self.admission.accuracy.share:.2%} of the inputs it was measured on"
        head = (
            f"NOT ADMITTED ({right}; {len(self.admission.missed)} nodes and edges are missed): this truth may not hold"
        )
        return "\n".join([head, *(f"not in the teacher: {site}" for site in others), *map(str, own)])


def _measured(site: SiteAdmission) -> dict[str, Any]:
    rates = {"agreement": site.agreement, "false_changes": site.false_changes}
    return {
        "site": site.site,
        "verdict": site.verdict,
        **{name: {"hits": rate.hits, "tries": rate.tries} for name, rate in rates.items()},
    }
