"""The menu of the site: its sections, and their pages in order. Pages made at build time are listed too."""

from __future__ import annotations

__all__ = ["MENU", "toctrees"]

MENU: dict[str, list[str]] = {
    "Tutorial": [
        "tutorial",
        "language",
        "examples/tutorial",
        "examples/lesson",
        "examples/patching",
        "examples/laboratory",
        "examples/replacing",
    ],
    "How-to": [
        "installing",
        "recipes",
        "explorer",
        "figures",
        "playground",
        "teaching",
        "integrations",
        "huggingface",
        "sixteen-bits",
        "certificate",
        "variants",
        "compression",
        "compression/optimiser",
        "compression/shared-information",
        "compression/cost",
        "natural",
        "replacing",
        "injecting",
        "datasets",
        "lab",
        "lab-methods",
        "lab-features",
        "lab-answers",
        "lab-formats",
        "lab-report",
        "migrating",
        "extending",
        "site",
        "examples/index",
    ],
    "Reference": ["api/index", "zoo-index", "zoo", "semantics", "format", "lab-scores", "deprecation"],
    "Explanation": [
        "how-it-works",
        "ground-truth",
        "selectors",
        "optimiser",
        "scaling",
        "benchmarks/README",
        "lab/first-report/notes",
        "lab/features-study/notes",
        "lab/variables-study/notes",
        "architecture",
        "for-reviewers",
    ],
}


def toctrees(project: list[str]) -> str:
    """The menu in the notation of MyST; `project` are the pages on the project, such as the changelog."""
    return "".join(
        f"\n```{{toctree}}\n:caption: {title}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"
        for title, pages in {**MENU, "Project": project}.items()
    )
