"""The track "features": which features does the residual stream hold? Dictionaries, scored on known features.

feature_case.py      `FeatureCase`: a program with independent features, drawn from dials
relations.py, drawing.py, flag_program.py
                     its flags, their draws, and the program
packing.py, stepping.py, superposed_flags.py
                     its model in fewer dimensions, and what that loses
questions.py         activations for methods, and the truth; found.py, `FoundDictionary`: their answers
matching.py, scoring.py, causal.py
                     the scores
examination.py       a subject with all this; feature_rows.py, rows of the table, beside control, null and ceiling
registry.py          the methods:
sparse_autoencoders.py, transcoder.py
                     trained coders (coder.py; coder_training.py, in JAX)
ica.py, nmf.py, pca.py, dictionary.py
                     decompositions
null_atoms.py, references.py
                     null methods; what the truth scores
"""

from __future__ import annotations

from tracr.lab.features.causal import causal_recovery
from tracr.lab.features.examination import Examination
from tracr.lab.features.feature_case import FeatureCase, FeatureDials, feature_case
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.matching import matched
from tracr.lab.features.questions import FeatureData, FeatureTruth, feature_data, feature_truth
from tracr.lab.features.registry import FEATURE_METHODS
from tracr.lab.features.scoring import FeatureScores, score_dictionary

__all__ = [
    "FEATURE_METHODS",
    "Examination",
    "FeatureCase",
    "FeatureData",
    "FeatureDials",
    "FeatureScores",
    "FeatureTruth",
    "FoundDictionary",
    "causal_recovery",
    "feature_case",
    "feature_data",
    "feature_truth",
    "matched",
    "score_dictionary",
]
