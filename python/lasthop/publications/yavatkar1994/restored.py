"""The association over the hop after a handoff: restored, or a new one (§1 and figure 3, §2.4)."""

from __future__ import annotations

import random
import statistics
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
from lasthop.publications.yavatkar1994 import path
from lasthop.publications.yavatkar1994.hop import SCENARIO, limit_bps
from lasthop.publications.yavatkar1994.path import FIXED, MOBILE, SENDERS, STATIONS
from lasthop.publications.yavatkar1994.schemes import Scheme
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESTORED, NEW = "restored", "new"
HANDOFFS: Sequence[str] = (RESTORED, NEW)
RTTS_S = (0.01, 0.1, 0.3)
LOSSES = (0.0, 0.05)
#: From the end of a pause to the start of the next, seconds.
SPACINGS_S = (1.0, 3.0, 10.0)
PAUSE_S = 0.2
SEEDS, QUICK_SEEDS = 5, 2
#: The flow starts when the mobile host has registered; handoffs begin within a second from then on,
#: and what is delivered is counted from then to the end.
_START_S, _COUNTED_S, _END_S = 5, 10, 40
_COLOURS = {RESTORED: pictures.BLACK, NEW: pictures.BLUE}
_MTU = 256
#: It holds more than three times what is in flight, and does not take long to be handed over.
_AGENT = {"profile": "modern", "cache": "256 KiB"}


def scheme(handoff: str) -> Scheme:
    """SRP with this setting in both boxes."""
    agent = {**_AGENT, "handoff": handoff}
    return Scheme(
        f"SRP, {handoff}",
        station=({"box": "station", **agent},),
        mobile=({"box": "mobile", "hop": "srp", **agent},),
    )


def _settings(handoff: str, sends: str, rtt: float, loss: float) -> dict[str, Any]:
    hop = {
        "rate": "2 Mbit/s",
        "delay": f"{round(5e5 * rtt)} us",
        "queue": "1000 packets",
        "mtu": f"{_MTU} B",
        "errors": {"packet": loss},
    }
    wire = {"rate": "100 Mbit/s", "delay": "100 us", "queue": "1000 packets"}
    links = [{"between": [MOBILE, station], **hop} for station in STATIONS]
    links += [{"between": [station, "campus"], **wire} for station in STATIONS]
    links.append({"between": ["campus", FIXED], **wire})
    ends = {"from": sends, "to": MOBILE if sends == FIXED else FIXED}
    tcp = {"mss": _MTU - 40}
    flow = {"name": "bulk", **ends, "start": f"{_START_S} s", "profile": "modern", "tcp": tcp}
    return {
        "nodes": {name: {} for name in (MOBILE, *STATIONS, "campus", FIXED)},
        **scheme(handoff).settings(MOBILE, STATIONS, _MTU),
        "links": links,
        "flows": [flow],
        "duration": f"{_END_S} s",
    }


def moves(spacing: float, run: int) -> list[tuple[float, float]]:
    """When each pause of a run begins and ends."""
    begins = _COUNTED_S + random.Random(f"yavatkar1994, restored, run {run}").random()
    found = []
    while begins < _END_S:
        found.append((begins, begins + PAUSE_S))
        begins += PAUSE_S + spacing
    return found


def _drawn(spacing: float, run: int) -> Mapping[str, Any]:
    (spans,) = path.attached(moves(spacing, run)).values()
    return {"nodes.mobile.attached": {"at": spans}}


