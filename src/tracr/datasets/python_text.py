"""Values and functions as Python text that evaluates to them."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import importlib
import math
from types import ModuleType
from typing import Any

from tracr.errors import ExpressionError
from tracr.rasp.functions import Comparison, function_name

__all__ = ["Imports", "UnprintableError", "function_text", "value_text"]


class UnprintableError(ExpressionError):
    """A program with a function or a value that cannot be written as Python text."""


class Imports:
    """The names a text uses, by module."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, module: str, name: str) -> bool:
        """Import `name` from `module`; false if it already is a name of another module or a built-in."""
        taken = name == "rasp" or hasattr(builtins, name)
        return not taken and self._names.setdefault(name, module) == module

    @property
    def names(self) -> set[str]:
        """All imported names."""
        return {"rasp", *self._names}

    def lines(self) -> list[str]:
        """The import statements."""
        modules: dict[str, list[str]] = {"tracr.rasp": ["rasp"]}
        for name, module in self._names.items():
            modules.setdefault(module, []).append(name)
        return [f"from {module} import {', '.join(sorted(modules[module]))}" for module in sorted(modules)]


def value_text(value: object, where: str) -> str:
    """A constant as text.

    >>> value_text(("a", 1, (True, None)), "")
    "('a', 1, (True, None))"
    """
    if value is None or type(value) in (bool, int, str, bytes) or (type(value) is float and math.isfinite(value)):
        return repr(value)
    if type(value) is tuple:
        inner = ", ".join(value_text(item, where) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is frozenset:
        return f"frozenset([{', '.join(sorted(value_text(item, where) for item in value))}])"
    raise UnprintableError(
        f"{where}: the value {value!r} of type {type(value).__qualname__} cannot be written as Python text",
        hint="use str, int, float, bool, None, bytes, and tuples and frozensets of them",
    )


def function_text(function: Any, where: str, imports: Imports) -> str:
    """A function as text: a name that can be imported, or the constructor call of a dataclass.

    >>> from tracr.rasp.random_functions import Table
    >>> function_text(Table((("a", 1),), None), "", Imports()), function_text(str.upper, "", Imports())
    ("Table((('a', 1),), None)", 'str.upper')
    """
    if isinstance(function, Comparison):
        return f"rasp.{function}"
    if dataclasses.is_dataclass(function) and not isinstance(function, type):
        name = _imported(type(function), imports)
        if name is not None and all(field.init for field in dataclasses.fields(function)):
            values = [getattr(function, field.name) for field in dataclasses.fields(function)]
            return f"{name}({', '.join(_argument(value, where, imports) for value in values)})"
    name = None if isinstance(function, enum.Enum) else _imported(function, imports)
    if name is None:
        raise UnprintableError(
            f"{where}: the function {function_name(function)} cannot be written as Python text",
            hint="use an operator, a def at the top of a module that can be imported, or a frozen dataclass with "
            "__call__ instead of a lambda or a function inside another",
        )
    return name


def _argument(value: Any, where: str, imports: Imports) -> str:
    return function_text(value, where, imports) if callable(value) else value_text(value, where)


def _imported(thing: Any, imports: Imports) -> str | None:
    """The name of `thing` after the imports; `None` if it cannot be imported."""
    name = getattr(thing, "__qualname__", None)
    owner = getattr(thing, "__objclass__", thing)
    module = getattr(owner, "__module__", None) or ""
    module = "operator" if module == "_operator" else module
    if not isinstance(name, str) or not module or module == "__main__":
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    if found is not thing or isinstance(found, ModuleType):
        return None
    if module != "builtins" and not imports.add(module, name.partition(".")[0]):
        return None
    return name
