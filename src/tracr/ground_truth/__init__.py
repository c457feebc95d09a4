"""The mechanism of a model as data. docs/ground-truth.md is the schema.

data.py        nodes and edges, at several granularities, as values, JSON and networkx
wiring.py      finds nodes and edges in the weights
ablations.py   runs the model with edges ablated
circuits.py    the smallest circuit that keeps the outputs
edge_keys.py   edges without variables, as pairs of names; candidates
patching.py    forward passes with patched edges, many at once
pair_truth.py  which edges are needed on pairs of inputs (input_pairs.py): alone, jointly or not
scoring.py     scores of found edges against any of these truths; scores.py has the formulas
"""
