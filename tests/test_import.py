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


def test_import_loads_numpy_and_nothing_else() -> None:
    """Of third-party packages `import tracr` loads numpy only."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split()) - set(sys.stdlib_module_names)
    assert loaded <= {"tracr", "numpy"}
    assert "tracr" in loaded
