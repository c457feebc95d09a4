"""What the components of a compiled model do, in words: the one source of roles and sentences.

roles.py       the roles, and `Explanation`: the roles of a component and a sentence
selections.py  the positions that a selector selects, in words
formulas.py    functions of variables: as formulas over their names, or as a few examples
components.py  `explanations`: every head and every group of neurons of a schedule

Ground truth, pages, cards, figures and the laboratory take their texts from here. All of it is made from the program's
tables and names, so that a saved model says the same.
"""
