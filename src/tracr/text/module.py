"""A program read from text: its names and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import path as as_path
from tracr.arguments import text
from tracr.errors import Diagnostic, SourceError, VocabularyError
from tracr.model.compiling import compile
from tracr.rasp.elementwise import SOp
from tracr.text.places import Source
from tracr.text.runner import Runner, SessionSettings, read_file
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Module", "parse", "parse_file"]


class Module(Mapping[str, Any]):
    """The names a text defines; `module["y"]` is the last value of y, often an s-op to call, compile or draw."""

    def __init__(self, source: Source, runner: Runner, drawings: tuple[Any, ...]) -> None:
        self.source, self.drawings = source, drawings
        self.warnings: tuple[Diagnostic, ...] = tuple(runner.warnings)
        self.out = runner.out
        self._names = {name: value for name, value in runner.names.items() if name != "tokens"}
        self._tokens = runner.names.get("tokens")
        self._settings = runner.settings

    def __getitem__(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        if name == "tokens" and self._tokens is not None:
            return self._tokens
        from tracr.text.library import CONSTANTS, library

        known = {**library(), **CONSTANTS, "out": self.out}
        if name in known:
            return known[name]
        raise KeyError(f"{self.source.name} defines no {name!r}; it defines {', '.join(self._names) or 'nothing'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Module({self.source.name}: {', '.join(self._names)})"

    @property
    def programs(self) -> dict[str, SOp]:
        """The s-ops among the names."""
        return {name: value for name, value in self._names.items() if isinstance(value, SOp)}

    def compile(
        self, name: str = "", vocab: Iterable[Value] | None = None, max_seq_len: int | None = None, **options: Any
    ) -> CompiledModel:
        """Compile an s-op, by default the last one, to a transformer.

        Vocabulary and length default to those of the text's `set example`. The other options are those of
        `tracr.compile`.
        """
        program = self[name or next(reversed(self.programs), "out")]
        example = self.example
        if example is None and (vocab is None or max_seq_len is None):
            raise VocabularyError(
                f"{self.source.name} does not say which tokens its inputs have",
                hint='pass vocab and max_seq_len, or write set example "..." in the text',
            )
        known: list[Value] = example or []
        return compile(program, known if vocab is None else vocab, max_seq_len or len(known), **options)

    @property
    def example(self) -> list[Value] | None:
        """The tokens of the text's own `set example`, if it has one."""
        return list(self._settings.sop_example) if self._settings.chosen else None


def parse(
    source: str,
    *,
    vocab: Iterable[Value] | None = None,
    max_seq_len: int | None = None,
    name: str = "<rasp>",
    folder: str | Path | None = ".",
) -> Module:
    """Read and run a program in the textual RASP language.

    Args:
        source: the text.
        vocab: the tokens of the inputs. Every definition is checked on an example: "hello", the example of
            `set example`, or, if `vocab` is given, its first tokens.
        max_seq_len: the length of the longest input, which limits that example.
        name: the name of the text in messages.
        folder: where `load` looks for files; with `None` no file can be loaded.

    Raises a `SourceError` that shows the place. The text cannot execute Python code, and its computation is bounded.
    Precedence that is easily misread gives a `TracrWarning`.

    >>> module = parse('prev = aggregate(select(indices, indices - 1, ==), tokens, "^");')
    >>> module["prev"]("abc")
    ['^', 'a', 'b']
    """
    if not isinstance(source, str):
        raise SourceError(f"a program is a text, not {source!r}", hint="parse_file reads a file")
    folders = () if folder is None else (as_path("folder", folder, error=SourceError),)
    return _run(Source(source.removeprefix("\ufeff"), text("name", name)), folders, vocab, max_seq_len)


def parse_file(path: str | Path, *, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> Module:
    """Read and run a .rasp file; `load` looks in its folder, then in the current folder. Arguments as for `parse`."""
    path = as_path("path", path, error=SourceError)
    return _run(read_file(path), (path.parent, Path()), vocab, max_seq_len)


def _run(source: Source, folders: tuple[Path, ...], vocab: Iterable[Value] | None, max_seq_len: int | None) -> Module:
    runner = Runner(folders, SessionSettings() if vocab is None else SessionSettings.of(vocab, max_seq_len))
    drawings = tuple(event.value for event in runner.run(source) if event.what == "draw")
    return Module(source, runner, drawings)
