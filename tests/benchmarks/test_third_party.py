"""The scripts for programs of other projects, on small checkouts of the same shape, written here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "third_party" / "run.py"

CASE = """
from circuits_benchmark.benchmark import vocabs
from circuits_benchmark.benchmark.{module} import {base}
from circuits_benchmark.transformers.hooked import Batch
from tracr.rasp import rasp

class Helper:
    pass

class Case{number}({base}):
    def sample_data(self, count) -> (Batch, Batch["x"]):
        return [], []

    def get_program(self):
        return {program}

    def get_vocab(self):
        return vocabs.letters(3)

    def get_max_seq_len(self):
        return 5

    def supports_causal_masking(self):
        return {causal}
"""
HIST = "rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))"
RAISING = "rasp.Map(lambda x: 1 / 0, rasp.tokens)"

SAMPLER = """
from tracr.rasp import rasp

def sample(rng, program_length):
    program = rasp.tokens
    for _ in range(program_length):
        step = int(rng.integers(3))
        program = rasp.Map(lambda x, step=step: x + step, program)
    return program
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkout of each project."""
    folder = tmp_path_factory.mktemp("checkouts")
    benchmark = folder / "InterpBench" / "circuits_benchmark" / "benchmark"
    write(benchmark / "__init__.py", "raise ImportError('this needs PyTorch')\n")
    write(benchmark.parent / "transformers" / "hooked.py", "import a_library_that_is_not_installed\n")
    write(benchmark / "vocabs.py", "def letters(count):\n    return set('abc'[:count])\n")
    kinds = [("tracr_benchmark_case", "TracrBenchmarkCase"), ("benchmark_case", "BenchmarkCase")]
    for number, program in ((1, HIST), (7, HIST), (10, RAISING), (11, "rasp.tokens + missing")):
        module, base = kinds[number % 2]
        text = CASE.format(module=module, base=base, number=number, program=program, causal=number == 7)
        write(benchmark / "cases" / f"case_{number}.py", text)
    write(benchmark / "cases" / "case_12.py", "import a_library_that_is_not_installed\n")
    write(folder / "decompile" / "rasp_gen" / "sample" / "sample.py", SAMPLER)
    write(
        folder / "decompile" / "rasp_gen" / "dataset" / "lib.py", f"from tracr.rasp import rasp\nexamples = [{HIST}]\n"
    )
    double = "def make_double():\n    return rasp.Map(lambda x: 2 * x, rasp.tokens)\nprint(make_double())"
    results = {
        "successes": {
            "make_double": [double, double],
            "make_share": ["def make_share():\n    return rasp.Map(lambda x: 1 / x, rasp.tokens)"],
        },
        "failures": {"make_other": ["raise ValueError"]},
    }
    write(folder / "bench" / "results" / "full" / "evaluation.json", json.dumps(results))
    write(folder / "bench" / "results" / "notes.json", "[1]")
    write(folder / "RASP" / "RASP_support" / "rasplib.rasp", "same = select(tokens, tokens, ==);\n")
    write(folder / "RASP" / "paper.rasp", "hist = selector_width(select(tokens, tokens, ==));\nflip = indices + 1;\n")
    write(folder / "RASP" / "tests" / "broken_libs" / "x.rasp", "y = nothing_of_this_name;\n")
    write(folder / "RASP" / "more.rasp", "y = nothing_of_this_name;\n")
    (folder / "notes").mkdir()
    return folder


def run(*words: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, env=variables, check=False)


def test_counts(checkouts: Path) -> None:
    """Every project is recognised; its programs are built, compiled and compared, and the reasons can be listed."""
    done = run(str(checkouts), "--samples", "3", "--inputs", "20", "--list")
    assert done.returncode == 0, done.stderr
    told = {line.split(" (")[0]: line.partition(": ")[2] for line in done.stdout.splitlines() if line[0] != " "}
    assert told == {
        "InterpBench": "5 programs: 2 right, 1 refused, 2 not built",
        "RASP": "3 programs: 2 right, 1 not built",
        "TracrBench": "2 programs: 1 right, 1 refused",
        "decompile-tracr": "4 programs: 4 right",
    }
    reasons = [line.strip() for line in done.stdout.splitlines() if line[0] == " "]
    assert reasons[0].startswith("case_10: refused: ")
    assert "1 are in the zoo by their numbers: 1 with the same answers" in reasons
    assert "case_11: not built: NameError: name 'missing' is not defined" in reasons
    assert "case_12: not built: ModuleNotFoundError: No module named 'a_library_that_is_not_installed'" in reasons
    assert any(line.startswith("evaluation: make_share: refused: ") for line in reasons)


def test_a_case_that_is_not_the_program_of_its_number(tmp_path: Path) -> None:
    """The zoo says that InterpBench's case 2 reverses: a checkout in which it counts is a failure."""
    benchmark = tmp_path / "circuits_benchmark" / "benchmark"
    write(benchmark / "vocabs.py", "def letters(count):\n    return set('abc'[:count])\n")
    base = {"module": "benchmark_case", "base": "BenchmarkCase", "causal": False}
    write(benchmark / "cases" / "case_2.py", CASE.format(number=2, program=HIST, **base))
    write(benchmark / "cases" / "case_7.py", CASE.format(number=7, program=HIST, **base))
    done = run(str(tmp_path), "--inputs", "20")
    assert done.returncode == 1, done.stderr
    assert "2 programs: 2 right\n  2 are in the zoo by their numbers: 1 with the same answers" in done.stdout
    assert "case_2 as zoo:reverse: different: " in done.stdout


def test_a_folder_without_checkouts(tmp_path: Path) -> None:
    """Says what it looks for, and fails."""
    done = run(str(tmp_path))
    assert done.returncode == 2
    assert "no checkout of InterpBench, decompile-tracr, TracrBench, RASP" in done.stderr


WRONG = """
import sys
sys.path.insert(0, {folder!r})
import examining, tracr
from tracr.rasp import rasp
given = examining.Given("swapped", lambda: rasp.tokens, ("a", "b"), 3)
other = tracr.compile(rasp.Map(lambda x: "a", rasp.tokens), "ab", 3)
outcome = examining._compared(given, rasp.tokens, other, 50)
print(outcome.kind, examining.counted([outcome, outcome]))

def endless():
    while True:
        pass

print(examining.examine(examining.Given("endless", endless, ("a",), 1), 1, 1, 1))
"""


def test_wrong_and_endless_programs() -> None:
    """The comparison sees a model of another program; a program that does not end is stopped."""
    done = subprocess.run(
        [sys.executable, "-c", WRONG.format(folder=str(SCRIPT.parent))], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "wrong {'wrong': 2}",
        "Outcome(name='endless', kind='too slow', detail='more than 1 s')",
    ], done.stderr
