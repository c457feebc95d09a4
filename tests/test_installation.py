"""`tracr-pypi`, which has the same folder: a sentence that helps, whichever package was installed last."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import tracr
from tracr.installation import files_replaced, shared_folder

ROOT = Path(__file__).parents[1]
REPLACED = ("", "rasp", "compiler", "craft", "transformer")  # packages whose __init__.py the original replaces

IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        getattr(module, module.__all__[0])  # some packages import on first use
    except Exception as error:
        print(name, type(error).__name__, "tracr-pypi" in str(error), isinstance(error, ImportError), sep="|")
    else:
        print(name, "imported", sep="|")
    for loaded in [known for known in sys.modules if known.startswith("tracr.")]:
        del sys.modules[loaded]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with this one."""
    site = tmp_path_factory.mktemp("site")
    for name in ("tracr", "tracr_check"):
        folder = Path(tracr.__file__).parents[1] / name
        shutil.copytree(folder, site / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    return site


@pytest.fixture(scope="module")
def overwritten(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a package with the layout of `tracr-pypi` was installed into it."""
    site = tmp_path_factory.mktemp("overwritten")
    shutil.copytree(installed / "tracr", site / "tracr")
    for package in REPLACED:
        (site / "tracr" / package / "__init__.py").write_text("")
    (site / "tracr" / "rasp" / "rasp.py").write_text("tokens = 'not ours'\n")
    (site / "tracr_pypi-1.0.0.dist-info").mkdir()
    return site


def python(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with these packages first, and no editable installation of this one (`-S` reads no .pth files)."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(np.__file__).parents[1])])}
    return subprocess.run(
        [sys.executable, "-S", *words], capture_output=True, text=True, env=variables, cwd=site.parent, check=False
    )


def public_modules() -> list[str]:
    """The modules of docs/public-api.md that are ours alone, and some that are not public."""
    listed = re.findall(r"^\| `(tracr\.[\w.]+)`", (ROOT / "docs" / "public-api.md").read_text(), re.MULTILINE)
    shared = ("tracr.rasp", "tracr.rasp.rasp", "tracr.rasp.causal_eval")  # the original has them too
    alone = ("tracr.runtime.uniform",)  # it uses none of the replaced files, nor tracr.errors
    return [
        *(name for name in listed if name not in (*shared, *alone)),
        "tracr.model.compiled",
        "tracr.loading",
        "tracr.cli",
    ]


def test_our_modules_say_that_their_files_were_replaced(overwritten: Path) -> None:
    """Every one of them, at import or first use, with the name of the other package; none fails in another way."""
    names = public_modules()
    assert len(names) > 20
    done = python(overwritten, "-c", IMPORTS, *names)
    assert done.stdout.splitlines() == [f"{name}|InstallationError|True|True" for name in names], done.stderr


def test_the_command_says_so_in_one_sentence(overwritten: Path) -> None:
    """Without a traceback, and with what to do."""
    done = python(overwritten, "-m", "tracr", "run", "sort", "3", "1", "2")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("tracr: tracr/__init__.py is missing or is not this package's")
    assert "hint: install this package again, with --force-reinstall --no-deps" in done.stderr


def test_files_removed_with_the_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uninstalling the package that was installed first removes `tracr/__init__.py`: then `tracr` has no content."""
    assert not files_replaced()
    monkeypatch.setitem(sys.modules, "tracr", types.ModuleType("tracr"))
    assert files_replaced()


def test_a_warning_where_this_package_was_installed_last(installed: Path) -> None:
    """It works; the warning says what uninstalling the other one would do."""
    script = "import tracr; print(tracr.zoo.load('reverse')('abc'))"
    alone = python(installed, "-c", script)
    assert (alone.returncode, alone.stderr) == (0, "")
    beside = installed / "tracr_pypi-1.0.0.dist-info"
    beside.mkdir()
    both = python(installed, "-c", script)
    beside.rmdir()
    assert both.stdout == alone.stdout == "['c', 'b', 'a']\n"
    assert "TracrWarning: tracr-pypi, the original Tracr, is installed in the same folder" in both.stderr


def test_other_packages_are_no_concern(tmp_path: Path) -> None:
    (tmp_path / "tracr-0.1.0.dist-info").mkdir()
    assert not shared_folder(tmp_path)
    assert not shared_folder(tmp_path / "missing")
