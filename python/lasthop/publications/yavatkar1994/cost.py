"""What a handoff costs: bytes between base stations, and time (beyond the publication)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import FIXED, SENDERS, STATIONS
from lasthop.publications.yavatkar1994.schemes import MTCP, SRP
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES: Sequence[str] = (MTCP, SRP)
CACHES_KIB = (4, 16, 64)
#: From one base station to the other, one way.
DELAYS_S = (0.0002, 0.02, 0.1, 0.3)
PAUSE_S = 1.0
SEEDS, QUICK_SEEDS = 20, 2
#: By their places in the file: from the base stations to the campus.
_SUBNETS = (2, 3)
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.ORANGE, pictures.GREEN)


def _settings(scheme: str, sends: str, cache: int, delay: float) -> dict[str, Any]:
    found = path.settings(scheme, sends=sends)
    for station in STATIONS:
        key = f"nodes.{station}.boxes"
        found[key] = [{**box, "cache": f"{cache} KiB"} for box in found[key]]
    for link in _SUBNETS:
        found[f"links.{link}.delay"] = f"{round(5e5 * delay)} us"
    # It lasts beyond the handoff in every cell; its end is not measured.
    return {**found, "flows.0.traffic.size": "1 MB", "duration": "60 s"}


def cells() -> list[Cell]:
    """Every scheme, sender, buffer and delay."""
    return [
        Cell(
            Case(scheme=scheme, sends=sends, cache_kib=cache, delay_s=delay),
            path.SCENARIO,
            _settings(scheme, sends, cache, delay),
            SEEDS,
            QUICK_SEEDS,
            drawn=partial(path.one_handoff, PAUSE_S, sends=sends),
            reseeded=True,
        )
        for scheme in SCHEMES
        for sends in SENDERS
        for cache in CACHES_KIB
        for delay in DELAYS_S
    ]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What the new base station got from the old one, and when data went on."""
    back = path.attached_anew(scenario)
    receiver = dict(scenario.overrides).get("flows.0.to", FIXED)
    result, events = path.logged(scenario, seed, str(receiver))
    counts = {
        what: count
        for node, what, count in result.box_counts.select("node", "what", "count").iter_rows()
        if node == STATIONS[1]
    }
    state = float(counts.get("bytes of state received", 0))
    data = float(counts.get("bytes of data received with it", 0))
    arrivals = (event["t_s"] for event in events if event["event"] == "received")
    first = next((at for at in arrivals if at > back), None)
    return {
        "state_bytes": state,
        "data_bytes": data,
        "shipped_bytes": state + data,
        "resume_s": None if first is None else first - back,
    }


_CACHE = {cache: f"{cache}" for cache in CACHES_KIB}


def figure(runs: Runs) -> Figure:
    """Bytes and time over the buffer, by sender and scheme."""
    lines = [
        Line(f"{units.duration(delay)} between stations", {"delay_s": delay}, colour)
        for delay, colour in zip(DELAYS_S, _COLOURS, strict=True)
    ]
    rows = [
        [
            Panel(
                f"{schemes.name(scheme)}, {words}",
                {"scheme": scheme, "sends": sends},
                lambda runs, case, metric=metric: runs.mean(case, metric),  # type: ignore[misc]
                label,
                lines=lines,
                scale=scale,
            )
            for sends, words in SENDERS.items()
            for scheme in SCHEMES
        ]
        for metric, label, scale in (
            ("shipped_bytes", "between stations, kB", 1e3),
            ("resume_s", "until new data arrives, s", 1.0),
        )
    ]
    return draw.panels(runs, rows, "cache_kib", "buffer of the station, KiB", _CACHE, inches=3.4)


def _at(runs: Runs, sends: str) -> Answer:
    where = {"sends": sends, "cache_kib": max(CACHES_KIB)}
    parts = []
    for scheme in SCHEMES:
        cases = [runs.case(scheme=scheme, delay_s=delay, **where) for delay in DELAYS_S]
        shipped = phrase(runs.mean(cases[0], "shipped_bytes"))
        times = ", ".join(
            f"{phrase(runs.mean(case, 'resume_s'))} with {units.duration(delay)}"
            for case, delay in zip(cases, DELAYS_S, strict=True)
        )
        parts.append(
            f"{schemes.name(scheme)} ships {shipped} bytes with {units.duration(DELAYS_S[0])};"
            f" new data arrives after, in seconds, {times}"
        )
    case = runs.case(scheme=SRP, delay_s=DELAYS_S[0], **where)
    return Answer(
        f"What does a handoff cost when {SENDERS[sends]}, with a buffer of {max(CACHES_KIB)} KiB?",
        "beyond",
        None,
        f"{'. '.join(parts)}.",
        case,
        runs.mean(case, "shipped_bytes"),
        "B",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """By the direction of the data."""
    return [_at(runs, sends) for sends in SENDERS]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    shipped = [
        phrase(
            runs.mean(
                runs.case(scheme=SRP, sends=sends, cache_kib=64, delay_s=DELAYS_S[0]),
                "shipped_bytes",
            )
        )
        for sends in SENDERS
    ]
    return (
        f"With SRP and a buffer of 64 KiB a handoff ships {shipped[0]} bytes when the mobile host"
        f" sends, {shipped[1]} when it receives."
    )


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="cost",
    title="What a handoff costs",
    asks="How many bytes go from the old base station to the new one, and how long does it take"
    " until new data arrives, by the buffer of the station and the distance between the two?",
    where="beyond",
    method=(
        *path.METHOD[:2],
        "One handoff pause of 1 s, which begins 4 to 8 s after the start, and no losses on the"
        " wireless hop. The file has 1 MB, and a run ends before: data is on its way when the pause"
        " begins. The stations' buffers (`cache`) take 4 to 64 KiB in each direction, besides a"
        " receive window of 4096 bytes. One way from one station to the other takes 0.2 to 300 ms,"
        " half of which is on the way to the fixed host, too.",
        "Bytes are those of the messages that the new station has received: the state of the"
        " connections, and the data that they hold. The time is from the attachment to the new"
        " station until RCV.NXT of the receiver's TCP advances for the first time, by its log of"
        " events. 20 runs.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("shipped_bytes", "B", "between stations, B"),
        mean("state_bytes", "B", "of state, B"),
        mean("data_bytes", "B", "of data, B"),
        mean("resume_s", "s", "until new data arrives, s"),
    ),
    figures=(Drawn("Bytes between stations, and the time until new data arrives.", figure),),
    answers=answers,
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "sends": "sender",
        "cache_kib": "buffer, KiB",
        "delay_s": "between stations, s",
    },
    words={"scheme": schemes.name},
)
