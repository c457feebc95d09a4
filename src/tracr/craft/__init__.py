"""Craft: labelled spaces, linear maps between them, and the attention heads and MLPs built from them.

`variables.py` has the spaces and `linear.py` the maps. `numerics.py` bounds their errors in float32. `heads.py` and
`mlps.py` have the constructions, each with its proof.
"""
