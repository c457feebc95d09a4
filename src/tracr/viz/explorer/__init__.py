"""The explorer: one HTML file that runs a model and its program, and shows how the one computes the other.

page.py       the page, and what to do with it: save, open, show in a notebook
data.py       everything the page knows of a model, as JSON
listing.py    the program, a line for every s-op and selector
lambdas.py    lambdas as they were written
explorer.js   the page's script, built from `web/` in the repository (`make bundle`); do not edit
"""

from tracr.viz.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
