"""What connections that resume do to others (koutsianas2007 §6.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.koutsianas2007.schemes import (
    CORRECTED,
    LINES,
    NAMES,
    RLCI,
    SHARED,
    STANDARD,
)
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, above, below, every, some
from lasthop.publications.study.words import NEGLIGIBLE, NOTHING, percent, phrase
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/after"
CONNECTIONS = (1, 2, 5, 10)
SEEDS, QUICK_SEEDS = 20, 2
#: When the phone arrives, and the length of the measurement after that.
BACK_S, AFTER_S = 15.0, 20.0
#: A run that ends there has all flows, but no effect of the arrival.
_UNTIL = "15.001 s"
#: No phone arrives; connections that are opened then instead of resumed.
ALONE, FRESH = "alone", "fresh"
ARMS = (ALONE, FRESH, STANDARD, RLCI, CORRECTED, SHARED)
_WORDS = {ALONE: "no arrival", FRESH: "opened afresh", **NAMES}
_LINES = (
    Line(_WORDS[ALONE], {"scheme": ALONE}, pictures.GREY, "x"),
    Line(_WORDS[FRESH], {"scheme": FRESH}, pictures.PURPLE, "v"),
    *(LINES[scheme] for scheme in (STANDARD, RLCI, CORRECTED, SHARED)),
)


def drawn(scheme: str, connections: int, run: int) -> Mapping[str, Any]:
    """The starts of a run: the same for all schemes."""
    dice = random.Random(f"after, run {run}")
    background = dice.uniform(0.0, 6.0)
    starts = [
        # Who opens afresh does so as soon as there is a way.
        BACK_S + 0.0005 if scheme == FRESH else dice.uniform(0.0, 1.0)
        for _ in range(0 if scheme == ALONE else connections)
    ]
    return {
        "flows.0.start": schemes.seconds(background),
        **{f"flows.{2 + i}.start": schemes.seconds(start) for i, start in enumerate(starts)},
    }


def _cell(scheme: str, connections: int) -> Cell:
    background, call, upload, _ = schemes.flows(SCENARIO)
    plain = scheme in (ALONE, FRESH)
    tcp = schemes.tcp(upload["tcp"], STANDARD if plain else scheme)
    uploads = [
        {**upload, "name": f"upload {i}", "tcp": tcp}
        for i in range(0 if scheme == ALONE else connections)
    ]
    settings = {"flows": [background, call, *uploads], **schemes.host(scheme)}
    case = Case(scheme=scheme, connections=connections)
    draws = partial(drawn, scheme, connections)
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS, drawn=draws)


def cells() -> list[Cell]:
    """Every arm with every number of connections."""
    return [_cell(scheme, connections) for connections in CONNECTIONS for scheme in ARMS]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What happens from the arrival on: the whole run less the one that ends there."""
    before = lab.run(scenario, settings={"duration": _UNTIL}, seed=seed)
    whole = lab.run(scenario, seed=seed)

    def since(metric: str, who: str) -> list[float]:
        """Of the flows whose names begin so."""
        early, late = (
            of.rows.filter(of.rows["flow"].str.starts_with(who))[metric] for of in (before, whole)
        )
        return [float(b - a) for a, b in zip(early, late, strict=True)]

    def dropped(of: Any) -> float:
        (packets,) = of.links.filter(of.links["link"] == "ap2->router")["dropped"]
        return float(packets)

    (call,) = whole.rows.filter(whole.rows["flow"] == "call").iter_rows(named=True)
    uploads = since("payload_bytes", "upload")
    (background,) = since("payload_bytes", "background")
    (lost,) = since("retransmissions", "background")
    return {
        "router_dropped_packets": dropped(whole) - dropped(before),
        "goodput_bps": 8 * sum(uploads) / len(uploads) / AFTER_S if uploads else None,
        "background_bps": 8 * background / AFTER_S,
        "background_lost_packets": lost,
        "background_timeouts": since("timeouts", "background")[0],
        "call_loss": call["datagram_loss"],
    }


def over(to: str, metric: str, words: str) -> Measure:
    """The mean over that of another arm."""

    def of(runs: Runs, case: Case) -> Estimate | None:
        other = case.but(scheme=to)
        return None if other == case else runs.ratio(case, other, metric)

    return Measure(f"{metric}_over_{to}", "1", words, of)


def figure(runs: Runs) -> Figure:
    """Drops and goodputs over the number of connections."""

    def panel(title: str, metric: str, words: str, scale: float = 1.0) -> draw.Panel:
        return draw.Panel(
            title,
            {},
            lambda runs, case: runs.mean(case, metric),
            words,
            scale,
            lines=_LINES,
        )

    rows = [
        [
            panel("Dropped at the router", "router_dropped_packets", "packets"),
            panel("Each upload after the arrival", "goodput_bps", "Mb/s", 1e6),
        ],
        [
            panel("The neighbour's transfer", "background_bps", "Mb/s", 1e6),
            panel("The neighbour's call", "call_loss", "lost, %", 0.01),
        ],
    ]
    return draw.panels(runs, rows, "connections", "uploads", {n: str(n) for n in CONNECTIONS})


# --- What comes of it -------------------------------------------------------------------------


def _by_arm(runs: Runs, metric: str, arms: Sequence[str], scale: float, n: int) -> str:
    parts = []
    for scheme in arms:
        value = runs.mean(runs.case(scheme=scheme, connections=n), metric)
        if value is not None:
            scaled = Estimate(value.value / scale, value.lo / scale, value.hi / scale, value.n)
            parts.append(f"{_WORDS[scheme]} {phrase(scaled)}")
    return ", ".join(parts)


