"""The interactive interpreter: `tracr repl`.

session.py    runs what was typed: text in, text out
show.py       prints values
words.py      the words after a command: an expression, an input, a file
commands.py   :compile, :run, :verify, :draw, :explore, :save and the others
learning.py   :learn, the puzzles
files.py      the files that a session writes
console.py    the terminal: editing, history, completion, colours
"""
