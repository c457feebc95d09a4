"""The interactive interpreter: `tracr repl`.

session.py    what was typed, run: text in, text out
show.py       values as they are shown
commands.py   :compile, :run, :verify, :draw, :info
console.py    the terminal: editing, history, completion, colours
"""
