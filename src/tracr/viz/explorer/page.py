"""The explorer page: one HTML file that contains the script, the model and its program. It loads no other file."""

from __future__ import annotations

import html
import json
import random
import tempfile
import webbrowser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value
from tracr.viz.explorer.data import page_data
from tracr.viz.explorer.patches import patches_of
from tracr.writing import write_file, written_to

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["Explorer", "explore"]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'">
<title>{title}</title>
</head>
<body>
<noscript>This page runs a model: it needs JavaScript.</noscript>
<script type="application/json" id="tracr-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""
EXAMPLE_LENGTH, CANDIDATES = 12, 64
HEIGHT = 860  # the height of the frame in a notebook


@dataclass(frozen=True, eq=False)
class Explorer:
    """A page that explains a model: `save` it, `open` it in a browser, or display it in a notebook."""

    title: str
    data: dict[str, Any]

    @cached_property
    def html(self) -> str:
        """The page as text."""
        data = json.dumps(self.data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
        script = resources.files(__package__).joinpath("explorer.js").read_text(encoding="utf-8")
        title = html.escape(self.title).encode("ascii", "xmlcharrefreplace").decode()
        return PAGE.format(title=title, data=data, script=script)

    def save(self, path: str | Path) -> Path:
        """Write the page, completely or not at all; its folder must exist."""
        target = Path(path)
        write_file(target, self.html.encode())
        return target

    def open(self) -> Path:
        """Open the page in the browser, from a temporary file."""
        with written_to(Path("a temporary folder")):
            folder = Path(tempfile.mkdtemp(prefix="tracr-"))
        path = self.save(folder / "explorer.html")
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        return f"Explorer({self.title}: {len(self.html) / 1000:,.0f} kB; .save(path) writes it, .open() shows it)"

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(self.title)}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 1px solid #8884; border-radius: 8px"></iframe>'
        )


def explore(
    model: DesignedModel,
    tokens: Sequence[Value] | None = None,
    *,
    set: Mapping[str, Sequence[Any]] | None = None,
    name: str = "",
    description: str = "",
    certified: bool = True,
) -> Explorer:
    """The explorer page of a model. It starts with the input `tokens`, by default one that shows many values.

    It starts with the variables of `set` patched, as in `model.run(tokens, set=...)`. With `certified=False` the
    checker is not run, which takes most of the time, and the page shows no certificate.
    """
    given = _example(model) if tokens is None else tokens
    _, _, (real,) = model.vocabulary.encode([given])  # refuses a wrong input
    shown = list(given)[:real]
    name = name or model.outputs[0].name
    data = page_data(model, shown, name, description, certified)
    return Explorer(f"{name} · Tracr explorer", {**data, "patches": patches_of(model, shown, set)} if set else data)


def _example(model: DesignedModel) -> list[Value]:
    """An input with an output, with few `None` and many different values, and a rare output."""
    shortest, longest = model.program.lengths
    length, rng = max(shortest, min(longest, EXAMPLE_LENGTH)), random.Random(0)
    inputs = [rng.choices(model.options.vocab, k=length) for _ in range(CANDIDATES)]
    evaluation = evaluate_batch(model.program, inputs)
    columns = [evaluation.values(number) for _, number in model.program.outputs]
    outputs = [tuple(tuple(column[row]) for column in columns) for row in range(CANDIDATES)]
    often = Counter(outputs)

    def interest(row: int) -> tuple[int, ...]:
        nones = sum(output.count(None) for output in outputs[row])
        distinct = sum(len(set(output)) for output in outputs[row])
        return not evaluation.errors[row], -nones, distinct, -often[outputs[row]], len(set(inputs[row]))

    return inputs[max(range(CANDIDATES), key=interest)]
