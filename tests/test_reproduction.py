"""`lasthop reproduce`: by which names, what it keeps, and what its tables say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import Command

import lasthop as package
from lasthop import UserError, lab, pictures, plots, publications
from lasthop.publications import Experiment
from lasthop.publications.study import runs
from lasthop.publications.study.kept import NAME, Kept
from lasthop.publications.study.published import Answer
from lasthop.publications.study.reproduce import show
from lasthop.publications.study.runs import Case, Cell
from lasthop.publications.study.study import Study, mean
from lasthop.publications.study.verdict import (
    Check,
    Kind,
    Published,
    Verdict,
    above,
    below,
    between,
    every,
    some,
)
from lasthop.publications.study.words import ends, interval
from lasthop.results import Sweep
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

KINDS = ("none", "backward", "oracle")


def cells() -> list[Cell]:
    """Three, of three runs each."""
    return [
        Cell(Case(eten=of), "demo", {"duration": "2 s", "flows.0.tcp.eten": of}, 3, 3)
        for of in KINDS
    ]


SWEPT = Study(
    publication="bbn8333",
    experiment="none",
    title="A small study",
    asks="",
    where="",
    method=(),
    cells=cells,
    collect=lambda rows: {"goodput_bps": rows["goodput_bps"].to_list()},
    measures=[mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3)],
    figures=(),
    keys={"eten": "ETEN"},
)


def observed(scenario: Scenario, seed: int) -> dict[str, float | None]:
    """The goodput of one run."""
    return {"goodput_bps": lab.run(scenario, seed=seed).rows["goodput_bps"][0]}


OBSERVED = replace(SWEPT, collect=None, observe=observed)


class Ends:
    """In the place of a function: counts its calls, and ends one as Ctrl-C does."""

    def __init__(self, of: Callable[..., object], at: int | None) -> None:
        self.of, self.at, self.calls = of, at, 0

    def __call__(self, *words: object, **named: object) -> object:
        """Calls it."""
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return self.of(*words, **named)


@pytest.mark.parametrize(
    ("study", "name", "at", "kept", "left"),
    [(SWEPT, "sweep", 2, 1, 2), (OBSERVED, "run", 6, 5, 4)],
    ids=["swept", "observed"],
)
def test_what_is_finished_is_kept_and_the_same_call_goes_on(
    study: Study,
    name: str,
    at: int,
    kept: int,
    left: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Experiment, "load", lambda _: study)
    function = getattr(lab, name)

    def reproduce(folder: str, at: int | None = None) -> int:
        monkeypatch.setattr(runs, "_COLLECTED", {})
        calls = Ends(function, at)
        monkeypatch.setattr(lab, name, calls)
        package.reproduce("bbn8333/sim1", tmp_path / folder, seeds=3, threads=1)
        return calls.calls

    assert reproduce("undisturbed") == kept + left
    expected = (tmp_path / "undisturbed" / "results.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        reproduce("ended", at)
    assert "the same command goes on" in capsys.readouterr().err
    part = tmp_path / "ended" / NAME
    assert [path.name for path in (tmp_path / "ended").iterdir()] == [NAME]
    assert len(part.read_text().splitlines()) >= 1 + kept - 1
    lines = len(part.read_text().splitlines()) - 1
    # As if the machine had lost its power in the middle of a line.
    with part.open("a") as file:
        file.write('["0123", {"good')
    with pytest.raises(KeyboardInterrupt):
        reproduce("ended", 2)
    assert len(part.read_text().splitlines()) == 1 + lines + 1
    assert reproduce("ended") == kept + left - lines - 1
    assert (tmp_path / "ended" / "results.json").read_bytes() == expected
    assert {path.name for path in (tmp_path / "ended").iterdir()} == {"results.json", "report.html"}
    # And once more, over its own files.
    assert reproduce("ended") == kept + left


def test_what_another_version_has_kept_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "load", lambda _: SWEPT)
    part = tmp_path / NAME
    part.write_text('{"lasthop": "0.0.1"}\n["x", {}]\n')
    with pytest.raises(UserError, match="another version of lasthop: remove it"):
        package.reproduce("bbn8333/sim1", tmp_path, seeds=3)
    assert part.read_text().startswith('{"lasthop": "0.0.1"}')


def test_two_processes_do_not_keep_runs_in_one_file(tmp_path: Path, lasthop: Command) -> None:
    """Not even a line that seems to be cut off is taken away: the other one is writing it."""
    part = tmp_path / NAME
    with Kept(tmp_path, "bbn8333/sim1") as kept:
        kept.put("0123", {"goodput_bps": [1.0]})
        with part.open("a") as file:
            file.write('["4567", {"good')
        before = part.read_bytes()
        done = lasthop("reproduce", "bbn8333/sim1", "--quick", "-o", tmp_path)
        assert done.returncode == 2
        assert f"another command runs this experiment, and is writing '{part}'" in done.stderr
        assert part.read_bytes() == before
    with Kept(tmp_path, "bbn8333/sim1") as kept:
        assert len(kept) == 1


def test_an_experiment_belongs_to_one_process_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is kept."""
    refused: list[str] = []

    def load(_: Experiment) -> Study:
        return replace(OBSERVED, observe=meanwhile)

    def meanwhile(scenario: Scenario, seed: int) -> dict[str, float | None]:
        with pytest.raises(UserError) as error:
            Kept(tmp_path, "bbn8333/sim1").hold()
        refused.append(str(error.value))
        return observed(scenario, seed)

    monkeypatch.setattr(Experiment, "load", load)
    package.reproduce("bbn8333/sim1", tmp_path, seeds=2, threads=1)
    assert len(refused) == 2 * len(KINDS)
    assert "another command" in refused[0]
    assert not (tmp_path / NAME).exists()


