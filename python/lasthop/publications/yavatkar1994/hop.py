"""The wireless hop alone: goodput against loss (beyond the publication)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.schemes import BBR, CUBIC, HEADERS, SACK
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "yavatkar1994/hop"
#: Over one hop there is nothing to split. Its SRP is a flow's own transport.
SCHEMES: Sequence[str] = (SACK, CUBIC, BBR)
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
RTTS_S = (0.01, 0.1, 0.3, 0.6)
UNIFORM, BURSTY = "uniform", "bursty"
SEEDS, QUICK_SEEDS = 20, 2
#: Of the scenario.
_MTU = 256
_COLOURS = (pictures.BLUE, pictures.GREEN, pictures.ORANGE)


def _file() -> Mapping[str, Any]:
    return tomllib.loads(Scenario.load(SCENARIO).source)


def limit_bps(loss: float) -> float:
    """What a transport with headers of 40 bytes can deliver: the payload that the link carries,
    less the losses."""
    (link,) = _file()["links"]
    mtu = int(link["mtu"].removesuffix(" B"))
    rate = 1e6 * float(link["rate"].removesuffix(" Mbit/s"))
    return rate * (mtu - HEADERS) / mtu * (1 - loss)


def cells() -> list[Cell]:
    """Every scheme, round trip, loss and kind of loss."""
    return [
        Cell(
            Case(scheme=scheme, errors=errors, rtt_s=rtt, loss=loss),
            SCENARIO,
            {
                **schemes.SCHEMES[scheme].settings("mobile", ("station",), _MTU),
                "links.0.delay": f"{round(500 * rtt)} ms",
                "links.0.errors": {"packet": loss} if errors == UNIFORM else path.bursts(loss),
            },
            SEEDS,
            QUICK_SEEDS,
        )
        for scheme in SCHEMES
        for errors in (UNIFORM, BURSTY)
        for rtt in RTTS_S
        for loss in LOSSES
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What arrives in order, from the start of the connection on."""
    return {name: column(name, "bulk")(rows) for name in ("payload_bps", "timeouts")}


def share(runs: Runs, case: Case) -> Estimate | None:
    """Of the limit."""
    found = runs.mean(case, "payload_bps")
    if found is None:
        return None
    limit = limit_bps(case["loss"])
    value, lo, hi = (end / limit for end in (found.value, found.lo, found.hi))
    return Estimate(value, lo, hi, found.n)


def figure(runs: Runs) -> Figure:
    """The share of the limit over the loss."""
    lines = [
        Line(schemes.name(scheme), {"scheme": scheme}, colour)
        for scheme, colour in zip(SCHEMES, _COLOURS, strict=True)
    ]
    rows = [
        [
            Panel(
                f"RTT {units.duration(rtt)}, {errors}",
                {"rtt_s": rtt, "errors": errors},
                share,
                "share of the limit",
                lines=lines,
                top=1.05,
            )
            for rtt in RTTS_S
        ]
        for errors in (UNIFORM, BURSTY)
    ]
    words = {loss: f"{100 * loss:g}" for loss in LOSSES}
    return draw.panels(runs, rows, "loss", "loss, %", words, inches=3.1)


def _at(runs: Runs, rtt: float, loss: float) -> Answer:
    where = {"rtt_s": rtt, "loss": loss, "errors": UNIFORM}
    parts = [
        f"{schemes.name(scheme)} {phrase(share(runs, runs.case(scheme=scheme, **where)))}"
        for scheme in SCHEMES
    ]
    case = runs.case(scheme=CUBIC, **where)
    return Answer(
        f"How much of the limit does a sender reach over a round trip of {units.duration(rtt)} with"
        f" losses of {100 * loss:g} %?",
        "beyond",
        None,
        f"Shares, with losses of their own: {', '.join(parts)}.",
        case,
        share(runs, case),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """How near to the limit."""
    return [_at(runs, rtt, loss) for rtt in (RTTS_S[0], RTTS_S[-1]) for loss in (0.01, 0.1)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    where = {"rtt_s": 0.1, "loss": 0.1, "errors": UNIFORM}
    parts = [
        f"{schemes.name(scheme)} {phrase(share(runs, runs.case(scheme=scheme, **where)))}"
        for scheme in SCHEMES
    ]
    return f"Over 100 ms with losses of 10 %, of what is possible: {', '.join(parts)}."


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="hop",
    title="The wireless hop alone",
    asks="How much of a hop's capacity do senders reach, the more packets it loses and the longer"
    " its round trip is?",
    where="beyond",
    method=(
        "A mobile host sends over a hop of 2 Mb/s with an MTU of 256 octets, for 60 s. Packets are"
        " lost in both directions, each on its own (uniform) or in bursts of two on average"
        " (bursty); the round trip is 10 to 600 ms.",
        "The limit is the payload that the link carries with headers of 40 bytes, times the share"
        " of the packets that arrive. The senders' timestamps take 12 bytes more of each segment.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("payload_bps", "bit/s", "goodput, kb/s", 1e3),
        Measure("share", "1", "share of the limit", share),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(Drawn("Goodput as a share of the limit.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"scheme": "scheme", "errors": "losses", "rtt_s": "RTT, s", "loss": "loss"},
    words=path.WORDS,
)
