"""The command line `tracr`: compiles, runs, draws, explains, verifies, exports and compresses programs.

sources.py        finds the program named by PROGRAM and compiles it for the vocabulary and length given
textual.py        finds the s-op if PROGRAM is a .rasp file
inputs.py         reads tokens and vocabularies from the words typed
options.py        the arguments and options shared by several commands
commands.py       list, passes, run, show, info, verify
compiling.py      compile
certifying.py     certify: the checker's verdict on a model, and probes of backends
watching.py       prints the program between passes, for compile
completion.py     completion in shells
text.py           repl and fmt; the interpreter itself is in repl/
sampling.py       sample: datasets of random programs
checkpoints.py    huggingface: GPT-2 checkpoints
exploring.py      explore: the HTML page
playground.py     playground: the web server
drawing.py        figure and draw
compressing.py    compress and sweep
twinning.py       twin: natural models; twin_table.py shows their training
zoo_listing.py    zoo: the programs of the zoo; zoo_screen.py prints them
learn.py          learn: the puzzles; learn_screen.py prints them
lab.py            lab: the laboratory; lab_running.py runs methods and reports scores, lab_screen.py prints them,
                  lab_submissions.py checks and scores files
description.py    the sizes and components of a model, as data
screen.py         the same data and the residual stream, as text and tables
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from tracr.errors import TracrError, TracrWarning
from tracr.extras import missing

if TYPE_CHECKING:
    import typer

    from tracr.cli.inputs import read_tokens, read_vocabulary

    app: typer.Typer

__all__ = ["app", "main", "read_tokens", "read_vocabulary"]

LIBRARIES = ("lark", "rich", "safetensors", "tqdm", "typer")  # dependencies that `import tracr` does not load


@cache
def _commands() -> typer.Typer:
    """The commands, registered."""
    from tracr.cli.certifying import certify
    from tracr.cli.checkpoints import huggingface
    from tracr.cli.commands import app
    from tracr.cli.compressing import compress_program, sweep_programs
    from tracr.cli.drawing import draw, figure
    from tracr.cli.exploring import explore
    from tracr.cli.lab import lab
    from tracr.cli.learn import learn
    from tracr.cli.options import TOKENS
    from tracr.cli.playground import playground
    from tracr.cli.sampling import sample
    from tracr.cli.text import fmt, repl
    from tracr.cli.twinning import twin
    from tracr.cli.zoo_listing import list_zoo

    app.command("sample")(sample)
    app.command("explore", context_settings=TOKENS)(explore)
    app.command("figure", context_settings=TOKENS)(figure)
    app.command("draw", context_settings=TOKENS)(draw)
    for command in (repl, fmt):
        app.command()(command)
    app.command("playground")(playground)
    app.command("certify")(certify)
    app.command("huggingface")(huggingface)
    app.command("compress")(compress_program)
    app.command("sweep")(sweep_programs)
    app.command("twin")(twin)
    app.command("zoo")(list_zoo)
    app.command("learn")(learn)
    app.add_typer(lab, name="lab")
    return app


def __getattr__(name: str) -> Any:
    """Import `app`, `read_tokens` or `read_vocabulary` on first use: they need typer."""
    if name == "app":
        return _commands()
    if name in ("read_tokens", "read_vocabulary"):
        from tracr.cli import inputs

        return getattr(inputs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run the command line. Exits with status 0 on success, 1 on an error, 2 on wrong usage.

    Errors are printed in a few lines. `--debug`, anywhere before `--`, prints the traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal cannot show becomes an escape
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:]
    options = words[: words.index("--")] if "--" in words else words
    debug = "--debug" in options
    if debug:
        words.remove("--debug")
    with warnings.catch_warnings():
        warnings.simplefilter("always", TracrWarning)
        warnings.showwarning = lambda message, *_, **__: print(f"tracr: warning: {message}", file=sys.stderr)
        try:
            commands = _commands()
            from tracr.cli.completion import whole_words

            with whole_words():
                commands(words, prog_name="tracr")
        except Exception as error:
            if debug:
                raise
            print(f"tracr: {_describe(error)}", file=sys.stderr)
            sys.exit(1)


def _describe(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] in LIBRARIES:
        library = error.name.partition(".")[0]
        return f"this needs {library}, which is not installed: pip install {library}"
    if isinstance(error, ModuleNotFoundError) and (told := missing(error)):
        return str(told)
    if isinstance(error, TracrError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"internal error: {type(error).__name__}: {error}\n  hint: --debug shows where; please report it"
