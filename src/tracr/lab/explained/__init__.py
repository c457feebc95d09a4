"""The explanations track: what do the components of a subject do? Roles, or a program.

true_roles.py      the components of a subject and their true roles
submission.py      reads submitted roles; the components of a subject as a form to fill in
role_scores.py     `explanations`: submitted roles, scored
explanation_methods.py, attention_roles.py   methods of the track; explanation_rows.py: rows of its table
answers.py         the reference, which reads the truth, and two nulls
program_scores.py  `score_program`: a submitted program, scored by its answers and its structure
structure.py       the selectors and aggregates of a program, compared

Submitted files are data: JSON, or a text in the textual RASP language. Nothing in them is executed as Python.
"""
