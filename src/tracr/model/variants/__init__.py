"""The same model, less easy to read: docs/variants.md.

variant.py      how a model differs from the one that was compiled, and its weights in another basis
basis.py        where the labelled coordinates lie in the residual stream
rotation.py     a random orthogonal basis
exactness.py    where a basis is proved to change no bit
holdings.py     what the residual stream can hold
readback.py     whether outputs and variables are what they were, on inputs
noise.py        weights that are a little off
layer_norm.py   layer norms that change nothing
"""
