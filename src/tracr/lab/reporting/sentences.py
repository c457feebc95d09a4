"""Sentences about a table, made from its estimates. Every one has its interval, or says why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracr.lab.bootstrap import Estimate
from tracr.lab.reporting.comparing import EVERYWHERE, FaithfulnessTruth, Lead, ReportedParts, SeedSpread
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultTable
from tracr.lab.reporting.tables import Findings

__all__ = ["about_correlations", "about_leads", "about_parts", "about_seeds", "about_table", "estimate_text"]

FEW = 10  # with fewer cases intervals are too narrow


def estimate_text(estimate: Estimate | None, digits: int = 3) -> str:
    """An estimate with its interval; without one it is not given.

    >>> estimate_text(Estimate(0.5, 0.25, 0.75, 4, 8)), estimate_text(Estimate(0.5, None, None, 1, 1))
    ('0.500 [0.250, 0.750]', 'one case: no interval')
    """
    if estimate is None:
        return "undefined"
    if estimate.low is None or estimate.high is None:
        return "one case: no interval" if estimate.cases == 1 else "no interval: undefined in some draws"
    mean, low, high = (
        f"{value:.{digits}f}".replace("-", "−") for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean} [{low}, {high}]"


def _has_interval(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.low is not None


def about_table(table: ResultTable) -> list[str]:
    """What was run, what was left out, and what a seed is."""
    given = table.conditions
    count = Counter(row.outcome for row in table.rows)
    said = [
        f"{_count(len(table.cases), 'case')}, {_count(len(table.realisations), 'realisation')}, "
        f"{_count(len(table.methods), 'method')} and {_count(len(table.seeds), 'seed')} give "
        f"{len(table.rows):,} rows; {count['scored']:,} count for the scores, {count['failed']:,} failed, "
        f"{count['not made']:,} are of models that a case does not allow, and {count['not admitted']:,} of models that "
        "were not admitted.",
        f"The truth is that for {_count(given['pairs'], 'pair')} of inputs under the {given['ablation']} ablation, at "
        f"the granularity {given['granularity']}.",
        "All seeds have the same pairs. A seed draws the model, where it is random, and the random numbers of a method."
        if table.same_pairs and len(table.seeds) > 1
        else "A seed draws the pairs, the model, where it is random, and the random numbers of a method.",
    ]
    if table.repeated:
        said.append(f"{_count(table.repeated, 'row')} of runs that were there already were left out.")
    if len(table.seeds) == 1:
        said.append("There is one seed, so that nothing is said about the variation between seeds.")
    if len(table.cases) < FEW:
        said.append(f"With {_count(len(table.cases), 'case')}, intervals are too narrow, or there are none.")
    return said


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def about_leads(found: Findings) -> list[str]:
    """Question 1: a sentence for each realisation."""
    return [_lead(one) for one in found.leads]


def _lead(one: Lead) -> str:
    if not _has_interval(one.mean):
        return f"On {one.realisation} there is one case: no method can be called the best."
    first = (
        f"On {one.realisation}, {one.best} has the largest mean AUROC of {_count(one.methods, 'method')}: "
        f"{estimate_text(one.mean)} over {_count(one.mean.cases, 'case')}."
    )
    if one.next is None or one.ahead is None or one.ahead.low is None:
        return first
    lead = f"{estimate_text(one.ahead)} on the same {_count(one.ahead.cases, 'case')}"
    if one.ahead.low > 0:
        return f"{first} Its lead over {one.next} is {lead}."
    return f"{first} It cannot be told apart from {one.next}: the difference is {lead}."


def about_correlations(found: Findings) -> list[str]:
    """Question 2: a sentence for each pair of scores, over all realisations."""
    places = [one.where for one in found.correlations]
    chosen = EVERYWHERE if EVERYWHERE in places else places[0]
    return [_correlation(one) for one in found.correlations if one.where == chosen]


def _correlation(one: FaithfulnessTruth) -> str:
    names = f"{SCORE_NAMES[one.faithfulness]} with {SCORE_NAMES[one.truth]}"
    if one.pooled is None:
        return f"The rank correlation of {names} is undefined: there are too few circuits, or all have the same score."
    if not _has_interval(one.pooled):
        return f"The rank correlation of {names} has no interval, and is not given."
    first = (
        f"Over {_count(one.circuits, 'circuit')} of {_count(one.pooled.cases, 'case')}, the rank correlation of "
        f"{names} is {estimate_text(one.pooled)}"
    )
    if not _has_interval(one.within):
        return f"{first}."
    return f"{first}; over the methods of one subject it is {estimate_text(one.within)} in the mean."


def about_seeds(found: Findings) -> list[str]:
    """Question 3: the smallest and the largest spread, with what they are of."""
    if len(found.table.seeds) < 2:
        return ["There is one seed: nothing can be said about the variation between seeds."]
    known = [one for one in found.spreads if _has_interval(one.deviation)]
    if not known:
        return ["No realisation has two cases with two seeds: nothing can be said about the variation between seeds."]

    def size(one: SeedSpread) -> float:
        return one.deviation.mean if one.deviation else 0.0

    return [_spread("largest", max(known, key=size)), _spread("smallest", min(known, key=size))]


def _spread(which: str, one: SeedSpread) -> str:
    text = (
        f"The {which} variation between seeds is that of {one.method} on {one.realisation}: its AUROC has a standard "
        f"deviation of {estimate_text(one.deviation)}"
    )
    if not _has_interval(one.overlap) or not _has_interval(one.truth_overlap):
        return f"{text}."
    return (
        f"{text}, and the edges found with two seeds overlap by {estimate_text(one.overlap)}, while the needed edges "
        f"overlap by {estimate_text(one.truth_overlap)}."
    )


def about_parts(found: Findings) -> list[str]:
    """Question 4: a sentence for each realisation and method with decoys; else that there are none."""
    said = [_decoys(one) for one in found.parts if _has_interval(one.unread)]
    said += [_jointly(one) for one in _most_jointly(found.parts)]
    if not any(one.unread_edges for one in found.parts):
        said.append("No row of this table has edges of decoys or of another program.")
    if not any(one.jointly_edges for one in found.parts):
        said.append("No row of this table has edges that are needed only jointly, as backups have.")
    return said


def _decoys(one: ReportedParts) -> str:
    text = (
        f"On {one.realisation}, {one.method} reports a share of {estimate_text(one.unread)} of the edges that do not "
        "lead to the output, of decoys or of another program"
    )
    return (
        f"{text}, and of {estimate_text(one.other)} of the other inert edges."
        if _has_interval(one.other)
        else f"{text}."
    )


def _most_jointly(parts: Sequence[ReportedParts]) -> list[ReportedParts]:
    """Those with an interval, on the realisation that has most such edges."""
    known = [one for one in parts if one.jointly_edges and _has_interval(one.jointly)]
    if not known:
        return []
    most = max(known, key=lambda one: one.jointly_edges).realisation
    return [one for one in known if one.realisation == most]


def _jointly(one: ReportedParts) -> str:
    return (
        f"On {one.realisation}, {one.method} reports a share of {estimate_text(one.jointly)} of the edges that are "
        "needed only jointly."
    )
