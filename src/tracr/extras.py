"""Optional libraries: imported when used, with an error that says how to install a missing one."""

from __future__ import annotations

import importlib
from typing import Any

from tracr.errors import MissingExtra

__all__ = ["EXTRAS", "missing", "need"]

EXTRAS = {
    "datasets": "parquet",
    "jax": "jax",
    "matplotlib": "viz",
    "networkx": "graph",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "optax": "jax",
    "ortools": "opt",
    "prompt_toolkit": "repl",
    "pyarrow": "sweep",
    "pyvene": "lab-compare",
    "ray": "sweep",
    "sklearn": "lab",
    "starlette": "web",
    "torch": "torch",
    "transformer_lens": "lens",
    "transformers": "hf",
    "uvicorn": "web",
}
"""Each optional library, by the name it is imported by, with the extra that installs it."""


def need(module: str, extra: str = "") -> Any:
    """Import a module, or say which extra installs it; without an extra, the module is a dependency of tracr itself."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise  # the module is installed, but one of its own dependencies is not
        command = f"pip install 'tracr[{extra}]'" if extra else f"pip install {error.name}"
        raise MissingExtra(f"this needs {error.name}", hint=command) from None


def missing(error: ModuleNotFoundError) -> MissingExtra | None:
    """What to say about an import that failed, if it is of an optional library.

    >>> str(missing(ModuleNotFoundError("No module named 'jax.numpy'", name="jax.numpy")))
    "this needs jax\\n  hint: pip install 'tracr[jax]'"
    """
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return MissingExtra(f"this needs {library}", hint=f"pip install 'tracr[{EXTRAS[library]}]'")
