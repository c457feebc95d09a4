"""Makes the documentation site: `python -m docs.generator` (docs/site.md).

places.py     where each file of the repository is on the site; links between them
menu.py       the menu
sources.py    writes the sources of the site: the pages of docs/, and those made here:
                zoo_index.py    the index of the zoo
                api.py          a page for each public module
                notebooks.py    notebooks as pages
                scripts.py      the example scripts
                explorers.py    explorer pages inside pages
conf.py       the settings of Sphinx
versions.py   several versions beside each other
links.py      finds broken links and loads from elsewhere in the built site
"""
