"""The reproduction of bbn8333's first simulation, with few seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lasthop import library
from lasthop.publications.bbn8333.cases import GOODPUT, LFN, ORACLE, plain
from lasthop.publications.bbn8333.factors import FACTORS
from lasthop.publications.bbn8333.sim1 import STUDY
from lasthop.publications.study import factors
from lasthop.publications.study.published import Section
from lasthop.publications.study.reproduce import write
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict
from lasthop.stats import Estimate

SEEDS = 2
KEYS = [
    "publication",
    "experiment",
    "case",
    "metric",
    "unit",
    "published",
    "measured",
    "ci95",
    "runs",
]
CASE = Case(**ORACLE, **LFN, bit_error_rate=1.56e-5, errors="both", profile="ns2-2001")
CASE_KEYS = [
    "recovery",
    "eten",
    "rate_bps",
    "one_way_delay_s",
    "bit_error_rate",
    "errors",
    "profile",
]


def _short(cells: Iterable[Cell]) -> list[Cell]:
    return [replace(cell, settings={**cell.settings, "duration": "5 s"}) for cell in cells]


@pytest.fixture(scope="module")
def study() -> Study:
    """The experiment with runs of 5 s instead of 120 s: what becomes of runs is the same."""
    factors = STUDY.factors
    assert factors is not None
    shorter = replace(factors, cells=lambda factor: _short(factors.cells(factor)))
    return replace(STUDY, cells=lambda: _short(STUDY.cells()), factors=shorter)


@pytest.fixture(scope="module")
def measured(study: Study) -> Runs:
    """All runs: the report's stack, and today's."""
    return study.measure(seeds=SEEDS)


@pytest.fixture(scope="module")
def folder(study: Study, measured: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reproduction writes."""
    folder = tmp_path_factory.mktemp("sim1")
    write(study, folder, measured)
    return folder


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    """Its results."""
    loaded: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())
    return loaded


