"""Imports go one way: each line of `ORDER` uses only the lines above it, inside functions and for type checkers too.

The exceptions are two tables of methods (`tracr.model.methods`, `tracr.rasp.display`), which name functions further
down, and the paths that existing Tracr code imports, which are one line at the end.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracr
from tracr.model import methods
from tracr.model.compiled import CompiledModel
from tracr.model.run import Run
from tracr.model.verification import Verification
from tracr.rasp import display

pytestmark = pytest.mark.repository

ORDER = (
    "version caching installation",
    "errors",
    "spelling extras threads rational writing",
    "workers",
    "values",
    "arguments nearness",
    "rasp",
    "craft",
    "ir",
    "explaining",
    "runtime",
    "compiler.selectors",
    "compiler.frontend",
    "compiler.program",
    "compiler.lower",
    "compiler.circuit",
    "compiler.layers",
    "compiler.residual",
    "compiler.optimal",
    "compiler.search",
    "compiler.pipeline",
    "model",
    "text",
    "zoo",
    "ground_truth",
    "saving",
    "certificate",
    "adapters",
    "viz",
    "learn",
    "compress natural",
    "datasets",
    "loading",
    "graft",
    "lab",
    "tracr",
    "playground",
    "cli",
    "__main__",
    "COMPAT",
)
"""Modules and packages; those on one line do not use each other. `tracr` is the top package itself."""

COMPAT = [
    "transformer",
    "compiler",  # the package's own __init__
    "compiler.assemble",
    "compiler.basis_inference",
    "compiler.compiling",
    "compiler.craft_model_to_transformer",
    "compiler.lib",
    "compiler.nodes",
    "compiler.rasp_to_graph",
    "compiler.validating",
]
"""What existing Tracr code imports (docs/migrating.md): it may use everything, and nothing uses it."""

TABLES = {"tracr.model.methods": methods.METHODS, "tracr.rasp.display": display.METHODS}

COMPUTED = {
    "tracr",
    "tracr.adapters",
    "tracr.cli.completion",
    "tracr.datasets.python_text",
    "tracr.extras",
    "tracr.graft",
    "tracr.lab",
    "tracr.natural",
    "tracr.natural.exports",
    "tracr.rasp.rasp",
    "tracr.viz",
    *TABLES,
}
"""Modules that import by a name they compute, which this test cannot read: their own package, modules of names
for completion (the command line is last), or a user's module."""

ROOT = Path(tracr.__file__).parent


