"""What `import tracr` loads."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import numpy
before = set(sys.modules)
import tracr
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""

COMPILE = SCRIPT.replace(
    "import tracr\n",
    """import tracr
from tracr.rasp import programs
model = tracr.compile(programs.make_hist(), "abc", 4)
assert model("aab") == model.run("aab").decoded == [2, 2, 1]
assert model.verify()
""",
)


def loaded(script: str) -> set[str]:
    """The packages that a script loads, beside those of Python itself."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - set(sys.stdlib_module_names)


def test_import_loads_numpy_and_nothing_else() -> None:
    """Of third-party packages `import tracr` loads numpy only."""
    assert "tracr" in loaded(SCRIPT) <= {"tracr", "numpy"}


def test_compiling_does_not_load_the_solver_or_the_bounds() -> None:
    """Nothing that a compilation needs is in `compiler/optimal`."""
    script = COMPILE + 'assert not [name for name in sys.modules if name.startswith("tracr.compiler.optimal")]\n'
    assert "tracr" in loaded(script)


def test_compiling_running_and_verifying_load_nothing_else() -> None:
    """What the README says."""
    assert loaded(COMPILE) <= {"tracr", "numpy"}


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("lark", "typer", "rich", "click"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import tracr
from tracr.rasp import programs
model = tracr.compile(programs.make_hist(), "abc", 3, level=0)
small = tracr.compress(model, method="exact")
assert small("aab") == [2, 2, 1]
assert tracr.compress(model, 6, "pca").d_model == 6
import tracr.compress.paper, tracr.compress.sweep
from tracr.text import parse
try:
    parse("tokens;")
except tracr.MissingExtra as error:
    print(error)
"""


def test_a_machine_without_the_command_line_and_the_parser_compiles_and_compresses() -> None:
    """Only `.rasp` texts need lark, only the command line needs typer and rich; a missing one is named."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "this needs lark" in done.stdout