def test_every_row_has_the_format(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        finding = row["metric"] == "finding"
        more = ["claim", "where", "agrees", "verdict", "why"] if finding else []
        if row["published"] is not None:
            more += ["error_factor"] if finding else ["verdict", "error_factor"]
            assert row["error_factor"] == row["measured"] / row["published"]
        assert list(row) == KEYS + more
        assert (row["publication"], row["experiment"]) == ("bbn8333", "sim1")
        assert row["runs"] == SEEDS
        if finding:
            words = {True: "holds", False: "differs", None: "undecided"}
            assert row["verdict"] == words[row["agrees"]]
            assert row["claim"]
            assert row["why"]
        else:
            assert list(row["case"]) == CASE_KEYS
            lo, hi = row["ci95"]
            assert lo <= row["measured"] <= hi


def test_every_point_is_there(rows: list[dict[str, Any]]) -> None:
    # Rates times error rates with enough errors, and none at all; delays; directions.
    cells = (4 + 4 + 5) * 3 * 2
    # The stack of today is run over the networks of the figures alone, and not with forward ETEN.
    modern = (5 + 5 + 4) * 2
    recoveries, etens, forward = 2, 3, 3
    goodputs = [row for row in rows if row["metric"] == "goodput_bps"]
    ratios = [row for row in rows if row["metric"] == "ratio"]
    assert len(goodputs) == recoveries * (cells * (etens + forward) + modern * etens)
    assert len({json.dumps(row["case"]) for row in goodputs}) == len(goodputs)
    assert len(ratios) == recoveries * (cells * (etens - 1 + forward) + modern * (etens - 1))
    for row in goodputs:
        case = row["case"]
        expected_errors = case["rate_bps"] * 120 * case["bit_error_rate"]
        assert expected_errors == 0 or expected_errors >= 25
        assert 0 < row["measured"] <= case["rate_bps"]
    assert {row["case"]["profile"] for row in goodputs} == {"ns2-2001", "modern"}


def test_published_numbers_stand_beside_the_measured(rows: list[dict[str, Any]]) -> None:
    published = {
        tuple(row["case"][key] for key in CASE_KEYS[:4]): row["published"]
        for row in rows
        if row["metric"] == "ratio" and row["published"] is not None
    }
    assert published == {
        ("sack", "oracle", 1e8, 0.32): 3.5,
        ("sack", "backward", 1e8, 0.32): 3.0,
        ("reno", "oracle", 1e8, 0.32): 4.0,
        ("reno", "backward", 1e8, 0.32): 2.4,
        ("sack", "backward", 1e8, 0.01): 7.0,
    }


def test_every_statement_is_a_row(rows: list[dict[str, Any]]) -> None:
    stated = library.published("bbn8333")["sim1"]
    claims = [statement["claim"] for statement in stated["statement"]]
    assert [row["claim"] for row in rows if row["metric"] == "finding"] == claims


def test_a_difference_is_explained_by_one_factor(folder: Path, rows: list[dict[str, Any]]) -> None:
    explained = json.loads((folder / "explanations.json").read_text())
    assert {e["variation"] for e in explained} == {factor.id for factor in FACTORS}
    for row in rows:
        differs = row["metric"] == "finding" and row["agrees"] is False
        if differs and row["published"] is not None:
            assert "all else equal" in row["why"]
    for factor in FACTORS:
        assert len(factor.settings) + factor.clean_return == 1


def test_the_report_holds_everything(folder: Path, rows: list[dict[str, Any]]) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")

    class Links(HTMLParser):
        """Collects what a browser would fetch, and ids."""

        def __init__(self) -> None:
            super().__init__()
            self.fetched: list[str] = []
            self.ids: list[str] = []
            self.figures = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.figures += tag == "svg"
            for name, value in attrs:
                if name == "id" and value:
                    self.ids.append(value)
                if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                    self.fetched.append(value)

    page = Links()
    page.feed(text)
    assert page.fetched == []
    assert not re.search(r"url\((?!#)|@import|<script", text)
    assert len(page.ids) == len(set(page.ids))
    # Figures 4, 5 and 6; all networks, both directions; single factors; today's stack.
    assert page.figures == 7
    referred = set(re.findall(r'(?:xlink:href="#|href="#|url\(#)([^")]+)', text))
    assert referred <= set(page.ids)
    plain = re.sub(r"\s+", " ", text.replace("&#39;", "'"))
    for row in rows:
        if row["metric"] == "finding":
            assert row["why"] in plain


def test_equal_runs_make_equal_files(
    study: Study, measured: Runs, folder: Path, tmp_path: Path
) -> None:
    write(study, tmp_path, measured)
    for name in ("results.json", "explanations.json", "report.html"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def _runs(gain: float, seeds: int) -> Runs:
    luck = [(0.98, 1.0, 1.02, 1.0)[seed % 4] for seed in range(seeds)]
    return Runs({CASE: {GOODPUT: [gain * a for a in luck]}, plain(CASE): {GOODPUT: [*luck[::-1]]}})


@pytest.mark.parametrize(
    ("gain", "seeds", "verdict"),
    [
        (3.5, 20, Verdict.HOLDS),
        (3.5, 19, Verdict.UNDECIDED),
        (3.5, 3, Verdict.UNDECIDED),
        (5.5, 20, Verdict.DIFFERS),
        (1.8, 20, Verdict.DIFFERS),
        (5.5, 4, Verdict.DIFFERS),
    ],
)
def test_verdicts_follow_the_runs_and_nothing_else(
    gain: float, seeds: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = {
        "id": "a-ratio",
        "claim": "Three and a half times.",
        "where": "here",
        "effect_of": "eten",
        "metric": "ratio",
        "kind": "about",
        "runs": 1,
        "value": 3.5,
        "case": {key: CASE[key] for key in CASE_KEYS if key != "profile"},
    }
    monkeypatch.setattr(Study, "published", Section((), [stated]))
    varied = {factor.id: _runs(3.5, seeds) for factor in FACTORS}
    runs = Runs(_runs(gain, seeds).found, varied)
    (found,) = STUDY.judge(runs)
    assert found.verdict is verdict
    assert ("where single runs give it" in found.why) is (verdict is Verdict.DIFFERS)
    assert ("all else equal" in found.why) is (verdict is Verdict.DIFFERS)
    assert ("About 20 runs a cell" in found.why) is (verdict is Verdict.UNDECIDED)
    assert found.measured is not None
    assert found.measured.value == pytest.approx(gain, rel=1e-3)
    assert found.factor is not None
    assert found.factor.value == pytest.approx(gain / 3.5, rel=1e-3)


def test_explanations_say_which_side_of_the_published_value_a_factor_leads_to() -> None:
    def move(index: int, value: float) -> factors.Moved:
        moved, baseline = Estimate(value, value, value, 9), Estimate(5.5, 5.4, 5.6, 9)
        return factors.Moved(FACTORS[index], moved, (value * 0.9, value * 1.1), baseline)

    names = [factor.name for factor in FACTORS]
    text = factors.explain(3.5, [move(0, 1.8), move(1, 5.5), move(2, 9.0)])
    assert f"With {names[0]}" in text
    assert "lies between the two" in text
    assert f"Away from it: {names[2]} (9.00)" in text
    assert f"No clear effect: {names[1]}." in text
    assert "where single runs give it" in factors.explain(3.5, [move(0, 3.4)])
    assert "nearer, but not there" in factors.explain(3.5, [move(0, 4.9)])
    assert "No single factor" in factors.explain(3.5, [move(0, 9.0)])
