"""Craft: labelled spaces, linear maps between them, and the attention heads and MLPs built from them.

`variables.py` has the spaces, `linear.py` the maps, `numerics.py` what float32 does to them, `heads.py` and `mlps.py`
the constructions, each with its proof.
"""
