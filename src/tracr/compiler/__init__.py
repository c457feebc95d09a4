"""The compiler, from a program to weights. `pipeline.py` lists its passes in order."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracr.compiler.compiling import compile_rasp_to_model

__all__ = ["compile_rasp_to_model"]


def __getattr__(name: str) -> Any:
    """Import `compile_rasp_to_model` when it is used: it needs the model, which needs the compiler's types."""
    if name == "compile_rasp_to_model":
        from tracr.compiler.compiling import compile_rasp_to_model

        return compile_rasp_to_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
