"""The documents say what the kept results and the sources say."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pages
import pytest
import reference
import tables

from lasthop import __version__

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def by_name() -> Mapping[str, str]:
    """All tables of the results."""
    return dict(tables.all_tables())


@pytest.mark.parametrize("page", list(pages.pages()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_says_what_the_results_say(page: Path, by_name: Mapping[str, str]) -> None:
    """`python bench/pages.py` writes the tables anew."""
    text = page.read_text()
    assert text == pages.with_tables(text, by_name)


@pytest.mark.parametrize(
    "page",
    [
        "<!-- table: a -->\n",
        "<!-- table: a -->\n<!-- table: a -->\n<!-- table ends -->\n",
        "<!-- table: a -->\n<!-- table ends -->\nmore\n<!-- table ends -->\n",
        "<!-- table: b -->\n<!-- table ends -->\n",
    ],
)
def test_a_page_with_half_a_place_or_an_unknown_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="table"):
        pages.with_tables(page, {"a": "| 1 |"})


def test_a_table_replaces_what_stood_in_its_place() -> None:
    page = "Before.\n\n<!-- table: a -->\n\n| old |\n\n<!-- table ends -->\n\nAfter.\n"
    assert pages.with_tables(page, {"a": "| 1 |"}) == page.replace("old", "1")


def test_the_reference_of_scenarios_is_made_of_the_schema() -> None:
    """`python docs/reference.py` writes it anew."""
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page()


def test_every_table_of_the_book_has_been_measured(by_name: Mapping[str, str]) -> None:
    """A table without a result would be an empty promise."""
    for name, text in by_name.items():
        assert "Not measured" not in text, name


def test_conformance_names_what_there_is() -> None:
    """Every path, function and test in the list of conformance is in the sources."""
    text = (ROOT / "docs" / "conformance.md").read_text()
    sources = {path: path.read_text() for path in ROOT.glob("crates/**/*.rs")}
    tests = set(re.findall(r"fn (\w+)\(", "".join(sources.values())))
    names = re.findall(r"`([^`\n]+)`", text)
    places = [name for name in names if re.fullmatch(r"[\w/]+\.rs(: \w+)?", name)]
    for place in places:
        path, _, function = place.partition(": ")
        path = path if path.startswith("crates/") else f"crates/tcp/src/{path}"
        assert ROOT / path in sources, place
        assert not function or f"fn {function}" in sources[ROOT / path], place
    claimed = [name for name in names if re.fullmatch(r"\w+", name)]
    assert [name for name in claimed if name not in tests] == []
    assert len(places) > 100
    assert len(claimed) > 100


@pytest.mark.parametrize("page", ["README.md", "python/README.md", "docs/python.md"])
def test_what_the_documents_show_of_python_works(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    names: dict[str, object] = {}
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    plt.close("all")
    assert len(blocks) > 0


def test_links_of_the_readme_lead_somewhere_and_the_packages_readme_has_none() -> None:
    """The package index shows a page without the repository's files."""
    links = re.findall(r"\]\(([^)#]*)[^)]*\)", (ROOT / "README.md").read_text())
    assert len(links) > 20
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link
    assert re.findall(r"\]\((?!https://)", (ROOT / "python" / "README.md").read_text()) == []


def test_every_version_is_that_of_the_sources() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert __version__ == version