def test_where_nothing_was_kept_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "load", lambda _: SWEPT)
    monkeypatch.setattr(runs, "_COLLECTED", {})
    monkeypatch.setattr(lab, "sweep", Ends(lab.sweep, 1))
    with pytest.raises(KeyboardInterrupt):
        package.reproduce("bbn8333/sim1", tmp_path, seeds=3)
    assert list(tmp_path.iterdir()) == []
    # As a process that was killed leaves it.
    (tmp_path / NAME).touch()
    package.reproduce("bbn8333/sim1", tmp_path, quick=True)


def test_results_are_returned_and_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "load", lambda _: SWEPT)
    (done,) = package.reproduce("bbn8333/sim1", tmp_path, quick=True)
    assert (done.id, done.title, done.folder) == ("bbn8333/sim1", "A small study", tmp_path)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["case"]["eten"] for row in rows] == list(KINDS)
    page = (tmp_path / "report.html").read_text()
    # Errors are the same for all: nothing is damaged in 2 s.
    assert "runs alike" in page or " to " in page


@pytest.mark.parametrize(
    ("name", "first", "number"),
    [
        ("obanaik2003", "obanaik2003/fairness/slow", 12 + 6),
        ("obanaik2003/spep", "obanaik2003/spep/fig5.2", 6),
        ("koutsianas2007/fig4", "koutsianas2007/fig4.2", 3),
        ("koutsianas2007/fig4.9", "koutsianas2007/fig4.7", 1),
        ("bbn8333", "bbn8333/sim1", 8),
        ("bbn8333/", "bbn8333/sim1", 8 + 17),
        ("bbn8333/beyond/false", "bbn8333/beyond/false-echoes", 2),
        ("y", "yavatkar1994/table1", 11),
    ],
)
def test_any_beginning_of_names_is_a_name(name: str, first: str, number: int) -> None:
    found = publications.find(name)
    assert sorted(of.id for of in found)[0] == first or found[0].id == first
    assert len(found) == number
    assert len({of.id for of in found}) == number


