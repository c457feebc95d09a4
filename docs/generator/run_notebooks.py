"""Run the notebooks of examples/ and store what they show: `python -m docs.generator.run_notebooks [NAME ...]`.

The tests run them again, and compare the texts that they show with the stored ones.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbclient
import nbformat

from docs.generator.places import ROOT

__all__ = ["run_notebook"]

EXAMPLES = ROOT / "examples"


def run_notebook(path: Path) -> None:
    """Run a notebook in a kernel of its own and write it back with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(EXAMPLES)}}
    options = {"timeout": 600, "record_timing": False, "coalesce_streams": True}
    nbclient.NotebookClient(notebook, resources=resources, **options).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]  # progress bars, and paths
    notebook.metadata.language_info = {"name": "python"}  # not the version that ran it
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    for name in sys.argv[1:] or sorted(one.name for one in EXAMPLES.glob("*.ipynb")):
        print(name)
        run_notebook(EXAMPLES / name)