def sources() -> dict[str, str]:
    """The text of every module."""
    found = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(("tracr", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        found[name] = path.read_text(encoding="utf-8")
    return found


SOURCES = sources()
PACKAGES = {".".join(("tracr", *path.parent.relative_to(ROOT).parts)) for path in ROOT.rglob("__init__.py")}


LINES = {f"tracr.{name}": (line, name) for line, text in enumerate(ORDER) for name in text.split()}
LINES["tracr"] = LINES.pop("tracr.tracr")
LINES |= {f"tracr.{name}": LINES["tracr.COMPAT"] for name in COMPAT}


def place(module: str) -> tuple[int, str]:
    """The line a module is on, and its name there."""
    name = module
    while name not in LINES or (name in ("tracr", "tracr.compiler") and name != module):
        name = name.rpartition(".")[0]
        assert name, f"{module} is on no line of ORDER"
    return LINES[name]


def imported(module: str, text: str) -> Iterator[tuple[str, ast.AST]]:
    """Every module of ours that a module imports, or names in a string, and where."""
    parts = module.split(".") if module in PACKAGES else module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                base = [*parts[: len(parts) + 1 - node.level]] if node.level else []
                names = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
            case ast.Constant(value=str(value)):
                names = [name for name in [value.partition(":")[0]] if name != "tracr" and name in SOURCES]
            case _:
                continue
        for name in names:
            if name.partition(".")[0] == "tracr":
                yield name if name in SOURCES else name.rpartition(".")[0], node


def steps_up(module: str, text: str) -> set[str]:
    """The modules further down, or beside, that a module uses."""
    line, name = place(module)
    places = {target: place(target) for target, _ in imported(module, text)}
    return {target for target, (other_line, other) in places.items() if other != name and other_line >= line}


def test_every_module_is_on_a_line() -> None:
    """A new package has its place; and no line names what is not there."""
    for module in SOURCES:
        place(module)
    named = {name for line in ORDER for name in line.split()} - {"tracr", "COMPAT"}
    assert not {f"tracr.{name}" for name in (*named, *COMPAT)} - set(SOURCES)


def test_imports_go_one_way() -> None:
    """No module uses one further down, but the tables of methods."""
    found = {module: steps_up(module, text) for module, text in SOURCES.items() if module not in TABLES}
    assert {module: steps for module, steps in found.items() if steps} == {}


@pytest.mark.parametrize("module", TABLES)
def test_tables_name_only_what_they_call(module: str) -> None:
    """A table's module steps up to its own entries, and for type checkers to packages that its entries are in."""
    entries = {entry.partition(":")[0] for entry in TABLES[module].values()}
    tree = ast.parse(SOURCES[module])
    checked = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    types = {ast.dump(inner) for node in checked for inner in ast.walk(node)}
    line, name = place(module)
    for target, node in imported(module, SOURCES[module]):
        other_line, other = place(target)
        if other == name or other_line < line:
            continue
        if isinstance(node, ast.Constant):
            assert target in entries
        else:
            assert ast.dump(node) in types
            assert other in {place(entry)[1] for entry in entries}


@pytest.mark.parametrize("entry", sorted({entry for table in TABLES.values() for entry in table.values()}))
def test_every_entry_of_a_table_exists(entry: str) -> None:
    """The module can be imported and has the function."""
    module, _, function = entry.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_every_method_of_the_table_is_one() -> None:
    """Each is a method or property with a docstring (but what notebooks call), and calls its own entry."""
    classes = {"": CompiledModel, "Run": Run, "Verification": Verification}
    calls = set(
        re.findall(r'\bcall\("([\w.]+)"', "".join(t for m, t in SOURCES.items() if m.startswith("tracr.model.")))
    )
    assert calls == set(methods.METHODS)
    for name in methods.METHODS:
        kind, _, method = name.rpartition(".")
        found = getattr(classes[kind], method)
        assert found.__doc__ or method == "_repr_html_"


def test_modules_that_compute_what_they_import_are_known() -> None:
    """What this test cannot read is listed."""
    computed = {
        module
        for module, text in SOURCES.items()
        if "import_module" in text or "__import__" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
        if not isinstance(node.args[0], ast.Constant)
    }
    assert computed == COMPUTED


@pytest.mark.parametrize(
    ("module", "added", "target"),
    [
        ("tracr.rasp.base", "from tracr.compiler.pipeline import compile_program", "tracr.compiler.pipeline"),
        ("tracr.ir.graph", "def f():\n    from tracr import viz", "tracr.viz"),
        ("tracr.model.compiled", "if TYPE_CHECKING:\n    import tracr.viz.explorer", "tracr.viz.explorer"),
        ("tracr.model.run", "from ..saving import models", "tracr.saving.models"),
        ("tracr.model.verification", "importlib.import_module('tracr.viz.notebook')", "tracr.viz.notebook"),
        ("tracr.runtime.forward", "import tracr", "tracr"),
        ("tracr.compress.model", "from tracr.natural import saving", "tracr.natural.saving"),
        ("tracr.cli.sources", "from tracr.compiler.lib import make_hist", "tracr.compiler.lib"),
    ],
)
def test_a_step_up_is_found(module: str, added: str, target: str) -> None:
    """At the top, in a function, for type checkers, relative, by name, to the top package, sideways, to old paths."""
    found = steps_up(module, f"{SOURCES[module]}\n{added}\n") - steps_up(module, SOURCES[module])
    assert found == {target}


DOCS = Path(__file__).parents[1] / "docs"
PUBLIC = set(re.findall(r"^\| `(tracr[\w.]*)` \|", (DOCS / "public-api.md").read_text(encoding="utf-8"), re.M))
OLD = {f"tracr.{name}" for name in (*COMPAT, "craft.bases", "craft.vectorspace_fns", "craft.transformers")}


def test_public_modules_say_what_they_have() -> None:
    """Each module of docs/public-api.md exists; all but packages of modules have an `__all__` whose names exist."""
    assert len(PUBLIC) > 10
    for name in PUBLIC - {"tracr.rasp"}:
        module = importlib.import_module(name)
        for public in module.__all__:
            with contextlib.suppress(tracr.MissingExtra):  # a library that is not installed here
                assert hasattr(module, public)


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "extending.md"], ids=lambda page: page.name)
def test_docs_use_public_modules_only(page: Path) -> None:
    """What a reader copies from the documentation will stay."""
    found = re.findall(r"^ +(?:>>> )?(?:from (tracr[\w.]*) import|import (tracr[\w.]*))", page.read_text("utf-8"), re.M)
    assert {first or second for first, second in found} <= PUBLIC | OLD
