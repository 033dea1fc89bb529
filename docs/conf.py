"""Configuration of the book, which `make book` builds into build/book.

Every measured number in it comes from a file of bench/results: the tables are made from those
files when the book is built.
"""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import tables  # noqa: E402

tables.write(ROOT / "docs" / "generated")

project = "lasthop"
author = "The lasthop authors"
project_copyright = "2026, The lasthop authors"
version = release = version_of("lasthop")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_title = f"lasthop {release}"
autodoc_typehints = "description"
