"""The mechanism of a model as data. docs/ground-truth.md is the schema.

data.py        nodes and edges, at several granularities, as values, JSON and networkx
wiring.py      finds nodes and edges in the weights
ablations.py   runs the model with edges ablated
circuits.py    the smallest circuit that keeps the outputs
"""