def _question(
    runs: Runs, claim: str, what: str, metric: str, arms: Sequence[str], scale: float = 1.0
) -> Answer:
    shown = "; ".join(f"n = {n}: {_by_arm(runs, metric, arms, scale, n)}" for n in CONNECTIONS)
    case = runs.case(scheme=RLCI, connections=CONNECTIONS[-1])
    return Answer(claim, "§6.2", None, f"{what}: {shown}.", case, runs.mean(case, metric))


def _no_more_than_fresh(runs: Runs, metric: str, claim: str, fewer_is_better: bool) -> Answer:
    """Whether others fare no worse beside connections that resume than beside ones that are opened
    afresh. Standard TCP, which sleeps, spares them too: so the connections must have resumed."""
    band = below(1 + NOTHING) if fewer_is_better else above(1 - NOTHING)
    summary, spared, resumed = [], [], []
    for scheme in (RLCI, CORRECTED, SHARED):
        sooner = []
        for n in CONNECTIONS:
            case = runs.case(scheme=scheme, connections=n)
            ratio = runs.ratio(case, case.but(scheme=FRESH), metric)
            summary.append(f"{NAMES[scheme]}, n = {n}, {phrase(ratio)}")
            spared.append(Check(ratio, band))
            own = runs.ratio(case, case.but(scheme=STANDARD), "goodput_bps")
            sooner.append(Check(own, above(1 + NEGLIGIBLE)))
        resumed.append(some(sooner))
    worse = every(spared)
    case = runs.case(scheme=RLCI, connections=CONNECTIONS[-1])
    return Answer(
        claim,
        "§6.2",
        (decides := every([worse, every(resumed)])).verdict,
        f"Over that beside connections opened afresh: {'; '.join(summary)}. No worse is taken as"
        f" {percent(NOTHING)}. {worse.tally} That they resume, and each gets more than standard TCP"
        f" with some number of them, is shown for"
        f" {every(resumed).shown} of {len(resumed)} schemes.",
        case,
        runs.ratio(case, case.but(scheme=FRESH), metric),
        effect_of="rlci",
        criterion=decides.criterion,
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """The report's future work."""
    return [
        _question(
            runs,
            "How much does the router drop after a change?",
            f"Packets in the {AFTER_S:g} s that follow",
            "router_dropped_packets",
            ARMS,
        ),
        _question(
            runs,
            "What is the mean goodput of the connections after a change?",
            f"Mb/s of each in the {AFTER_S:g} s that follow",
            "goodput_bps",
            ARMS[1:],
            1e6,
        ),
        _no_more_than_fresh(
            runs,
            "background_bps",
            "A neighbour's TCP has no less goodput beside connections that resume with RLCI than"
            " beside as many that are opened at that time.",
            fewer_is_better=False,
        ),
        _no_more_than_fresh(
            runs,
            "background_lost_packets",
            "A neighbour's TCP loses no more packets to them than to those.",
            fewer_is_better=True,
        ),
        _question(
            runs,
            "What does a call of 80 kb/s lose?",
            "Per cent of its packets",
            "call_loss",
            ARMS,
            0.01,
        ),
        _no_more_than_fresh(
            runs,
            "call_loss",
            "The call loses no more to them than to connections opened at that time.",
            fewer_is_better=True,
        ),
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    n = CONNECTIONS[-1]
    fresh = runs.case(scheme=FRESH, connections=n)
    ratios = {
        scheme: runs.ratio(fresh.but(scheme=scheme), fresh, "background_bps")
        for scheme in (RLCI, SHARED)
    }
    return (
        f"Beside {n} connections that resume, a neighbour's TCP has {phrase(ratios[RLCI])} times"
        f" the goodput that it has beside as many opened afresh; with one probe for all"
        f" {phrase(ratios[SHARED])} times."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="after",
    title="What connections that resume do to others",
    asks="A phone with uploads arrives at an access point at which a neighbour is at work. What is"
    " dropped, who gets what, and is it worse than if the phone opened its connections afresh?",
    where="§6.2, future work",
    method=(
        "The way from the second access point to the router is the bottleneck, 6 Mb/s and 40 ms"
        " with a queue of 50 packets; a neighbour shares it, with an upload by standard TCP without"
        " end and a constant 80 kb/s in packets of 200 bytes.",
        "The neighbour's upload begins in the first 6 s, the phone's in the first second at the"
        " first access point, which it"
        " leaves at 5 s; it arrives at 15 s. Everything is measured in the 20 s from then on:"
        " the whole run less one that ends at 15 s.",
        "For comparison no phone arrives, or the phone opens as many connections of standard TCP at"
        " 15 s that it did not have before.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("router_dropped_packets", "1", "dropped at the router"),
        mean("goodput_bps", "bit/s", "each upload, Mb/s", 1e6),
        mean("background_bps", "bit/s", "neighbour, Mb/s", 1e6),
        over(FRESH, "background_bps", "neighbour / beside fresh ones"),
        mean("background_lost_packets", "1", "neighbour sends again"),
        mean("background_timeouts", "1", "neighbour's timeouts"),
        mean("call_loss", "1", "call loses, %", 0.01),
    ),
    figures=(Drawn("Drops and goodputs in the 20 s after the arrival.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"scheme": "who arrives", "connections": "n"},
)
