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
realising.py  the realisations of a case: compiled, rotated, ..., twin
subjects.py   `Subject`: a realisation with its truth; subject_cache.py keeps subjects on disk; twin_folder.py reads
              trained twins; output_truth.py, the truth of one of two outputs; acceptable.py, the circuits of backups
track.py      `Track`: what methods are asked for: edges, variables
variables/    the track "variables": questions, methods, scores
selecting.py  chooses cases by words: names, tags, core, all
dials.py      dials by name, each for a few realisations
choices.py    names with settings; finding.py finds methods by name, or in a user's file
rows.py       one subject, several methods: the rows of the table of results; edge_rows.py: those of the track "edges"
running.py    `run`: methods on subjects, resumable
bootstrap.py  intervals of mean scores; leaderboard.py the standing of each method, from the table
unread_edges.py  edges that do not lead to the case's output: of decoys, of another program
reporting/    `report`: tables, figures and a page of a run
explained/    the explanations track: submitted roles, and submitted programs
predicted/    the predictions track: questions about interventions, and their answers
replaced/     the replacements track: claims that a component computes a part
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = [
    "DIALS",
    "REALISATIONS",
    "ROLES",
    "TRACKS",
    "Case",
    "ComponentRole",
    "Conditions",
    "Dial",
    "Estimate",
    "ExplanationScores",
    "InputPair",
    "LabReport",
    "LabRun",
    "PredictionScores",
    "Predictions",
    "ProgramScores",
    "ReplacementScores",
    "Standing",
    "Subject",
    "Track",
    "case",
    "cases",
    "constant_explanations",
    "dial_realisations",
    "explanation_form",
    "explanations",
    "hierarchical_bootstrap",
    "keep_twin",
    "predictions",
    "private",
    "random_explanations",
    "read_predictions",
    "read_results",
    "read_subject",
    "replacement_form",
    "replacements",
    "report",
    "roles_of",
    "run",
    "score_program",
    "select_cases",
    "standings",
    "subject",
    "true_explanations",
    "write_subject",
]

if TYPE_CHECKING:
    from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
    from tracr.lab.catalogue import case, cases
    from tracr.lab.dials import DIALS, Dial, dial_realisations
    from tracr.lab.explained.answers import constant_explanations, random_explanations, true_explanations
    from tracr.lab.explained.program_scores import ProgramScores, score_program
    from tracr.lab.explained.role_scores import ExplanationScores, explanations
    from tracr.lab.explained.submission import explanation_form
    from tracr.lab.fresh import private
    from tracr.lab.leaderboard import Standing, read_results, standings
    from tracr.lab.one_case import Case
    from tracr.lab.predicted.predicting import Predictions, predictions, read_predictions
    from tracr.lab.predicted.prediction_scores import PredictionScores
    from tracr.lab.realising import REALISATIONS
    from tracr.lab.replaced import ReplacementScores, replacement_form, replacements
    from tracr.lab.reporting.lab_report import LabReport, report
    from tracr.lab.roles import ROLES, ComponentRole, roles_of
    from tracr.lab.rows import Conditions
    from tracr.lab.running import LabRun, run
    from tracr.lab.sampling import InputPair
    from tracr.lab.selecting import select_cases
    from tracr.lab.stored_subject import read_subject, write_subject
    from tracr.lab.subjects import Subject, keep_twin, subject
    from tracr.lab.track import TRACKS, Track
else:
    LAZY = {
        "Case": "tracr.lab.one_case",
        "ComponentRole": "tracr.lab.roles",
        "Conditions": "tracr.lab.rows",
        "DIALS": "tracr.lab.dials",
        "Dial": "tracr.lab.dials",
        "Estimate": "tracr.lab.bootstrap",
        "InputPair": "tracr.lab.sampling",
        "LabReport": "tracr.lab.reporting.lab_report",
        "LabRun": "tracr.lab.running",
        "REALISATIONS": "tracr.lab.realising",
        "ROLES": "tracr.lab.roles",
        "Standing": "tracr.lab.leaderboard",
        "Subject": "tracr.lab.subjects",
        "TRACKS": "tracr.lab.track",
        "Track": "tracr.lab.track",
        "hierarchical_bootstrap": "tracr.lab.bootstrap",
        "case": "tracr.lab.catalogue",
        "cases": "tracr.lab.catalogue",
        "dial_realisations": "tracr.lab.dials",
        "keep_twin": "tracr.lab.subjects",
        "private": "tracr.lab.fresh",
        "read_predictions": "tracr.lab.predicted.predicting",
        "read_results": "tracr.lab.leaderboard",
        "read_subject": "tracr.lab.stored_subject",
        "report": "tracr.lab.reporting.lab_report",
        "roles_of": "tracr.lab.roles",
        "run": "tracr.lab.running",
        "select_cases": "tracr.lab.selecting",
        "standings": "tracr.lab.leaderboard",
        "subject": "tracr.lab.subjects",
        "write_subject": "tracr.lab.stored_subject",
        "explanations": "tracr.lab.explained.role_scores",
        "score_program": "tracr.lab.explained.program_scores",
        "explanation_form": "tracr.lab.explained.submission",
        "predictions": "tracr.lab.predicted.predicting",
        "true_explanations": "tracr.lab.explained.answers",
        "constant_explanations": "tracr.lab.explained.answers",
        "random_explanations": "tracr.lab.explained.answers",
        "ExplanationScores": "tracr.lab.explained.role_scores",
        "ProgramScores": "tracr.lab.explained.program_scores",
        "Predictions": "tracr.lab.predicted.predicting",
        "PredictionScores": "tracr.lab.predicted.prediction_scores",
        "ReplacementScores": "tracr.lab.replaced",
        "replacement_form": "tracr.lab.replaced",
        "replacements": "tracr.lab.replaced",
    }

    def __getattr__(name: str) -> Any:
        """Names imported on first use."""
        if name in LAZY:
            return getattr(importlib.import_module(LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
