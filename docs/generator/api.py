"""The pages of the API reference: one for each module of docs/public-api.md."""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Mapping

from sphinx.ext.autodoc.mock import mock

from docs.generator.places import ROOT, places, relinked

__all__ = ["MOCKED", "api_pages", "public_modules"]

MOCKED = ["jax", "onnx", "onnxruntime", "optax", "ortools", "pyarrow", "ray", "sklearn", "torch", "transformer_lens"]
"""Libraries that need not be installed to document the modules that import them."""

LONGEST_VALUE = 80
PAGE = "docs/public-api.md"
ROW = re.compile(r"^\| `(tracr[\w.]*)` \| (.*) \|$", re.MULTILINE)


def public_modules() -> dict[str, str]:
    """The public modules and what they contain."""
    return dict(ROW.findall((ROOT / PAGE).read_text(encoding="utf-8")))


def api_pages() -> dict[str, str]:
    """The text of each page by its path, and of the page that lists them."""
    modules = public_modules()
    listing = relinked((ROOT / PAGE).read_text(encoding="utf-8"), PAGE, places())
    listing = ROW.sub(lambda row: row[0].replace(f"`{row[1]}`", f"[`{row[1]}`]({row[1]}.md)", 1), listing)
    names = "\n".join(modules)
    with mock(MOCKED):
        pages = _pages(modules)
    return {"api/index.md": f"{listing}\n```{{toctree}}\n:hidden:\n\n{names}\n```\n", **pages}


def _pages(modules: dict[str, str]) -> dict[str, str]:
    """A page for each module. What several modules offer is documented on the first page, and linked on the others."""
    homes: dict[int, str] = {}
    for name in modules:
        for member, value in _members(name).items():
            homes.setdefault(id(value), f"{name}.{member}")
    return {f"api/{name}.md": _page(name, contents, homes) for name, contents in modules.items()}


def _page(name: str, contents: str, homes: Mapping[int, str]) -> str:
    told = re.sub(r"\]\((?=[\w-]+\.md)", "](../", contents)
    parts = [f"# {name}\n\n{told[0].upper()}{told[1:]}.", _directive("automodule", name)]
    elsewhere = []
    for member, value in _members(name).items():
        home = homes[id(value)]
        if home == f"{name}.{member}":
            parts.append(_documented(home, value, homes))
        else:
            elsewhere.append(f"{{py:obj}}`{home}`")
    if elsewhere:
        parts.append(f"Also here, and documented on other pages: {', '.join(elsewhere)}.")
    return "\n\n".join(parts) + "\n"


def _members(name: str) -> dict[str, object]:
    """The names that a module offers, without modules, which have pages of their own."""
    module = importlib.import_module(name)
    found = {member: getattr(module, member) for member in getattr(module, "__all__", ())}
    return {member: value for member, value in found.items() if not isinstance(value, types.ModuleType)}


def _documented(name: str, value: object, homes: Mapping[int, str]) -> str:
    """The directive that documents a name."""
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return _directive(kind, name, ":members:", *_inherited(value, homes))
    if callable(value) and hasattr(value, "__name__"):
        return _directive("autofunction", name)
    return _directive("autodata", name, *([":no-value:"] if len(repr(value)) > LONGEST_VALUE else []))


def _inherited(documented: type, homes: Mapping[int, str]) -> list[str]:
    """Options that show the members of internal bases as the class's own, and name documented bases."""
    bases = documented.__mro__[1:]
    apart = [base for base in bases if id(base) in homes or not base.__module__.startswith("tracr")]
    shown = [":show-inheritance:"] if any(id(base) in homes for base in apart) else []
    return [f":inherited-members: {', '.join(base.__name__ for base in apart)}", *shown]


def _directive(kind: str, name: str, *options: str) -> str:
    return "\n".join(["```{eval-rst}", f".. {kind}:: {name}", *(f"   {one}" for one in options), "```"])
