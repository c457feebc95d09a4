"""The cases of a checkout of InterpBench."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from examining import Given, failing

NAME = "InterpBench"
PACKAGE = "circuits_benchmark"
CASES = Path(PACKAGE) / "benchmark" / "cases"
BASES = {"benchmark_case": "BenchmarkCase", "tracr_benchmark_case": "TracrBenchmarkCase"}


class Absent:
    """In the place of every other class of InterpBench: cases name them in annotations."""

    def __class_getitem__(cls, _: object) -> type[Absent]:
        return cls


class AbsentModule(ModuleType):
    """A module of InterpBench that is not needed to build programs; it has every name."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class AbsentModules(MetaPathFinder, Loader):
    """Finds the modules of InterpBench outside `circuits_benchmark.benchmark`: they need PyTorch and more."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        outside = fullname.startswith(f"{PACKAGE}.") and fullname.split(".")[1] != "benchmark"
        return ModuleSpec(fullname, self, is_package=True) if outside else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run."""


class PlainCase:
    """What a case says about its program; the defaults are InterpBench's, lengths with BOS."""

    def get_program(self) -> Any:
        raise NotImplementedError

    def get_vocab(self) -> set[Any]:
        raise NotImplementedError

    def get_max_seq_len(self) -> int:
        return 10

    def supports_causal_masking(self) -> bool:
        return True


def recognised(folder: Path) -> bool:
    """Whether a folder is a checkout of InterpBench."""
    return (folder / CASES).is_dir()


def programs(folder: Path) -> Iterator[Given]:
    """Its cases, by number. A case that cannot be loaded is one whose program cannot be built."""
    with _stand_ins(folder):
        for path in sorted((folder / CASES).glob("case_*.py"), key=_number):
            try:
                case = _loaded(path)
                vocab, length = tuple(sorted(case.get_vocab(), key=repr)), case.get_max_seq_len() - 1
            except (Exception, SystemExit) as error:  # a library that it needs may be missing
                yield failing(path.stem, error)
            else:
                yield Given(path.stem, case.get_program, vocab, length, case.supports_causal_masking())


def _number(path: Path) -> tuple[int, str]:
    digits = re.search(r"\d+", path.stem)
    return (int(digits[0]) if digits else sys.maxsize, path.stem)


def _loaded(path: Path) -> Any:
    """An instance of the class that a file defines."""
    name = f"{PACKAGE}.benchmark.cases.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
    (kind,) = [one for one in found if issubclass(one, PlainCase)]
    return kind()


@contextmanager
def _stand_ins(folder: Path) -> Iterator[None]:
    """InterpBench's own packages without their imports, `PlainCase` as the class of all cases, nothing of the rest."""
    before = dict(sys.modules)
    root, inner = ModuleType(PACKAGE), ModuleType(f"{PACKAGE}.benchmark")
    root.__path__ = [str(folder / PACKAGE)]
    inner.__path__ = [str(folder / PACKAGE / "benchmark")]
    made = {root.__name__: root, inner.__name__: inner}
    for module, kind in BASES.items():
        stand_in = ModuleType(f"{inner.__name__}.{module}")
        setattr(stand_in, kind, PlainCase)
        setattr(inner, module, stand_in)
        made[stand_in.__name__] = stand_in
    root.benchmark = inner  # type: ignore[attr-defined]
    sys.modules.update(made)
    finder = AbsentModules()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in {*sys.modules} - {*before}:
            if name.partition(".")[0] == PACKAGE:
                del sys.modules[name]