def test_several_publications_have_a_folder_and_a_page_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a part of one has no page of the whole."""
    told = replace(SWEPT, cells=lambda: cells()[:1], outcome=lambda _: "It is so.")
    monkeypatch.setattr(Experiment, "load", lambda _: told)
    package.reproduce("obanaik2003", tmp_path, seeds=2)
    pages = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("report.html")}
    assert {"obanaik2003/spep/report.html", "obanaik2003/fairness/report.html"} <= pages
    assert "obanaik2003/spep/fig5.8/report.html" in pages
    assert len(pages) == 12 + 6 + 2
    assert not list(tmp_path.rglob(NAME))
    part = tmp_path / "part"
    package.reproduce("koutsianas2007/fig4", part, seeds=2)
    assert sorted(path.name for path in part.iterdir()) == ["fig4.2", "fig4.4", "fig4.7"]


def test_an_interval_without_width_says_why() -> None:
    assert interval(Estimate(2.0, 1.5, 2.5, 9)) == "2.00 [1.50, 2.50]"
    assert interval(Estimate(2.0, 2.0, 2.0, 1)) == "2.00 (one run)"
    assert interval(Estimate(2.0, 2.0, 2.0, 9)) == "2.00 (all 9 runs alike)"
    assert interval(Estimate(2.0, 1.9999, 2.0001, 9)) == "2.00 (± 0.0001)"
    assert ends(Estimate(math.inf, 2.0, math.inf, 9)) == "2.00 to …"


def test_criteria_are_in_words() -> None:
    effect = Estimate(2.0, 1.5, 2.5, 9)
    shown, other = Check(effect, above(1.01)), Check(effect, below(3))
    assert shown.criterion == "above 1.01"
    assert every([shown, shown]).criterion == "above 1.01 in all of 2"
    assert some([shown, other]).criterion == "above 1.01 or below 3 in 1 or more of 2"
    assert every([every([shown, shown]), shown]).criterion == (
        "above 1.01 in all of 2 or above 1.01 in all of 2"
    )
    assert every([shown]).criterion == "above 1.01"
    assert every([]).criterion == "no cell to compare"
    assert str(between(0.9, 1.1)) == "0.9 to 1.1"
    printed = Published(14.6, Kind.PRINTED, 0.1)
    assert printed.criterion == "13.87 to 15.33"
    assert replace(printed, runs=1).criterion == "13.87 to 15.33, or among our single runs"
    assert Published(3.0, Kind.ABOVE, runs=1).criterion == "above 3"


def test_the_criterion_stands_beside_every_verdict_in_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    answers = [
        Answer("It helps.", "§1", Verdict.HOLDS, "It did.", criterion="above 1.01 in all of 4"),
        Answer("Does it?", "§2", None, "Yes."),
    ]
    show(SWEPT, answers)
    printed = capsys.readouterr().out
    assert "verdict and criterion" in printed
    assert "above 1.01 in all of 4" in printed


def test_pictures_are_described(tmp_path: Path) -> None:
    with pictures.figure(4, 3) as figure:
        ax = figure.subplots()
        ax.plot([0, 1], label="cwnd")
        ax.set_xlabel("time, s")
        ax.set_ylabel("window, kB")
        ax.set_title("One & only")
        ax.legend()
    words = "One & only; window, kB over time, s; lines: cwnd."
    assert pictures.described(figure) == words
    assert "One &amp; only" in pictures.svg(figure, "x", "A <title>")
    assert "A &lt;title&gt;</title>" in pictures.svg(figure, "x", "A <title>")
    first = plots.save(figure, tmp_path / "x.svg").read_bytes()
    assert b"<title>One &amp; only;" in first
    assert plots.save(figure, tmp_path / "y.svg").read_bytes() == first


def test_a_dollar_begins_no_formula(scenario: Path, tmp_path: Path) -> None:
    swept = Sweep(package.sweep(scenario).rows)
    title = r"costs $\frac{1}{ and $2"
    with pictures.figure(4, 3) as figure:
        figure.subplots().set_title(pictures.text(title))
    assert title in (plots.save(figure, tmp_path / "x.svg").read_text())
    assert swept.rows.height == 24
