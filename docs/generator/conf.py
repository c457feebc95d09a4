"""The settings of Sphinx; `python -m docs.generator` runs it."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from docs.generator.api import MOCKED
from docs.generator.docstrings import colour_examples, process, show_colons, sign
from tracr.version import __version__

HERE = Path(__file__).parent

project = "Tracr"
copyright = "the authors of Tracr; Apache License 2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"Tracr {__version__}"
html_static_path = [str(HERE / "assets")]
html_extra_path = [str(HERE.parents[1] / "build/docs/copied")]
html_css_files = ["site.css"]
html_js_files = ["versions.js", "zoo-filter.js"]
html_logo = str(HERE.parent / "images/logo.svg")
html_favicon = str(HERE.parent / "images/logo.svg")
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it needs requests, which pages opened from disk may not make

myst_enable_extensions = ["attrs_inline"]
toc_object_entries_show_parents = "hide"
myst_heading_anchors = 4
myst_fence_as_directive: list[str] = []

default_role = "code"
autodoc_mock_imports = MOCKED
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python"]  # types of the same name in two modules


def setup(app: Sphinx) -> None:
    """Register what changes docstrings, before napoleon reads their sections, and what colours examples."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("autodoc-process-signature", sign)
    app.connect("doctree-read", colour_examples)
