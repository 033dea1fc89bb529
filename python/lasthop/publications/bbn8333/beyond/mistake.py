"""The penalty of mistaking congestion for corruption (bbn8333 §8.3, also §7.1)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import mean
from lasthop.publications.study.verdict import Check, above, below
from lasthop.publications.study.words import MARKED, SMALL, percent, phrase
from lasthop.scenario import Scenario
from lasthop.stats import jain

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/mistake"
MISTAKES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
WORDS: Mapping[Any, str] = {share: f"{100 * share:g}" for share in MISTAKES}
COMPETITORS = (1, 4, 8)
SEEDS, QUICK_SEEDS = 15, 1
#: Who errs: one flow beside others, or every flow of five.
ONE, ALL = "one", "all"
_FOUR = 4
_BOTTLENECK_BPS = 1.5e6
_OWN, _BYSTANDER = "mistaken", "bystander"


def _cell(who: str, competitors: int, share: float) -> Cell:
    flows = tomllib.loads(Scenario.load(SCENARIO).source)["flows"][: 1 + competitors]
    settings: dict[str, Any] = {}
    tcp = flows[0]["tcp"]
    if who == ALL:
        # Over a link of their own that is busy, too: half of it is the bystander's.
        settings = {"links.0.rate": "3 Mbit/s", "links.0.queue": "50 packets"}
        plain = flows[-1]["tcp"]
        flows = [{**flow, "from": _OWN, "tcp": tcp} for flow in flows]
        flows.append({"name": _BYSTANDER, "from": _OWN, "to": "left", "tcp": plain})
    for flow in flows:
        if "eten" in flow["tcp"]:
            flow["tcp"] = {**tcp, "eten": {"report": "oracle", "mistakes": share}}
    case = Case(
        recovery="sack",
        eten="oracle",
        rate_bps=_BOTTLENECK_BPS,
        mistaken=who,
        competitors=competitors,
        mistakes=share,
    )
    return Cell(case, SCENARIO, {**settings, "flows": flows}, SEEDS, QUICK_SEEDS)


def cells() -> list[Cell]:
    """One flow that errs beside others that do not, and five that all do."""
    beside = [_cell(ONE, n, share) for n in COMPETITORS for share in MISTAKES]
    return [*beside, *(_cell(ALL, _FOUR, share) for share in MISTAKES)]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """Who gets what, and what is dropped for it."""
    found: dict[str, list[float | None]] = {}

    def keep(metric: str, value: float | None) -> None:
        found.setdefault(metric, []).append(value)

    for (_,), run in rows.group_by("seed", maintain_order=True):
        rates = dict(zip(run["flow"], run["goodput_bps"], strict=True))
        keep("bystander_goodput_bps", rates.pop(_BYSTANDER, None))
        own = rates[_OWN]
        others = [rate for flow, rate in rates.items() if flow != _OWN]
        keep("goodput_bps", own)
        keep("others_goodput_bps", sum(others) / len(others))
        keep("share_of_fair", own * len(rates) / sum(rates.values()))
        keep("all_goodput_bps", sum(run["goodput_bps"]))
        keep("utilisation", sum(rates.values()) / _BOTTLENECK_BPS)
        keep("fairness", jain(list(rates.values())))
        keep("dropped_share", run["dropped"][0] / sum(run["segments"]))
    return found


_SHADES = (pictures.SKY, pictures.BLUE, pictures.BLACK)


def figure(runs: Runs) -> Figure:
    """Goodputs, fairness and drops over the share of drops that are mistaken."""
    lines = [
        draw.Line(f"beside {n}", {"mistaken": ONE, "competitors": n}, colour)
        for n, colour in zip(COMPETITORS, _SHADES, strict=True)
    ]
    all_err = draw.Line("all five err", {"mistaken": ALL}, pictures.ORANGE, "^")
    beside4 = {"mistaken": ONE, "competitors": 4}

    def panel(title: str, metric: str, words: str, **keys: Any) -> draw.Panel:
        return draw.Panel(title, {}, lambda runs, case: runs.mean(case, metric), words, **keys)

    together = {"scale": 1e3, "lines": [all_err]}
    rows = [
        [
            panel("The one that errs", "share_of_fair", "of a fair share", lines=lines),
            panel("Each of the others", "others_goodput_bps", "kb/s", scale=1e3, lines=lines),
            panel("Jain's fairness index", "fairness", "index", lines=lines, top=1.03),
        ],
        [
            panel(
                "Dropped, of all segments",
                "dropped_share",
                "%",
                scale=0.01,
                lines=[draw.Line("beside 4", beside4, pictures.BLUE), all_err],
            ),
            panel("All five err: a bystander", "bystander_goodput_bps", "kb/s", **together),
            panel("All five err: everything", "all_goodput_bps", "kb/s", **together),
        ],
    ]
    return draw.panels(runs, rows, "mistakes", "drops taken for corruption, %", WORDS)


def _few(runs: Runs) -> Answer:
    """What few mistakes do."""
    where = {"mistaken": ONE, "competitors": 4}
    none = runs.case(mistakes=0.0, **where)
    summary = []
    for share in (0.1, 0.5, 0.9, 1.0):
        case = runs.case(mistakes=share, **where)
        own = runs.ratio(case, none, "goodput_bps")
        others = runs.ratio(case, none, "others_goodput_bps")
        fairness = runs.mean(case, "fairness")
        index = "" if fairness is None else f"{fairness.value:.2f}"
        summary.append(
            f"{percent(share)}: own {phrase(own)}, others {phrase(others)}, index {index}"
        )
    case = runs.case(mistakes=0.1, **where)
    return Answer(
        "What does taking congestion for corruption cost a connection and the others?",
        "§8.3",
        None,
        "Goodput as a multiple of that without mistakes, beside four plain connections, and Jain's"
        f" index: {'; '.join(summary)}.",
        case,
        runs.ratio(case, none, "others_goodput_bps"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """Who gains, who pays, and whether the network collapses."""
    always = runs.case(mistaken=ONE, competitors=8, mistakes=1.0)
    share, others = runs.mean(always, "share_of_fair"), runs.mean(always, "others_goodput_bps")
    seldom = runs.case(mistaken=ONE, competitors=8, mistakes=0.1)
    mild = runs.mean(seldom, "share_of_fair")
    assert share is not None
    assert others is not None
    assert mild is not None
    return [
        _few(runs),
        Answer(
            "A sender to which every drop is reported as corruption takes much more than its"
            " share.",
            "§7.1",
            (decides := Check(share, above(1 + MARKED))).verdict,
            f"Beside eight it gets {phrase(share)} times a fair share, and each of the others"
            f" {units.rate(others.value)}; if it errs in one case of ten, {phrase(mild)} times.",
            always,
            share,
            effect_of="mistakes",
            criterion=decides.criterion,
        ),
        _collapse(runs),
    ]


def _collapse(runs: Runs) -> Answer:
    """Whether the total goodput falls if all connections err."""
    always = runs.case(mistaken=ALL, mistakes=1.0)
    never = always.but(mistakes=0.0)
    all_of_it = runs.ratio(always, never, "all_goodput_bps")

    def change(metric: str, scale: float, unit: str) -> str:
        before, after = (runs.mean(case, metric) for case in (never, always))
        if before is None or after is None:
            return "nothing"
        words = (units.significant(value.value / scale) for value in (before, after))
        return f"{' to '.join(words)} {unit}"

    return Answer(
        "If many senders err at once, the network collapses: it is busy with packets that are of"
        " no use.",
        "§7.1",
        (decides := Check(all_of_it, below(1 - SMALL))).verdict,
        "Five connections that err share their first link, 3 Mb/s, with a bystander that leaves it"
        " before the bottleneck of 1.5 Mb/s. If they take every drop for corruption instead of"
        " none,"
        f" the share of segments dropped goes from {change('dropped_share', 0.01, '%')}, the"
        f" bystander's goodput from {change('bystander_goodput_bps', 1e3, 'kb/s')}, and all"
        " goodput is"
        f" multiplied by {phrase(all_of_it)}; the bottleneck itself stays in use"
        f" ({change('utilisation', 0.01, '%')}). Their receive windows bound what they waste.",
        always,
        all_of_it,
        effect_of="mistakes",
        criterion=decides.criterion,
    )


STUDY = question(
    id="mistake",
    title="Congestion taken for corruption",
    asks="A sender that takes a congestion loss for corruption does not slow down. What does the"
    " mistake"
    " cost it, and what the others?",
    where="§8.3",
    method=(
        "An Oracle that errs: with a given probability it also notifies the source of a packet that"
        " a queue dropped, at the time when that packet could have been at the end of the link. No"
        " link corrupts packets, so that every notice is a mistake.",
        "One such connection beside 1, 4 or 8 that know no ETEN; all are SACK with a window of 100"
        " segments, a round trip of 140 ms, and one bottleneck of 1.5 Mb/s with a drop-tail queue"
        " of 50"
        " packets; 120 s.",
        "And five connections that all err, behind a first link of 3 Mb/s with such a queue that"
        " they"
        " share with one more, which knows no ETEN and does not cross the bottleneck.",
        "Fair is as much for each.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("goodput_bps", "bit/s", "own goodput, kb/s", 1e3),
        mean("others_goodput_bps", "bit/s", "each other's, kb/s", 1e3),
        mean("share_of_fair", "1", "of a fair share"),
        mean("fairness", "1", "Jain's index"),
        mean("utilisation", "1", "bottleneck used, %", 0.01),
        mean("dropped_share", "1", "dropped, %", 0.01),
        mean("bystander_goodput_bps", "bit/s", "bystander, kb/s", 1e3),
        mean("all_goodput_bps", "bit/s", "everything, kb/s", 1e3),
    ),
    figure=figure,
    caption="What each gets, how fair that is, and what is dropped.",
    answers=answers,
    keys={"mistaken": "who errs", "competitors": "others", "mistakes": "mistakes"},
)
