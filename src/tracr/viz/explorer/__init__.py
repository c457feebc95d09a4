"""The explorer: one HTML file that runs a program and its model and shows how the model computes the program.

page.py         the page: save it, open it, show it in a notebook
gallery.py      a page with several models, side by side
data.py         the data of the page, as JSON; patches.py, the patches it starts with
listing.py      the program as text, one line for every s-op and selector
source_text.py  the place of an expression in a .rasp text; lambdas.py, the source text of lambdas
explorer.js     the page's script, built from `web/` in the repository (`make bundle`); do not edit
"""

from tracr.viz.explorer.gallery import gallery
from tracr.viz.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore", "gallery"]