def cells() -> list[Cell]:
    """Both settings, with every sender, round trip, loss and spacing."""
    return [
        Cell(
            Case(handoff=handoff, sends=sends, rtt_s=rtt, loss=loss, spacing_s=spacing),
            SCENARIO,
            _settings(handoff, sends, rtt, loss),
            SEEDS,
            QUICK_SEEDS,
            drawn=partial(_drawn, spacing),
            reseeded=True,
        )
        for handoff in HANDOFFS
        for sends in SENDERS
        for rtt in RTTS_S
        for loss in LOSSES
        for spacing in SPACINGS_S
    ]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What is delivered, and when data goes on after each handoff."""
    settings: dict[str, Any] = dict(scenario.overrides)
    spans: Any = settings["nodes.mobile.attached"]["at"]
    loss = settings["links"][0]["errors"]["packet"]
    receiver = settings["flows"][0]["to"]
    result, events = path.logged(scenario, seed, receiver)
    before = lab.run(scenario.set({"duration": f"{_COUNTED_S} s"}), seed=seed)
    delivered, earlier = (sum(of.rows["payload_bytes"].to_list()) for of in (result, before))
    goodput = 8 * (delivered - earlier) / (_END_S - _COUNTED_S)
    arrivals = iter([event["t_s"] for event in events if event["event"] == "received"])
    at = next(arrivals, None)
    resumed = []
    back = [_s(span["start"]) for span in spans[1:]]
    for start, end in zip(back, [*back[1:], float(_END_S)], strict=True):
        while at is not None and at <= start:
            at = next(arrivals, None)
        if at is not None and at < end:
            resumed.append(at - start)
    away = PAUSE_S * sum(start < _END_S for start in back)
    connected = 1 - away / (_END_S - _COUNTED_S)
    return {
        "share": goodput / (limit_bps(loss) * connected),
        "resume_s": statistics.fmean(resumed) if resumed else None,
        "resumed": len(resumed) / len(back),
    }


def _s(text: str) -> float:
    return float(text.removesuffix(" us")) / 1e6


def figure(runs: Runs) -> Figure:
    """Goodput and the time until new data arrives, over the spacing."""
    lines = [Line(of, {"handoff": of}, _COLOURS[of]) for of in HANDOFFS]
    rows = [
        [
            Panel(
                f"{words}, RTT {units.duration(rtt)}",
                {"sends": sends, "rtt_s": rtt, "loss": 0.0},
                lambda runs, case, metric=metric: runs.mean(case, metric),  # type: ignore[misc]
                label,
                lines=lines,
            )
            for rtt in RTTS_S
        ]
        for sends, words in SENDERS.items()
        for metric, label in (("share", "share of the limit"), ("resume_s", "until new data, s"))
    ]
    words = {spacing: f"{spacing:g}" for spacing in SPACINGS_S}
    return draw.panels(runs, rows, "spacing_s", "connected between two pauses, s", words)


def _both(runs: Runs, metric: str, **where: Any) -> str:
    values = [phrase(runs.mean(runs.case(handoff=of, **where), metric)) for of in HANDOFFS]
    return f"{values[0]} restored, {values[1]} new"


def _answer(runs: Runs, sends: str) -> Answer:
    parts = []
    for rtt in RTTS_S:
        where = {"sends": sends, "rtt_s": rtt, "loss": 0.0}
        times = _both(runs, "resume_s", spacing_s=SPACINGS_S[-1], **where)
        shares = "; ".join(
            f"{spacing:g} s apart {_both(runs, 'share', spacing_s=spacing, **where)}"
            for spacing in (SPACINGS_S[0], SPACINGS_S[-1])
        )
        parts.append(
            f"Over {units.duration(rtt)} new data arrives after, in seconds, {times}; shares of"
            f" the limit with handoffs {shares}"
        )
    case = runs.case(handoff=NEW, sends=sends, rtt_s=RTTS_S[1], loss=0.0, spacing_s=SPACINGS_S[0])
    return Answer(
        "What does a new association cost or gain after a handoff, beside one that is restored,"
        f" when {SENDERS[sends]}?",
        "§2.4",
        None,
        f"{'. '.join(parts)}.",
        case,
        runs.mean(case, "share"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """By the direction of the data."""
    return [_answer(runs, sends) for sends in SENDERS]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    where = {"sends": FIXED, "rtt_s": RTTS_S[1], "loss": 0.0, "spacing_s": SPACINGS_S[0]}
    return (
        f"With handoffs {SPACINGS_S[0]:g} s apart, shares of the limit over"
        f" {units.duration(RTTS_S[1])} are {_both(runs, 'share', **where)}."
    )


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="restored",
    title="An association that is restored, or a new one",
    asks="By §1 and figure 3 of the publication a handoff makes a new connection over the hop, by"
    " §2.4 it restores the one of before. How soon does SRP go on with either, and what does it"
    " deliver if handoffs follow each other?",
    where="§2.4",
    method=(
        "A mobile host and a fixed host have a connection without end, which is split at the base"
        " stations, with SRP over the hop. The hop has 2 Mb/s and an MTU of 256 octets, and loses 0"
        " or 5 % of the packets in each direction; the wire never limits. Pauses of 0.2 s follow"
        " each other, between which the host is attached for 1 to 10 s, in turn to either station."
        " SRP measures the rate of the hop, and buffers (`cache`) take 256 KiB. Both boxes have"
        " `handoff` as the case says.",
        "The time is from the attachment until RCV.NXT of the receiver's TCP advances for the"
        " first time, the mean of all handoffs of a run after which that happened before the next"
        " one. The share is of what the hop could deliver of SRP while the host was attached. 5"
        " runs of 30 s.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("share", "1", "share of the limit"),
        mean("resume_s", "s", "until new data arrives, s"),
        mean("resumed", "1", "handoffs after which data went on"),
    ),
    figures=(Drawn("Goodput and the time until new data arrives, without losses.", figure),),
    answers=answers,
    outcome=outcome,
    keys={
        "handoff": "association",
        "sends": "sender",
        "rtt_s": "RTT, s",
        "loss": "loss",
        "spacing_s": "connected, s",
    },
    words={"loss": lambda loss: f"{100 * loss:g} %"},
)
