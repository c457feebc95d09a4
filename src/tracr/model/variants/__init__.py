"""Variants of a model that compute the same but are harder to interpret: docs/variants.md.

variant.py      the record of the changes to a compiled model, and its weights in another basis
variant_model.py  `VariantModel`: a compiled model with other weights
basis.py        the directions of the labelled coordinates in the residual stream
rotation.py     a random orthogonal basis
exactness.py    the proof that a basis changes no bit
holdings.py     the possible contents of the residual stream
readback.py     checks that outputs and variables are unchanged, on inputs
noise.py        weights with noise
layer_norm.py   layer norms that change nothing
"""
