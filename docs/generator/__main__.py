"""Build the site: `python -m docs.generator [FOLDER]`; this version of it gets a folder of its name there."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.generator.links import report
from docs.generator.places import ROOT
from docs.generator.sources import write_sources
from docs.generator.versions import list_versions
from tracr.version import __version__

WORK = ROOT / "build/docs"
OPTIONS = ["-q", "-E", "-W", "--keep-going", "-j", "auto"]  # anew: Sphinx does not see changes of this package


def main(arguments: list[str]) -> int:
    """Write the sources, run Sphinx with warnings as errors, list the versions, check all links."""
    site = Path(arguments[0] if arguments else ROOT / "build/site").resolve()
    write_sources(WORK / "pages", WORK / "copied", WORK)
    folders = ["-c", str(Path(__file__).parent), "-d", str(WORK / "doctrees"), str(WORK / "pages")]
    if build_main([*OPTIONS, *folders, str(site / __version__)]):
        return 1
    list_versions(site)
    return report(site)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
