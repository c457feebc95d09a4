"""The interactive interpreter: `tracr repl`.

session.py    runs what was typed: text in, text out
show.py       prints values
commands.py   :compile, :run, :verify, :draw, :info
console.py    the terminal: editing, history, completion, colours
"""
