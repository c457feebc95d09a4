"""Craft: labelled spaces, linear maps between them, and the attention heads and MLPs built from them.

`variables.py` has the spaces and `linear.py` the maps. `numerics.py` bounds their errors in float32. The constructions,
each with its proof, are in `heads.py`, `lookups.py`, `staircases.py` and `arithmetic.py`; `mlps.py` has the neurons.
"""
