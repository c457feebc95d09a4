"""The predictions track: what is the answer of a subject under an intervention that nobody showed?

questions.py          a question: an input and an intervention
setting_questions.py  interventions that set a variable of the program, with true answers
patch_questions.py    interventions that patch an edge, with true answers
predicting.py         `predictions`: draws questions, writes them, reads answers
prediction_scores.py  the scores of answers
prediction_methods.py methods of the track; prediction_rows.py: rows of its table
baselines.py          answers to compare with: the program, a found circuit, no change
"""
