"""What an installed package does, as JSON: run with the interpreter of an environment that has it.

    python tools/installed.py

It runs programs of the zoo at all levels, and says whether the C kernel is there, which packages `import tracr` loads,
how long that takes beside `import numpy`, and how large the installed files are. `artefacts.py` compares wheels by it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("hist", "frac_prevs", "sort", "dyck1", "induction_head", "maximum", "rule_110")
TRIES = 5


def loaded() -> list[str]:
    """The packages that `import tracr` loads, other than Python's own."""
    script = "import sys, tracr; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return sorted(name for name in set(done.stdout.split()) - set(sys.stdlib_module_names) if name[0] != "_")


def seconds(module: str) -> float:
    """The shortest of some times to start Python and import a module."""
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", f"import {module}"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def answers() -> dict[str, list[str]]:
    """The answers to the shown input of some programs, at each level, and all decoded values of a run."""
    from tracr import zoo

    found = {}
    for name in PROGRAMS:
        for level in (0, 1, 2):
            shown = zoo.get(name).shown
            model = zoo.load(name, level)
            found[f"{name}@level{level}"] = [repr(model(shown)), repr(model.run(shown).decoded)]
    return found


def told() -> dict[str, Any]:
    """Everything."""
    import tracr
    from tracr.runtime.kernel import kernel

    folder = Path(tracr.__file__).parent
    return {
        "version": tracr.__version__,
        "folder": str(folder),
        "kernel": vars(kernel)["_kernel"] is not None,
        "loaded": loaded(),
        "import_ratio": round(seconds("tracr") / seconds("numpy"), 2),
        "installed_bytes": sum(path.stat().st_size for path in folder.rglob("*") if "__pycache__" not in path.parts),
        "answers": answers(),
    }


if __name__ == "__main__":
    print(json.dumps(told(), indent=1))
