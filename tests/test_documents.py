"""The documents say what the kept results say."""

from pathlib import Path

import tables

ROOT = Path(__file__).resolve().parent.parent


def test_the_readme_says_what_the_results_say() -> None:
    """`python bench/tables.py` writes the measured part anew."""
    assert (ROOT / "README.md").read_text() == tables.readme()


def test_every_table_of_the_book_has_been_measured() -> None:
    """A table without a result would be an empty promise."""
    for name, text in tables.all_tables():
        assert "Not measured" not in text, name
