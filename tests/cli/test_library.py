"""Every program of the library, for several vocabularies and lengths asked for on the command line.

The answer is compared with the task written in plain Python, not with the RASP interpreter: a program that is made for
another length or vocabulary agrees with its own interpreter, and is wrong all the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

import tracr
from tracr import zoo
from tracr.cli import app
from tracr.cli.sources import GivenOptions, compiled, find, input_of
from tracr.errors import TracrError, TracrWarning
from tracr.rasp.interpreter import evaluate
from tracr.rasp.programs import EXAMPLES, make_sort, make_sort_freq
from tracr.rasp.rasp import tokens

Xs = Sequence[Any]
TASKS = {name: zoo.get(name).answers for name in EXAMPLES}
ASKED: list[tuple[str | None, int | None]] = [
    (None, None),
    (None, 6),
    (None, 2),
    ("abx", 5),
    ("1,2,3", 6),
    ("-2.5,0,0.25,7", 5),
    ("2,5,9", 4),
    ("0,1", 7),
    ("ab()", 4),
    ("[100000, 100001, 5]", 4),
    ('["one", "two", 3]', 3),
]


def inputs(vocab: Xs, longest: int, count: int = 60) -> list[list[Any]]:
    """Random inputs, the longest among them, with few and with many different tokens."""
    rng = random.Random(0)
    lengths = [longest] * (count // 2) + [rng.randint(1, longest) for _ in range(count // 2)]
    some = [rng.choices(vocab, k=length) for length in lengths]
    different = [rng.sample(vocab, k=min(length, len(vocab))) for length in lengths[::4]]
    # chance gives few inputs that begin with a token of their own
    first = [[vocab[0], *rng.choices(vocab[1:], k=longest - 1)] for _ in range(8)] if len(vocab) > 1 else []
    equal = [[vocab[-1]] + [vocab[0]] * (longest - 1)]
    return some + different + first + equal


def same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and got is not None:
        return abs(got - wanted) < 1e-5
    return bool(got == wanted)


@pytest.mark.parametrize("name", EXAMPLES)
def test_programs_do_their_task_or_are_refused(name: str) -> None:
    """Whatever vocabulary and length are asked for: the task in plain Python, or an error."""
    answered = refused = 0
    for vocab, longest in ASKED:
        choice = GivenOptions(vocab, longest)
        try:
            found = find(name, choice=choice)
            model = compiled(found, choice)
        except TracrError:
            refused += 1
            continue
        chosen, length = model.options.vocab, model.program.lengths[1]
        assert length == longest or longest is None
        for xs in inputs(chosen, length):
            try:
                program = input_of(found, [json.dumps(xs)], chosen, length)
            except TracrError:
                assert name in ("sort_unique", "hist_bos")
                continue
            got, wanted = model(program), TASKS[name](xs, chosen)
            assert all(map(same, got, wanted)), (vocab, longest, xs, got, wanted)
            assert len(got) == len(wanted)
            answered += 1
    assert answered >= 100
    assert refused < len(ASKED) - 2


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("sort 2 1 1 1 1 1 --max-len 6", [1, 1, 1, 1, 1, 2]),
        ("sort_freq a b b c c c --max-len 6", ["c", "c", "c", "b", "b", "a"]),
        ("counter 7 8 --vocab 6,7,8,9", [8, 9]),
        ("sort 0.5 0.25 0.5 --vocab 0.25,0.5", [0.25, 0.5, 0.5]),
    ],
)
def test_run(words: str, answer: list[Any]) -> None:
    """As they are typed."""
    result = CliRunner().invoke(app, ["run", *words.split(), "--json"], catch_exceptions=False)
    (got,) = json.loads(result.output)["model"].values()
    assert got == answer


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sort a b --vocab ab", "needs a vocabulary of numbers"),
        ("nary_sequencemap 0 2 --vocab 0,1,2", "needs a vocabulary of 0 and 1"),
        ("counter 1 2 --vocab 1,2.5", "needs a vocabulary of whole numbers from 0 on"),
        ("sort_composite a 1 --vocab a,1", "needs a vocabulary of only numbers or only strings"),
        ("sort_unique 1 1", "needs inputs with no token twice"),
        ("hist_bos a b a", "needs inputs with a first token that does not come again"),
        ("sort 1 1 --vocab 1,1.0000000000000002", "rounding would make keys"),
    ],
)
@pytest.mark.parametrize("command", ["run", "show", "draw", "explore"])
def test_what_a_program_is_not_right_for_is_refused(command: str, words: str, message: str) -> None:
    """By every command that takes an input; the hint says what to do."""
    with pytest.raises(TracrError, match=message):
        CliRunner().invoke(app, [command, *words.split()], catch_exceptions=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_say_what_is_true_of_them(name: str) -> None:
    """An input to look at that is right, and whether the causal meaning is the same."""
    example = EXAMPLES[name]

    def same_causally(xs: Xs) -> bool:
        try:
            return evaluate(example.program, xs, causal=True) == evaluate(example.program, xs)
        except TracrError:  # the length of the input is not known
            return False

    assert example.shown
    assert set(example.shown) <= set(example.vocab)
    assert len(example.shown) <= example.max_seq_len
    example.check(example.shown)
    assert example.program(example.shown) == TASKS[name](list(example.shown), example.vocab)
    assert all(map(same_causally, inputs(example.vocab, example.max_seq_len))) == example.backward


def test_a_sort_is_an_error_past_its_length() -> None:
    """In the interpreter and in the compiler, which warns where it cannot tell that inputs lead there."""
    for program in (make_sort(tokens, tokens, max_seq_len=4, min_key=1), make_sort_freq(4), EXAMPLES["sort"].program):
        with pytest.raises(TracrError, match="inputs of up to 4 tokens: make it with a larger max_seq_len"):
            program([2, 1, 1, 1, 1, 1])
        with pytest.raises(
            (tracr.CompileError, TracrWarning), match="inputs of up to 4 tokens: make it with a larger max_seq_len"
        ):
            tracr.compile(program, (1, 2), 6)


def test_causal_attention_is_told() -> None:
    """A task of the whole input is another one where positions see only what came before."""
    run = CliRunner().invoke(app, ["run", "hist", "a", "a", "--causal"], catch_exceptions=False)
    assert "with --causal: computed from the position itself and those before" in run.output
    assert "--causal" not in CliRunner().invoke(app, ["run", "dyck1", "(", "--causal"], catch_exceptions=False).output


def test_what_the_command_line_makes_is_written_nowhere() -> None:
    """No line of the command line's own libraries stands in messages and in the ground truth."""
    found = find("sort", choice=GivenOptions("1,2", 3))
    assert {expr.origin for expr in compiled(found, GivenOptions("1,2", 3)).expressions} == {""}


def test_max_memory_is_passed_on() -> None:
    """A size with a unit or in bytes; anything else is refused with a sentence."""
    words = ["info", "hist", "--vocab", "abc", "--max-len", "6"]
    for size in ("500MB", "2GB", str(64 * 1024**2)):
        assert CliRunner().invoke(app, [*words, "--max-memory", size]).exit_code == 0
    refused = CliRunner().invoke(app, [*words, "--max-memory", "1kB"])
    assert isinstance(refused.exception, tracr.LimitError)
    assert "max_memory" in str(refused.exception)
    for size in ("much", "0", "-5", "2 pounds"):
        wrong = CliRunner().invoke(app, [*words, f"--max-memory={size}"])
        assert wrong.exit_code == 2
        assert "is not a size" in wrong.output
