"""Every script in examples/ runs by itself, in a fresh process, and shows what it is meant to show."""

import ast
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.hanging import HUNG

EXAMPLES = Path(__file__).parents[1] / "examples"
HEAVY = {"paper_compression": ("jax", "optax", "matplotlib")}
SCRIPTS = sorted(script for script in EXAMPLES.glob("*.py") if script.stem not in HEAVY)
TELLING = {
    "ablate": ["())(                    PTFF", "model and interpreter agree in 28 of 28 ablations"],
    "attention_patterns": ["selector 'follows', writes 'induction'", "[None, None, None, 'b', 'c']"],
    "compile_and_run": ["cabac  -> C A b A C", "disagree on 0 of 364 inputs"],
    "hide_the_basis": ["labels that a dimension follows:   0 of", "changed: 0 of 120"],
    "huggingface": ["a b c a    -> a b c a b c a b c a b", "9 6 3 0 None", "( { } ) None"],
    "paper_figures": ["frac_prevs.pdf: 9.2 by 3.5 inches", "shuffle_dyck2.pdf", "compiler_overview.pdf"],
    "in_jax": ["noise 1e-06    1000 of 1000 copies are right", "noise 0.001       0 of 1000 copies are right"],
    "in_onnx": ["())(   PTFF", "level 1)\nall 363 inputs compared, padded and unpadded: all agree"],
    "in_torch": ["level 1, changed weights)", "is_x before 0.0 1.0 0.0", "[0.0] on ['a']"],
    "in_transformer_lens": [
        "attn.0   1.00   writes induction",
        "hook_k_input   0.50   reads tokens:bos, tokens:pad, before",
    ],
    "look_inside": ["is_x               .   *1.00       .       .   *1.00", "(no-op)", "*0.33"],
    "my_method": ["mine    EdgeScores(auroc=1.0", "random  EdgeScores(auroc=0."],
    "my_sae": ["mine     f1 0.7", "null     f1 0.0", "ceiling  f1 1.00"],
    "replace_a_component": ["counts: better than every control", "if the head read aaaa -> 4 4 4 4"],
    "probe_ground_truth": ["accuracy of a linear probe", "hist2", "1.000*"],
}
NEEDS = {
    "huggingface": ["torch", "transformers"],
    "in_jax": ["jax"],
    "in_onnx": ["onnx", "onnxruntime"],
    "in_torch": ["torch"],
    "in_transformer_lens": ["torch", "transformer_lens"],
    "replace_a_component": ["torch"],
}

FRAMEWORKS = sorted({"matplotlib", "sklearn", *itertools.chain.from_iterable([*NEEDS.values(), *HEAVY.values()])})


def scripts() -> list[Any]:
    """The scripts; those that need a framework are slow."""
    return [
        pytest.param(script, id=script.stem, marks=[pytest.mark.slow] if script.stem in NEEDS else [])
        for script in SCRIPTS
    ]


def run(script: Path | str, *options: str) -> str:
    """The output of a script that has the package under test to import; warnings are errors."""
    path = os.pathsep.join(filter(None, [str(Path(tracr.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", str(script), *options]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=HUNG, env=environment, cwd=folder, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    """A new script needs a line in TELLING."""
    assert {script.stem for script in SCRIPTS} == set(TELLING)


@pytest.mark.parametrize("script", scripts())
def test_example_runs_and_tells(script: Path) -> None:
    """A script ends well and prints what its docstring promises."""
    if any(importlib.util.find_spec(module) is None for module in NEEDS.get(script.stem, [])):
        pytest.skip(f"needs {' and '.join(NEEDS[script.stem])}")
    output = run(script)
    for text in TELLING[script.stem]:
        assert text in output


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_examples_that_need_extras(name: str) -> None:
    """With their libraries they run as well; the paper's compression shortened."""
    for module in HEAVY[name]:
        pytest.importorskip(module)
    shorter = ("--method", "sgd", "--steps", "40") if name == "paper_compression" else ()
    output = run(EXAMPLES / f"{name}.py", *shorter)
    assert "frac_prevs" in output
    assert "sort_unique" in output
    assert ("40 steps are too few" in output) == (name == "paper_compression")


HELPS = """
import contextlib, runpy, sys
sys.modules.update(dict.fromkeys({frameworks!r}))  # None: cannot be imported
sys.argv[1:] = ["--help"]
for script in {scripts!r}:
    with contextlib.suppress(SystemExit):
        runpy.run_path(script, run_name="__main__")
    print("=====")
"""


def test_help_says_what_an_example_does() -> None:
    """At once, and where no framework is installed: its docstring, and its options if it has any."""
    every = sorted(EXAMPLES.glob("*.py"))
    output = run("-c", HELPS.format(frameworks=FRAMEWORKS, scripts=list(map(str, every))))
    for script, text in zip(every, output.split("=====\n")[:-1], strict=True):
        docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
        assert docstring is not None
        assert text.startswith("usage: "), script
        assert docstring in text, script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_is_short_and_says_what_it_does(script: Path) -> None:
    """A script is something to start from: a docstring, and at most 60 lines."""
    text = script.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert len(text.splitlines()) <= 60


def test_designed_and_actual_patterns_agree() -> None:
    """attention_patterns.py finds every head within rounding of its selector."""
    differences = re.findall(r"difference from the design: (\S+)", run(EXAMPLES / "attention_patterns.py"))
    assert len(differences) == 3
    assert max(map(float, differences)) < 1e-6


def test_probes_find_variables_where_the_labels_say() -> None:
    """probe_ground_truth.py: a probe is always right once the variable is stored, and not at the embedding."""
    lines = run(EXAMPLES / "probe_ground_truth.py").splitlines()
    stored = [cell for line in lines for cell in line.split() if re.fullmatch(r"[\d.]+\*", cell)]
    embedded = next(line.split()[1:] for line in lines if line.startswith("embed"))
    assert stored
    assert set(stored) == {"1.000*"}
    assert all(float(cell) < 0.9 for cell in embedded)
