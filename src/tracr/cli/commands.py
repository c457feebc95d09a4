"""The commands of `tracr` and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.compiling import compile_program
from tracr.cli.options import (
    TOKENS,
    Causal,
    Dtype,
    Json,
    Level,
    MaxLen,
    MaxMemory,
    Name,
    Program,
    Tokens,
    Vocab,
    With,
    Without,
    print_json,
)
from tracr.cli.sources import GivenOptions, compiled, find, input_of, saved_twin, some_tokens, switches
from tracr.errors import TracrError
from tracr.nearness import ANSWER, same_value

if TYPE_CHECKING:
    pass

__all__ = ["app"]

app = typer.Typer(
    help="Compile RASP programs into transformers, run them and look inside.",
    epilog="The exit status is 1 after an error and 2 after wrong usage. --debug works anywhere on the line. "
    "--install-completion makes the Tab key of bash, zsh and fish complete commands, programs and values of options.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from tracr import __version__

        typer.echo(f"tracr {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile RASP programs into transformers, run them and look inside."""


@app.command("list")
def list_programs(as_json: Json = False) -> None:
    """List the programs of the library.

    Each has default tokens and a default length. The other commands compile it for others with --vocab and --max-len.
    The column "only for" says which tokens a program needs; if it is empty, the program takes any tokens.
    """
    from tracr.cli.description import as_json as value_json
    from tracr.cli.screen import show_list
    from tracr.rasp.programs import EXAMPLES

    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "description": example.description,
                    "vocab": [value_json(token) for token in example.vocab],
                    "max_len": example.max_seq_len,
                    "right_for": example.right_for,
                }
                for name, example in EXAMPLES.items()
            ]
        )
        return
    show_list([(name, e.description, e.vocab, e.max_seq_len, e.right_for) for name, e in EXAMPLES.items()])


@app.command("passes")
def list_passes(as_json: Json = False) -> None:
    """List the passes and options of the compiler.

    The passes are in the order they run; the options change how passes work. --with and --without switch the options,
    and the passes that are not always on. `tracr compile --print-after` takes any pass.
    """
    from tracr.cli.screen import show_passes
    from tracr.compiler.pipeline import PIPELINE
    from tracr.ir.switches import OPTIONS

    rows: list[dict[str, object]] = [
        {"name": one.name, "kind": "pass", "level": one.level, "switches": [*one.switches], "does": one.does}
        for one in PIPELINE
    ]
    rows += [
        {"name": name, "kind": "option", "level": one.level, "switches": [name], "does": one.does}
        for name, one in OPTIONS.items()
    ]
    if as_json:
        print_json(rows)
    else:
        show_passes(rows)


app.command("compile")(compile_program)


@app.command(context_settings=TOKENS)
def run(
    program: Program,
    tokens: Tokens = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    as_json: Json = False,
) -> None:
    """Run the model of PROGRAM and the interpreter on TOKENS.

    Example: tracr run frac_prevs x a c x
    """
    from tracr.cli.description import as_json as value_json
    from tracr.cli.description import columns_json, expected_outputs, in_short
    from tracr.cli.screen import show_run, waiting

    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    found = find(program, name, choice, tokens or [])
    given = some_tokens(tokens, program, found, "run")
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
    words = input_of(found, given, model.options.vocab, model.program.lengths[1])
    decoded = model(words)
    got = decoded if isinstance(decoded, dict) else {model.outputs[0].name: decoded}
    expected = expected_outputs(model, words)
    if found.textual and not causal:
        expected = {output: found.program(words) for output in expected}
    agree = all(same_value(b, a, ANSWER) for name in got for a, b in zip(got[name], expected[name], strict=True))
    if as_json:
        columns = {"model": columns_json(got), "interpreter": columns_json(expected)}
        print_json({"name": found.name, "tokens": list(map(value_json, words)), **columns, "agree": agree})
    else:
        typer.echo(f"{found.name}: {found.description}" if found.description else found.name)
        typer.echo(f"{in_short(model)}\n")
        show_run(words, got, expected)
    if not agree:
        raise TracrError("the model and the interpreter disagree", hint="this is a bug in tracr; please report it")


@app.command(context_settings=TOKENS)
def show(
    program: Program,
    tokens: Tokens = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the whole stream after each sub-layer, not only the changes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the residual stream of PROGRAM on TOKENS.

    Prints, after each sub-layer, the directions of the variables it changed, and the interpreter's values.

    Example: tracr show frac_prevs x a c x --level 0
    """
    from tracr.cli.description import as_json as value_json
    from tracr.cli.screen import show_steps, waiting
    from tracr.model.stream import steps, variable_values

    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    found = find(program, name, choice, tokens or [])
    given = some_tokens(tokens, program, found, "show")
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
    words = input_of(found, given, model.options.vocab, model.program.lengths[1])
    stream, values = steps(model, model.run(words)), variable_values(model, words)
    if not as_json:
        show_steps(model, stream, words, values, everything)
        return
    print_json(
        {
            "name": found.name,
            "tokens": [value_json(token) for token in (model.options.bos, *words)],
            "residual": [dimension.label for dimension in model.residual],
            "interpreter": {label: [value_json(value) for value in row] for label, row in values.items()},
            "sublayers": [
                {"name": step.name, "computes": list(step.computes), "stream": step.stream.tolist()} for step in stream
            ],
        }
    )


@app.command()
def info(
    program: Program,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    dtype: Dtype = None,
    as_json: Json = False,
) -> None:
    """Describe the model of PROGRAM: sizes, components and the verdict of the checker.

    Of a saved twin: its measurements, and its ground truth with a verdict for each node and edge.

    Example: tracr info sort --json
    """
    from tracr.cli.description import certificate_json, summary
    from tracr.cli.screen import show_info, waiting

    twin = saved_twin(program)
    if twin is not None:
        if as_json:
            print_json({"twin": repr(twin), "admission": str(twin.admission), **twin.ground_truth.to_json()})
        else:
            print(f"{twin!r}\n{twin.admission}\n\n{twin.ground_truth.show()}")
        return
    passes = switches(switched_on, switched_off)
    choice = GivenOptions(vocab, max_len, level, causal, passes=passes, max_memory=max_memory, dtype=dtype)
    found = find(program, name, choice)
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
    if as_json:
        print_json({**summary(model, found.name), "certificate": certificate_json(model)})
    else:
        show_info(model, found.name, found.description)


@app.command()
def verify(
    program: Program,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Compare all inputs if there are at most N, else a sample of N.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the sample.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare the model of PROGRAM with the interpreter.

    Compares all inputs or a sample. The exit status is 1 if they differ.

    Example: tracr verify sort --max-len 6
    """
    from tracr.cli.screen import waiting

    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    found = find(program, name, choice)
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
    result = model.verify(budget, seed=seed, progress=not as_json)
    if as_json:
        example = result.counterexample
        print_json(
            {
                "program": found.name,
                "agrees": bool(result),
                "inputs": result.inputs,
                "exhaustive": result.exhaustive,
                "errors": result.errors,
                "counterexample": None if example is None else str(example),
            }
        )
    else:
        typer.echo(f"{found.name}: {result}")
    if not result:
        raise typer.Exit(1)
