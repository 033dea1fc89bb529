"""Configuration of the book, which `make book` builds into build/book."""

from importlib.metadata import version as version_of

project = "lasthop"
author = "The lasthop authors"
project_copyright = "2026, The lasthop authors"
version = release = version_of("lasthop")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"lasthop {release}"
autodoc_typehints = "description"
