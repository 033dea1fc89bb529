"""SRP beside a TCP flow at a common bottleneck (beyond the publication)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures, units
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.hop import SCENARIO
from lasthop.publications.yavatkar1994.schemes import BBR, CUBIC, NEWRENO, Scheme
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How SRP finds its rate.
KNOWN, MEASURED, SHARED = "srp-known", "srp-measured", "srp-shared"
#: Whose share is measured: with a flow of NewReno for comparison.
SCHEMES: Sequence[str] = (KNOWN, MEASURED, SHARED, NEWRENO)
#: The flow beside it.
TCPS: Sequence[str] = (NEWRENO, CUBIC, BBR)
RTTS_S = (0.02, 0.1)
#: The queue, in bandwidth-delay products.
QUEUES = (1, 4)
SEEDS, QUICK_SEEDS = 5, 2
_RATE, _RATE_BPS, _PACKET = "10 Mbit/s", 10_000_000, 1500
#: The TCP flow starts within a second from here on; both are counted from then on.
_START_S, _COUNTED_S, _END_S = 10.0, 30, 90
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.ORANGE, pictures.GREEN)

_AGENT = {"profile": "modern", "cache": "4 MiB"}


def _split(name: str, **settings: Any) -> Scheme:
    return Scheme(
        name,
        station=({"box": "station", **_AGENT, **settings},),
        mobile=({"box": "mobile", "hop": "srp", **_AGENT, **settings},),
    )


#: The rate is that of the link.
_SPLIT: Mapping[str, Scheme] = {
    KNOWN: _split("SRP, rate known", rate=_RATE),
    MEASURED: _split("SRP, rate measured"),
    SHARED: _split("SRP, share", share=True),
}


def name(scheme: str) -> str:
    """As reports and the book call it."""
    return _SPLIT[scheme].name if scheme in _SPLIT else schemes.name(scheme)


def _flow(name: str, to: str, start_s: float, tcp: Mapping[str, Any]) -> dict[str, Any]:
    start = f"{round(1e3 * start_s)} ms"
    return {
        "name": name,
        "from": "fixed",
        "to": to,
        "start": start,
        "profile": "modern",
        "tcp": {"mss": _PACKET - schemes.HEADERS, **tcp},
    }


def _settings(scheme: str, rtt: float, queue: int) -> dict[str, Any]:
    packets = round(queue * _RATE_BPS * rtt / 8 / _PACKET)
    hop = {
        "between": ["mobile", "station"],
        "rate": _RATE,
        "delay": f"{round(500 * rtt)} ms",
        "queue": f"{packets} packets",
        "mtu": f"{_PACKET} B",
    }
    # A wire that never limits, and the host beside that of the mobile agent.
    wires = [
        {"between": ends, "rate": "1 Gbit/s", "delay": "100 us", "queue": "10000 packets"}
        for ends in (["station", "fixed"], ["mobile", "laptop"])
    ]
    boxes = _SPLIT[scheme].settings("mobile", ("station",), _PACKET) if scheme in _SPLIT else {}
    return {
        **boxes,
        "nodes.mobile.attached": {"at": [{"to": "station", "start": "0 s"}]},
        "nodes.laptop": {},
        "links": [hop, *wires],
        "duration": f"{_END_S} s",
    }


def _drawn(scheme: str, tcp: str, run: int) -> Mapping[str, Any]:
    own = {} if scheme in _SPLIT else schemes.SCHEMES[scheme].tcp
    start = _START_S + random.Random(f"yavatkar1994, beside, run {run}").random()
    other = schemes.SCHEMES[tcp].tcp
    return {
        "flows": [_flow("own", "mobile", 5.0, own), _flow("other", "laptop", start, other)],
    }


def cells() -> list[Cell]:
    """Every scheme, TCP beside it, round trip and queue."""
    return [
        Cell(
            Case(scheme=scheme, tcp=tcp, rtt_s=rtt, queue=queue),
            SCENARIO,
            _settings(scheme, rtt, queue),
            SEEDS,
            QUICK_SEEDS,
            drawn=partial(_drawn, scheme, tcp),
            reseeded=True,
        )
        for scheme in SCHEMES
        for tcp in TCPS
        for rtt in RTTS_S
        for queue in QUEUES
    ]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What both deliver after the start: the same run, less its first seconds."""
    whole, start = (
        list(lab.run(of, seed=seed).rows["payload_bytes"])
        for of in (scenario, scenario.set({"duration": f"{_COUNTED_S} s"}))
    )
    span = _END_S - _COUNTED_S
    own, other = (8 * (end - begin) / span for begin, end in zip(start, whole, strict=True))
    return {"own_bps": own, "tcp_bps": other, "share": own / (own + other)}


