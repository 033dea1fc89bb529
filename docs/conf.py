"""Configuration of the book, which `make book` builds into build/book.

Every measured number in it comes from a file of bench/results: bench/pages.py writes the tables.
"""

import logging
from importlib.metadata import version as version_of

project = "lasthop"
author = "The lasthop authors"
project_copyright = "2026, The lasthop authors"
version = release = version_of("lasthop")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

# Notebooks are text, and run whenever the book is built: a mistake in one is a mistake of the book.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 60
# The notebooks' kernels have little to say that is news.
logging.getLogger("traitlets").setLevel(logging.ERROR)

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_title = f"lasthop {release}"
# What docstrings have in backticks.
default_role = "code"
autodoc_typehints = "description"
autoclass_content = "both"
autodoc_member_order = "bysource"
