"""The files that a user can keep: the explorer's page, the drawing, a GPT-2 checkpoint, a Python snippet."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tracr.model.compiled import CompiledModel
from tracr.playground.program import ReadProgram
from tracr.playground.replies import Reply
from tracr.playground.requests import ProgramRequest
from tracr.text.drawing import draw
from tracr.viz.explorer.page import explore

__all__ = ["download"]


def download(request: ProgramRequest, found: ReadProgram, model: CompiledModel) -> Reply:
    """The file of the kind that the request names."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", found.name).strip("_") or "program"
    suffix, kind, make = KINDS[request.kind]
    return Reply(200, make(found, model), kind, f"{stem}{suffix}")


def _page(found: ReadProgram, model: CompiledModel) -> bytes:
    """The explorer's page, with the verdict of the checker."""
    return explore(model, found.shown, name=found.name).html.encode()


def _svg(found: ReadProgram, model: CompiledModel) -> bytes:
    page = explore(model, found.shown, name=found.name, certified=False).data
    tokens = [model.options.vocab[number] for number in page["input"]]
    return draw(found.program, tokens, causal=model.options.causal).svg.encode()


def _gpt2(found: ReadProgram, model: CompiledModel) -> bytes:
    """The checkpoint's folder as a zip file."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="tracr-") as parent:
        folder = Path(parent) / "gpt2"
        model.save_pretrained(folder)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(folder).as_posix())
    return packed.getvalue()


SNIPPET = """import tracr

SOURCE = {source}

module = tracr.parse(SOURCE, vocab={vocab!r}, max_seq_len={max_len})
model = module.compile({name!r}, {vocab!r}, {max_len}, level={level}, causal={causal})
print(model({tokens!r}))
model.explore({tokens!r}, name={name!r}).save({page!r})
"""


def _python(found: ReadProgram, model: CompiledModel) -> bytes:
    """A script that compiles and runs the same program."""
    page = explore(model, found.shown, name=found.name, certified=False).data
    return SNIPPET.format(
        source=_literal(found.source),
        name=found.name,
        vocab=list(found.vocab),
        max_len=found.max_len,
        level=model.options.level,
        causal=model.options.causal,
        tokens=[model.options.vocab[number] for number in page["input"]],
        page=f"{re.sub(r'[^A-Za-z0-9_]+', '_', found.name)}.html",
    ).encode()


def _literal(text: str) -> str:
    """A text as a Python literal, over several lines if that is safe.

    >>> print(_literal("a = 1;\\nb = 2;"))
    \"\"\"
    a = 1;
    b = 2;
    \"\"\"
    """
    plain = all(character.isprintable() or character == "\n" for character in text)
    if not plain or "\\" in text or '"""' in text or text.endswith('"'):
        return repr(text)
    return f'"""\n{text.strip()}\n"""'


KINDS: Mapping[str, tuple[str, str, Callable[[ReadProgram, CompiledModel], bytes]]] = {
    "page": (".html", "text/html; charset=utf-8", _page),
    "svg": (".svg", "image/svg+xml", _svg),
    "gpt2": ("_gpt2.zip", "application/zip", _gpt2),
    "python": (".py", "text/x-python; charset=utf-8", _python),
}
"""The end of the file's name, its media type, and its content."""
