"""The pages of the API reference: one for each module of docs/public-api.md."""

from __future__ import annotations

import importlib
import re
import types

from sphinx.ext.autodoc.mock import mock

from docs.generator.places import ROOT, places, relinked

__all__ = ["MOCKED", "api_pages", "public_modules"]

MOCKED = ["jax", "onnx", "onnxruntime", "optax", "ortools", "pyarrow", "ray", "sklearn", "torch", "transformer_lens"]
"""Libraries that need not be installed to document the modules that import them."""

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
    pages = {}
    for name, contents in modules.items():
        module = importlib.import_module(name)
        told = re.sub(r"\]\((?=[\w-]+\.md)", "](../", contents)
        parts = [f"# {name}\n\n{told[0].upper()}{told[1:]}.", _directive("automodule", name)]
        for member in getattr(module, "__all__", ()):
            value = getattr(module, member)
            if not isinstance(value, types.ModuleType):  # it has a page of its own
                home = homes.setdefault(id(value), name)
                there = f"See [{home}]({home}.md#{member.lower()})."
                parts.append(f"## {member}\n\n{_documented(name, member, value) if home == name else there}")
        pages[f"api/{name}.md"] = "\n\n".join(parts) + "\n"
    return pages


def _documented(module: str, name: str, value: object) -> str:
    """The directive that documents a name."""
    kind, options = "autodata", []
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        options = [":members:"]
    elif callable(value) and hasattr(value, "__name__"):
        kind = "autofunction"
    return _directive(kind, f"{module}.{name}", *options)


def _directive(kind: str, name: str, *options: str) -> str:
    return "\n".join(["```{eval-rst}", f".. {kind}:: {name}", *(f"   {one}" for one in options), "```"])
