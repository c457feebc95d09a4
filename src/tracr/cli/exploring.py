"""`tracr explore`: writes the page that explains a model, or several models side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.inputs import read_tokens
from tracr.cli.options import Causal, Input, MaxLen, MaxMemory, Name, Program, Tokens, Vocab, With, Without, numbers
from tracr.cli.options import Level as OneLevel
from tracr.cli.sources import ZOO, Found, GivenOptions, compiled, find, input_of, switches, usual_input
from tracr.cli.textual import is_textual

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.viz.explorer import Explorer

__all__ = ["explore"]

TWIN_FILE, MODEL_FILE = "twin.json", "model.json"

Levels = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Several levels in one page, such as 0,2 or 0-2.", show_default=False),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="VARIABLE=VALUES",
        help="Patch a variable, one value for each token (is_x=True,False): the original and the patched model in one "
        "page. May be repeated.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The page to write; by default NAME.html.", show_default=False),
]


def explore(
    program: Program,
    tokens: Tokens = None,
    words: Input = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: OneLevel = None,
    levels: Levels = None,
    changes: Set = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    output: Output = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the explorer page of PROGRAM, one HTML file.

    The page runs PROGRAM and its transformer and shows how the transformer computes it. The page works without a
    network and needs no other file. TOKENS are the input it starts with.

    Further programs in place of TOKENS, --levels and --set give a page with several models, side by side; the folder of
    a twin gives one with the compiled model and the twin. Then --input is the input.

    Example: tracr explore sort 3 1 2 1 -o sort.html

    Example: tracr explore hist sort --vocab 1,2,3 --input 3,1,2
    """
    from tracr.cli.screen import waiting

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} must end in .html", param_hint="--output")
    if level is not None and levels is not None:
        raise typer.BadParameter("give --level or --levels, not both", param_hint="--levels")
    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    others = _further_programs(program, name, choice, tokens or []) if words is None else (tokens or [])
    given = [words] if words is not None else [] if others else (tokens or [])
    with waiting(f"compiling {', '.join([program, *others])}"):
        pages = [
            page
            for source in [program, *others]
            for page in _pages(source, name, choice, given, words is not None, levels, changes or [])
        ]
        path = _joined(pages).save(output or Path(f"{_file_name(pages)}.html"))
    typer.echo(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in any browser")
    if show:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def _pages(
    program: str,
    name: str | None,
    choice: GivenOptions,
    words: Sequence[str],
    one_word: bool,
    levels: str | None,
    changes: Sequence[str],
) -> list[Explorer]:
    """The pages of one program: one for each level; with changes, the original and the patched model."""
    if (Path(program) / TWIN_FILE).is_file():
        return [_of_twin(program, words, one_word)]
    found = find(program, name, choice, words)
    chosen = [replace(choice, level=level) for level in _levels(levels)] if levels else [choice]
    pages = []
    for options in chosen:
        model = compiled(found, options)
        tokens = _tokens(found, model, words, one_word)
        suffix = f", level {options.level}" if levels else ""
        pages.append(model.explore(tokens, name=f"{found.name}{suffix}", description=found.description))
        if changes:
            title = f"{found.name}{suffix}, patched"
            given = tokens if tokens is not None else _first_input(pages[-1], model)
            pages.append(model.explore(given, set=_changes(model, changes), name=title, description=found.description))
    return pages


def _tokens(found: Found, model: DesignedModel, words: Sequence[str], one_word: bool) -> Any:
    """The input that a page starts with; `None` for the page's own choice."""
    size = (model.options.vocab, model.program.lengths[1])
    return input_of(found, words, *size, one_word=one_word) if words else usual_input(found, *size)


def _first_input(page: Explorer, model: DesignedModel) -> list[Any]:
    return [model.options.vocab[code] for code in page.data["input"]]


def _changes(model: DesignedModel, given: Sequence[str]) -> dict[str, list[Any]]:
    """The variables to patch, with their values."""
    domains = {node.label: getattr(node.domain, "values", ()) for node in model.program.sops.values()}
    found = {}
    for text in given:
        label, equals, values = text.partition("=")
        if not equals or label not in domains:
            known = ", ".join(domains)
            raise typer.BadParameter(f"{text} is not VARIABLE=VALUES; the variables are {known}", param_hint="--set")
        found[label] = read_tokens([values], domains[label]) if domains[label] else list(map(float, values.split(",")))
    return found


def _levels(text: str) -> list[int]:
    from tracr.ir.options import LEVELS

    found = numbers(text, "--levels")
    for level in found:
        if level not in LEVELS:
            raise typer.BadParameter(f"{level} is not one of {', '.join(map(str, LEVELS))}", param_hint="--levels")
    return found


def _of_twin(folder: str, words: Sequence[str], one_word: bool) -> Explorer:
    """The compiled model and its twin."""
    import tracr
    from tracr.viz.explorer import gallery

    twin: Any = tracr.load(folder)
    name = Path(folder).name
    found = Found(name, model=twin.teacher)
    return gallery(twin.teacher, twin, tokens=_tokens(found, twin.teacher, words, one_word), title=name)


def _joined(pages: Sequence[Explorer]) -> Explorer:
    from tracr.viz.explorer import gallery

    return pages[0] if len(pages) == 1 else gallery(*pages)


def _file_name(pages: Sequence[Explorer]) -> str:
    """The names of the models, each without the characters that file names should not have if there are several."""
    first, *rest = (str(page.data["name"]) for page in pages[:2])
    return "-".join(re.sub(r"[^\w-]+", "_", name) for name in (first, *rest)) if rest else first


# Programs among the words


def _further_programs(program: str, name: str | None, choice: GivenOptions, words: Sequence[str]) -> list[str]:
    """The words that are programs, not tokens: all of them, or none."""
    named = [word for word in words if _is_program(word)]
    if not named or _are_tokens(program, name, choice, words):
        return []
    if len(named) < len(words):
        rest = ", ".join(word for word in words if word not in named)
        raise typer.BadParameter(
            f"{named[0]} is a program, and {rest} is not; give the input of several programs with --input"
        )
    return named


def _is_program(word: str) -> bool:
    from tracr.rasp.programs import EXAMPLES

    path, colon, _ = word.rpartition(":")
    file = path if colon and path.endswith((".rasp", ".py")) else word
    written = (is_textual(word) or file.endswith(".py")) and Path(file).is_file()
    saved = any((Path(word) / file).is_file() for file in (TWIN_FILE, MODEL_FILE))
    return word in EXAMPLES or word.startswith(ZOO) or written or saved


def _are_tokens(program: str, name: str | None, choice: GivenOptions, words: Sequence[str]) -> bool:
    """Whether all words are tokens of the first program."""
    if (Path(program) / TWIN_FILE).is_file():
        return False
    found = find(program, name, choice)
    vocab = found.model.options.vocab if found.model is not None else found.vocab or ()
    return set(words) <= set(map(str, vocab))
