"""A receiver whose echoes call every hole corruption (bbn8333 §7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lasthop.publications.bbn8333.beyond import attacks
from lasthop.publications.bbn8333.beyond.attacks import (
    ALL,
    DEFENCES,
    HONEST,
    MISBEHAVING,
    NAMES,
    STARTS,
    held,
)
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, above, some
from lasthop.publications.study.words import MARKED, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/false-echoes"
#: The rates of datagrams in bursts, half of the time.
BURSTS_BPS = (0, 4_000_000, 8_000_000, 12_000_000, 16_000_000)
WORDS: Mapping[Any, str] = {rate: f"{rate / 1e6:g}" if rate else "none" for rate in BURSTS_BPS}
SEEDS, QUICK_SEEDS = 120, 1
_KEY = "bursts_bps"
#: A gain below this is none.
NOISE = 0.05


def cells() -> list[Cell]:
    """A misbehaving and an honest receiver, with every defence, beside more and more bursts."""
    return [
        Cell(
            Case(
                recovery="sack",
                eten="forward",
                rate_bps=10e6,
                bursts_bps=rate,
                defences=name,
                receiver=receiver,
            ),
            SCENARIO,
            {
                "attacks.0.start": "0 s" if receiver == MISBEHAVING else "1000 s",
                "flows.0.tcp.eten.defences": defences,
                "flows.2.traffic.udp.rate": attacks.bursts(rate),
            },
            SEEDS,
            QUICK_SEEDS,
            STARTS,
        )
        for rate in BURSTS_BPS
        for name, defences in DEFENCES.items()
        for receiver in (MISBEHAVING, HONEST)
    ]


def honest(case: Case) -> Case:
    """The same with an honest receiver."""
    return case.but(receiver=HONEST)


def _over_honest(metric: str, runs: Runs, case: Case) -> Estimate | None:
    return runs.ratio(case, honest(case), metric) if case["receiver"] == MISBEHAVING else None


def gained(runs: Runs, case: Case) -> Estimate | None:
    """The misbehaving receiver's goodput over what it has if it is honest."""
    return _over_honest("goodput_bps", runs, case)


def harm(runs: Runs, case: Case) -> Estimate | None:
    """Its neighbour's, likewise."""
    return _over_honest("others_goodput_bps", runs, case)


def figure(runs: Runs) -> Figure:
    """What the misbehaving receiver gains, and what its neighbour loses, over the congestion."""
    lines = [replace(line, where={"defences": line.where["defences"]}) for line in attacks.LINES]
    rows = [
        [
            draw.Panel("The misbehaving receiver", {}, gained, "goodput over honest", lines=lines),
            draw.Panel("Its neighbour", {}, harm, "goodput over honest", lines=lines),
        ]
    ]
    return draw.panels(runs, rows, _KEY, "bursts, Mb/s", WORDS)


def answers(runs: Runs) -> Sequence[Answer]:
    """What a misbehaving receiver gains, and against which defence."""
    return [_without(runs), *(_nothing(runs, name) for name in (ALL, "nonce", "trust", "limit"))]


def _without(runs: Runs) -> Answer:
    lies = runs.cases(defences=NONE, receiver=MISBEHAVING)
    ratios = [(case, gained(runs, case), harm(runs, case)) for case in lies]
    known = [(case, own, other) for case, own, other in ratios if own is not None]
    case, most, _ = max(known, key=lambda found: found[1].value)
    words = ", ".join(f"{WORDS[c[_KEY]]}: {phrase(own)} and {phrase(o)}" for c, own, o in known)
    unfair = some([Check(own, above(1 + MARKED)) for _, own, _ in known])
    return Answer(
        "Without defences, a receiver that calls every loss corruption gets an unfair share.",
        "§7.1",
        unfair.verdict,
        f"Its goodput and its neighbour's over those if it is honest, by Mb/s in bursts: {words}.",
        case,
        most,
        effect_of="lying",
        criterion=unfair.criterion,
    )


def _nothing(runs: Runs, defences: str) -> Answer:
    lies = runs.cases(defences=defences, receiver=MISBEHAVING)
    most = 1 + NOISE
    found = held(runs, [(case, honest(case)) for case in lies], "goodput_bps", most=most)
    bursts = WORDS[found.case[_KEY]]
    words = ", ".join(phrase(gained(runs, case)) for case in lies)
    return Answer(
        f"With {NAMES[defences]}, a receiver that calls every loss corruption gains nothing beyond"
        " noise.",
        "§7.1",
        found.verdict,
        f"Its goodput over that if it is honest, from no bursts to those of 16 Mb/s: {words}. The"
        f" highest interval, which may not reach beyond {most:g}, is the one with {bursts} Mb/s in"
        " bursts.",
        found.case,
        found.ratio,
        effect_of="defences",
        criterion=found.criterion,
    )


STUDY = question(
    id="false-echoes",
    title="A receiver whose echoes lie",
    asks="With Forward ETEN the receiver says what was corrupted. What does one gain that calls"
    " every hole corruption, and never makes its sender slow down?",
    where="§7.1",
    method=(
        "Two SACK connections with segments of 1000 bytes and the profile of today over a"
        " bottleneck of 10 Mb/s with room for 50 packets, a round trip of 44 ms, beside bursts of"
        " datagrams, 20 ms on and 20 ms off; 60 s. Nothing is corrupted, so that every echo is"
        " false. One connection has Forward ETEN and the misbehaving receiver; the other has"
        " neither and starts 0 to 3 s later.",
        "The same with an honest receiver, for comparison.",
        f"Defences: nonces; reputation, which false notices cost; a limit of {attacks.LIMIT}"
        " accepted notices in a round trip; all three. The misbehaving receiver does not know the"
        " nonce of a segment that was lost.",
    ),
    cells=cells,
    collect=attacks.shares,
    measures=(
        mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
        mean("others_goodput_bps", "bit/s", "neighbour's, kb/s", 1e3),
        Measure("goodput_over_honest", "1", "over honest", gained),
        Measure("others_over_honest", "1", "neighbour's over honest", harm),
        mean("believed", "1", "believed notices"),
    ),
    figure=figure,
    caption="Goodputs over those with an honest receiver.",
    answers=answers,
    keys={_KEY: "bursts, bit/s", "defences": "defences", "receiver": "receiver"},
)
