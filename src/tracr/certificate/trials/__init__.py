"""Trials of the checker: models that were changed a little, checked, and compared with their program on every input.

meaning.py     the meaning of the saved tables, on one input at a time, in exact fractions
execution.py   runs saved weights in float32, with sums in several orders
mutants.py     changes weights, tables and hints; gives a model the weights of another
compensating.py     changes several weights that make up for each other
exchanging.py       exchanges components, heads, neurons, rows, signs and owners that look alike
rare.py             changes weights so that they matter at few streams
program_changes.py  changes the program, but for its tables
trial.py       one mutant: is it harmful, is it accepted
"""
