"""The wireless hop alone: goodput against loss (beyond the publication)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures, units
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.schemes import BBR, CUBIC, SACK, SRP, Scheme
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "yavatkar1994/hop"
SCHEMES: Sequence[str] = (SRP, SACK, CUBIC, BBR)
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
RTTS_S = (0.01, 0.1, 0.3, 0.6)
UNIFORM, BURSTY = "uniform", "bursty"
SEEDS, QUICK_SEEDS = 5, 2
#: Of the scenario.
_MTU = 256
#: Of IP (20 bytes), UDP (8) and SRP (16).
_SRP_HEADERS = 44
#: The flow starts late, so that the mobile host has registered in spite of the losses; what it
#: delivers is counted after its first 10 s, for 50 s.
_START_S, _COUNTED_S, _END_S = 30, 40, 90
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.GREEN, pictures.ORANGE)

#: What is besides the hop must not limit it: TCP of today, and a cache of the sending station that
#: holds more than three times what is in flight in the longest round trip.
_AGENT = {"profile": "modern"}
_SPLIT = Scheme(
    "SRP",
    station=({"box": "station", "cache": "4 MiB", **_AGENT},),
    mobile=({"box": "mobile", "hop": "srp", **_AGENT},),
)


def _file() -> Mapping[str, Any]:
    return tomllib.loads(Scenario.load(SCENARIO).source)


def limit_bps(loss: float) -> float:
    """What SRP can deliver: the payload that the link carries, less the losses."""
    link = _file()["links"][0]
    mtu = int(link["mtu"].removesuffix(" B"))
    rate = 1e6 * float(link["rate"].removesuffix(" Mbit/s"))
    return rate * (mtu - _SRP_HEADERS) / mtu * (1 - loss)


def _settings(scheme: str) -> dict[str, Any]:
    of = _SPLIT if scheme == SRP else schemes.SCHEMES[scheme]
    return of.settings("mobile", ("station",), _MTU)


def cells() -> list[Cell]:
    """Every scheme, round trip, loss and kind of loss."""
    return [
        Cell(
            Case(scheme=scheme, errors=errors, rtt_s=rtt, loss=loss),
            SCENARIO,
            {
                **_settings(scheme),
                "duration": f"{_END_S} s",
                "flows.0.start": f"{_START_S} s",
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


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What arrives in order after the start: the same run, less its first seconds."""
    whole, start = (
        lab.run(of, seed=seed).rows.row(0, named=True)
        for of in (scenario, scenario.set({"duration": f"{_COUNTED_S} s"}))
    )
    payload = whole["payload_bytes"] - start["payload_bytes"]
    return {
        "payload_bps": 8 * payload / (whole["duration_s"] - start["duration_s"]),
        "timeouts": float(whole["timeouts"]),
    }


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
    lines = schemes.lines(SCHEMES, _COLOURS)
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
    return [_at(runs, rtt, loss) for rtt in (RTTS_S[0], RTTS_S[2]) for loss in (0.01, 0.1)]


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
        "A fixed host sends over a wire of 100 Mb/s to a base station, and from there over a hop of"
        " 2 Mb/s with an MTU of 256 octets to a mobile host, for 60 s. Packets are lost on"
        " the hop in both directions, each on its own (uniform) or in bursts of two on average"
        " (bursty); the round trip is 10 to 600 ms. What arrives in its first 10 s is not counted.",
        "The limit is the payload that the link carries in packets of SRP, with headers of 44"
        " bytes, times the share of the packets that arrive. TCP has headers of 40 bytes, and"
        " timestamps take 12 bytes more.",
        "With SRP the connection is split at the base station. The agents' TCP has the profile"
        " modern, and the station holds 4 MiB: neither the wire nor a window limits the hop.",
    ),
    cells=cells,
    observe=observe,
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