def figure(runs: Runs) -> Figure:
    """The share over the flow beside it."""
    lines = [
        Line(name(scheme), {"scheme": scheme}, colour)
        for scheme, colour in zip(SCHEMES, _COLOURS, strict=True)
    ]
    rows = [
        [
            Panel(
                f"RTT {units.duration(rtt)}, queue of {queue} BDP",
                {"rtt_s": rtt, "queue": queue},
                lambda runs, case: runs.mean(case, "share"),
                "share of what both deliver",
                lines=lines,
                top=1.05,
            )
            for queue in QUEUES
        ]
        for rtt in RTTS_S
    ]
    words = {tcp: schemes.name(tcp) for tcp in TCPS}
    return draw.panels(runs, rows, "tcp", "beside", words)


def _beside(runs: Runs, scheme: str) -> Answer:
    where = {"scheme": scheme, "rtt_s": RTTS_S[1], "queue": QUEUES[0]}
    cases = {tcp: runs.case(tcp=tcp, **where) for tcp in TCPS}
    parts = [
        f"{phrase(runs.mean(case, 'share'))} beside {schemes.name(tcp)}"
        for tcp, case in cases.items()
    ]
    return Answer(
        f"What share has {name(scheme)} beside a TCP flow, over"
        f" {units.duration(RTTS_S[1])} with a queue of one bandwidth-delay product?",
        "beyond",
        None,
        f"{', '.join(parts)}.",
        cases[NEWRENO],
        runs.mean(cases[NEWRENO], "share"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """By the way in which SRP sends."""
    return [_beside(runs, scheme) for scheme in SCHEMES]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    where = {"tcp": NEWRENO, "rtt_s": RTTS_S[1], "queue": QUEUES[0]}
    parts = [
        f"{name(scheme)} {phrase(runs.mean(runs.case(scheme=scheme, **where), 'share'))}"
        for scheme in SCHEMES
    ]
    return f"Shares beside NewReno over 100 ms: {', '.join(parts)}."


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="beside",
    title="SRP beside a TCP flow",
    asks="What share of a bottleneck does SRP take beside a TCP flow, although it is made for a hop"
    " of its own?",
    where="beyond",
    method=(
        "A fixed host sends over a wire to a base station, and from there over a hop of 10 Mb/s"
        " with an MTU of 1500 octets to a mobile host: by a connection that is split at the"
        " station, with SRP over the hop. By the same hop, and without being split, it sends to a"
        " host behind the mobile host. Both flows last; nothing is lost but what the hop's queue"
        " drops, which holds one or four bandwidth-delay products. The flow beside starts 10 to 11"
        " s after the start of the run, uniform by run; counted is what arrives from 30 to 90 s.",
        "SRP is given the rate of the link, or measures it, or has a congestion window (share)."
        " For comparison, a second flow of NewReno is in its place. All TCP has the profile modern;"
        " NewReno has AIMD and no SACK. 5 runs.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("share", "1", "share of what both deliver"),
        mean("own_bps", "bit/s", "goodput, Mb/s", 1e6),
        mean("tcp_bps", "bit/s", "goodput of the flow beside, Mb/s", 1e6),
    ),
    figures=(Drawn("The share of what both flows deliver.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"scheme": "scheme", "tcp": "beside", "rtt_s": "RTT, s", "queue": "queue, BDP"},
    words={"scheme": name, "tcp": schemes.name},
)
