"""The track "variables": methods that look for the variables of a program in the residual stream.

questions.py      what methods get: labels of inputs, and interchange interventions with their answers; the control
counterfactual.py the program's answers with a variable replaced
network.py        a model cut at a place of its residual stream
found.py          what methods return: a place, and a part of the stream
scoring.py        decoding, interchange accuracy, places, principal angles
registry.py       the methods by name
linear_probe.py, mlp_probe.py           probes; probing.py trains them, in numpy
difference_of_means.py                  the means of the values
das.py, boundless_das.py, invertible.py featurisers trained by interchange; swap_training.py trains them, in JAX
random_subspace.py, true_subspace.py    a null method, and the truth
choosing.py       the best place of a model
variable_rows.py  rows of the table of results
"""

from __future__ import annotations

from tracr.lab.variables.found import FoundVariable, LinearSubspace
from tracr.lab.variables.questions import CONTROL, Interchanges, VariableData, VariableQuestion, questions_for
from tracr.lab.variables.registry import VARIABLE_METHODS
from tracr.lab.variables.scoring import VariableScores, interchange_accuracy, principal_angles, score_found

__all__ = [
    "CONTROL",
    "VARIABLE_METHODS",
    "FoundVariable",
    "Interchanges",
    "LinearSubspace",
    "VariableData",
    "VariableQuestion",
    "VariableScores",
    "interchange_accuracy",
    "principal_angles",
    "questions_for",
    "score_found",
]
