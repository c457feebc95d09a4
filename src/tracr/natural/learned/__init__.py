"""Learned parts: every head and MLP of a compiled model trained alone, then assembled (docs/natural.md).

codes.py      what each part reads and must write, how much noise, and how large an error is allowed
assembly.py   all parts in one transformer, and the check that no weight is outside its part's dimensions
directions.py the directions of the labels: rotated, or superposed with exact reads
fitting.py    training one head or one group of neurons, in JAX
learning.py   `learned_parts`: trains all parts, assembles them, measures and verifies the result
model.py      `LearnedModel`; truth.py is its ground truth, saving.py writes to disk
in_torch.py, in_transformer_lens.py    learned models in other frameworks
"""
