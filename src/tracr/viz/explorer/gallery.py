"""A gallery: one page with several models, one of them or two side by side, with one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tracr.errors import TracrError
from tracr.ir.parameters import Parameters
from tracr.values import Value
from tracr.viz.explorer.data import FORMAT, weights_json
from tracr.viz.explorer.page import Explorer, explore

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["gallery"]

GALLERY, TWIN, VERSION = "tracr gallery", "tracr twin", 1


@runtime_checkable
class Trained(Protocol):
    """A twin (`tracr.natural`): weights trained to compute what a compiled model computes."""

    @property
    def teacher(self) -> DesignedModel:
        """The compiled model."""

    @property
    def architecture(self) -> Any:
        """Its sizes, and the functions between its matrices."""

    @property
    def parameters(self) -> Parameters:
        """Its weights."""

    @property
    def n_parameters(self) -> int:
        """The number of its weights."""

    @property
    def admitted(self) -> bool:
        """Whether every node and edge was measured to be the teacher's."""


def gallery(
    *models: Explorer | DesignedModel | Trained, tokens: Sequence[Value] | None = None, title: str = ""
) -> Explorer:
    """One page with several models, which share their input; two models start side by side.

    Args:
        models: pages (`model.explore(...)`), models, or twins; a twin is shown by its outputs and its attention.
        tokens: the first input, for those that are not pages yet.
        title: the heading.

    >>> import tracr
    >>> from tracr.rasp.programs import EXAMPLES
    >>> levels = [tracr.compile(EXAMPLES["hist"].program, "abc", 4, level=level) for level in (0, 2)]
    >>> gallery(*levels, tokens="abca").title
    'hist, level 0 and hist, level 2 · Tracr explorer'
    """
    if not models:
        raise TracrError("a gallery needs a model", hint="pass models or pages: gallery(a, b.explore())")
    pages = [page for model in models for page in _pages(model, tokens)]
    names = _different([page["name"] for page in pages], pages)
    pages = [{**page, "name": name} for page, name in zip(pages, names, strict=True)]
    title = title or (" and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more")
    data = {"format": GALLERY, "version": VERSION, "name": title, "pages": pages}
    return Explorer(f"{title} · Tracr explorer", data)


def _pages(model: Explorer | DesignedModel | Trained, tokens: Sequence[Value] | None) -> list[dict[str, Any]]:
    if isinstance(model, Explorer):
        return [model.data] if model.data["format"] == FORMAT else list(model.data["pages"])
    if isinstance(model, Trained):
        return [_twin_data(model, tokens)]
    return [explore(model, tokens).data]


def _different(names: list[str], pages: list[dict[str, Any]]) -> list[str]:
    """Names that tell the pages apart: with the level, then with a number."""
    if len(set(names)) < len(names) and len({page.get("level") for page in pages}) > 1:
        names = [
            f"{name}, level {page['level']}" if "level" in page else name
            for name, page in zip(names, pages, strict=True)
        ]
    again = [names[:place].count(name) + 1 for place, name in enumerate(names)]
    return [name if number == 1 else f"{name} ({number})" for name, number in zip(names, again, strict=True)]


def _twin_data(twin: Trained, tokens: Sequence[Value] | None) -> dict[str, Any]:
    teacher = explore(twin.teacher, tokens).data
    design = twin.architecture
    return {
        "format": TWIN,
        "version": VERSION,
        "name": f"twin of {teacher['name']}",
        "description": "",
        "trained": "trained, and admitted as a twin" if twin.admitted else "trained, and not admitted as a twin",
        "teacher": teacher,
        "sizes": {"layers": design.layers, "d_model": design.width, "parameters": twin.n_parameters},
        "layer_norm": design.layer_norm,
        "activation": design.activation,
        "weights": weights_json(twin.parameters),
    }
