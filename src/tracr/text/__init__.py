"""The textual RASP language: .rasp files, read, run, printed and formatted.

places.py      file:line:column, and the line with a caret
syntax.py      the syntax tree; grammar.lark and parser.py make it from text, walk.py visits it
traps.py       warnings about precedence
values.py      lists, dictionaries and how large they may be
operators.py   what operators and built-ins do; operations.py their functions at one position
scope.py       names in scope, functions, and the limit on steps
evaluator.py   runs expressions and functions
library.py     the language's own names; library.rasp the library
runner.py      runs the statements of a text; module.py its result
printer.py     expressions back to text; tables.py Python functions as tables
phrases.py     texts with the precedence of their operators; booleans.py which s-ops hold booleans
layout.py      `tracr fmt`
"""

from tracr.text.module import Module, parse, parse_file

__all__ = ["Module", "parse", "parse_file"]
