"""The tables of bench/results, where they are read: in the README and in the pages of the book.

python bench/pages.py                  writes them anew, between the comments that name them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import tables

ROOT = Path(__file__).resolve().parent.parent
#: What stands around a table: `<!-- table: NAME -->`, and `<!-- table ends -->`. For other parts of
#: pages that are written by a program, there is another word in place of "table".
PLACE = r"^<!-- {word}: (?P<name>\S+) -->\n(?P<text>(?:(?!<!-- {word}).*\n)*?)<!-- {word} ends -->$"


def pages() -> Iterator[Path]:
    """All pages that may have tables."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def with_tables(page: str, by_name: Mapping[str, str], word: str = "table") -> str:
    """The text of a page with its tables as they are by name.

    Raises `ValueError` for a name that is no table's, and for a comment without the other.
    """

    def place(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in by_name:
            raise ValueError(f"there is no {word} {name!r}")
        return f"<!-- {word}: {name} -->\n\n{by_name[name]}\n\n<!-- {word} ends -->"

    text, places = re.subn(PLACE.format(word=word), place, page, flags=re.MULTILINE)
    if 2 * places != page.count(f"<!-- {word}"):
        raise ValueError(f"a comment about one {word} stands alone")
    return text


if __name__ == "__main__":
    by_name = dict(tables.all_tables())
    for path in pages():
        before = path.read_text()
        try:
            after = with_tables(before, by_name)
        except ValueError as error:
            raise SystemExit(f"{path.relative_to(ROOT)}: {error}") from None
        if after != before:
            path.write_text(after)
            print(path.relative_to(ROOT))
