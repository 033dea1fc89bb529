"""The path of yavatkar1994: a mobile host, two base stations, the Internet and a fixed host."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any

from lasthop import lab
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.yavatkar1994 import schemes
from lasthop.publications.yavatkar1994.schemes import HEADERS
from lasthop.results import Result
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

PUBLICATION = "yavatkar1994"
SCENARIO = "yavatkar1994/path"
#: As published.
SEEDS, QUICK_SEEDS = 40, 4
PAUSES_S = (0.0, 1.0, 2.8, 5.0)
LOSSES = (0.0, 0.05, 0.1)
#: Packets of a burst on average; not published.
BURST = 2.0
#: When the pause begins, seconds after the start of the connection: uniform.
FIRST_S = (4.0, 8.0)

MOBILE, STATIONS, FIXED = "mobile", ("station1", "station2"), "fixed"
#: When the file starts, seconds. The fixed host sends so late that the mobile host has registered
#: in spite of losses: a connection that was opened before passes the base station as it is.
STARTS_S = {MOBILE: 0.0, FIXED: 30.0}
#: Who sends the file, in words.
SENDERS = {MOBILE: "the mobile host sends", FIXED: "the fixed host sends"}
_ATTACHED = "nodes.mobile.attached.at"
#: By their place in the file.
WIRELESS, INTERNET = (0, 1), 5
#: After which bursts in time repeat: longer than most transfers.
_PERIOD_S = 200.0


@dataclass(frozen=True, order=True)
class Path:
    """What the publication leaves open of the path."""

    #: The share of packets that the Internet loses, in each direction.
    internet_loss: float
    internet_delay_ms: int
    wireless_delay_ms: int
    wireless_kbps: int
    mtu: int

    @classmethod
    def of_scenario(cls) -> Path:
        """As the scenario has it."""
        links = tomllib.loads(Scenario.load(SCENARIO).source)["links"]
        wireless, internet = links[WIRELESS[0]], links[INTERNET]
        return cls(
            internet.get("errors", {}).get("packet", 0.0),
            int(internet["delay"].removesuffix(" ms")),
            int(wireless["delay"].removesuffix(" ms")),
            int(wireless["rate"].removesuffix(" kbit/s")),
            int(wireless["mtu"].removesuffix(" B")),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the scenario."""
        found: dict[str, Any] = {
            "flows.0.tcp.mss": self.mtu - HEADERS,
            f"links.{INTERNET}.delay": f"{self.internet_delay_ms} ms",
            f"links.{INTERNET}.errors": {"packet": self.internet_loss},
        }
        for link in WIRELESS:
            found[f"links.{link}.mtu"] = f"{self.mtu} B"
            found[f"links.{link}.rate"] = f"{self.wireless_kbps} kbit/s"
            found[f"links.{link}.delay"] = f"{self.wireless_delay_ms} ms"
        return found


def bursts(loss: float, length: float = BURST) -> dict[str, Any]:
    """The errors of a link that loses this share of the packets in bursts: gaps in packets are
    exponential, rounded down, and the length of a burst is geometric."""
    if not loss:
        return {}
    gap = length * (1 - loss) / loss
    return {"bursts": {"gap": f"{gap:.6g} packets", "length": length}}


def lossy(loss: float, length: float = BURST) -> dict[str, Any]:
    """Settings that lose packets over the wireless hop, in both directions."""
    return {f"links.{link}.errors": bursts(loss, length) for link in WIRELESS}


def timed_bursts(loss: float, mean_s: float, run: int) -> dict[str, Any]:
    """Settings of a run that lose everything for exponential times, with exponential gaps between
    them: this share of the time, in each direction of the hop for itself."""
    found: dict[str, Any] = {}
    for link in WIRELESS:
        for direction in ("forward", "backward"):
            dice = random.Random(f"yavatkar1994, {direction} on link {link}, run {run}")
            spans: list[dict[str, Any]] = []
            now = 0.0
            while loss and now < _PERIOD_S:
                start = now + dice.expovariate(loss / (mean_s * (1 - loss)))
                now = start + dice.expovariate(1 / mean_s)
                if _seconds(start) != _seconds(now) and now < _PERIOD_S:
                    spans.append({"start": _seconds(start), "end": _seconds(now), "packet": 1.0})
            fades = {"fades": {"every": f"{_PERIOD_S:g} s", "at": spans}} if spans else {}
            found[f"links.{link}.{direction}.errors"] = fades
    return found


def attached(moves: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Settings of a host that leaves its station and is back at the other, so many times."""
    spans: list[dict[str, Any]] = [{"to": STATIONS[0], "start": "0 s"}]
    for number, (left, back) in enumerate(moves, start=1):
        spans[-1]["end"] = _seconds(left)
        spans.append({"to": STATIONS[number % 2], "start": _seconds(back)})
    return {_ATTACHED: spans}


def _seconds(value: float) -> str:
    return f"{round(1e6 * value)} us"


def attached_anew(scenario: Scenario) -> float:
    """When the host was back, of a run with one handoff; seconds."""
    found: Any = dict(scenario.overrides)[_ATTACHED]
    return float(found[-1]["start"].removesuffix(" us")) / 1e6


def first_pause(run: int) -> float:
    """When the first pause of a run begins: the same for all schemes, pauses and losses."""
    return random.Random(f"yavatkar1994, run {run}").uniform(*FIRST_S)


def one_handoff(pause: float, run: int, sends: str = MOBILE) -> Mapping[str, Any]:
    """A pause, at the old station until it begins and at the new one afterwards; a pause of 0 is no
    handoff."""
    begins = STARTS_S[sends] + first_pause(run)
    return attached([(begins, begins + pause)] if pause else [])


def settings(scheme: str, of: Path | None = None, sends: str = MOBILE) -> dict[str, Any]:
    """Settings of a scheme, on another path than that of the scenario if one is given, and with
    another sender than the mobile host."""
    chosen = of or Path.of_scenario()
    found = schemes.SCHEMES[scheme]
    if sends != MOBILE:
        found = schemes.RECEIVING.get(scheme, found)
    own = found.settings(MOBILE, STATIONS, chosen.mtu)
    return {**(of.settings if of else {}), **direction(sends), **own}


def direction(sends: str) -> dict[str, Any]:
    """Settings of the flow by who sends."""
    if sends == MOBILE:
        return {}
    start = f"{STARTS_S[sends]:g} s"
    return {"flows.0.from": sends, "flows.0.to": MOBILE, "flows.0.start": start}


def cell(
    scheme: str,
    loss: float,
    pause: float,
    *,
    seeds: int = SEEDS,
    quick: int = QUICK_SEEDS,
    burst: float = BURST,
    sends: str = "",
    more: Mapping[str, Any] | None = None,
    **case: Any,
) -> Cell:
    """A transfer with one handoff; the mobile host sends, unless `sends` names who does. `more` are
    further settings, and `case` further keys."""
    if sends:
        case["sends"] = sends
    sender = sends or MOBILE
    return Cell(
        Case(scheme=scheme, loss=loss, pause_s=pause, **case),
        SCENARIO,
        {
            **settings(scheme, sends=sender),
            **lossy(loss, burst),
            **(more or {}),
        },
        seeds,
        quick,
        drawn=partial(one_handoff, pause, sends=sender),
        reseeded=True,
    )


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """The transfer time: from the start of the connection to the arrival of the last byte at the
    fixed host."""
    (row,) = lab.run(scenario, seed=seed).rows.iter_rows(named=True)
    return {
        "transfer_s": row["completed_s"],
        "timeouts": float(row["timeouts"]),
        "retransmissions": float(row["retransmissions"]),
    }


def logged(scenario: Scenario, seed: int, node: str) -> tuple[Result, list[dict[str, Any]]]:
    """A run, and what happened to the connection at one end, in order."""
    with TemporaryDirectory(prefix="lasthop-") as folder:
        log = FilePath(folder) / "events.jsonl"
        result = lab.run(scenario, seed=seed, events=log)
        lines = log.read_text(encoding="utf-8").splitlines()
    # A frame of all events of both ends would take ten times as long as the run.
    events = [json.loads(line) for line in lines if f'"node":"{node}"' in line]
    return result, events


def transfer(runs: Runs, case: Case) -> Estimate | None:
    """The mean time of the transfers that came to their end."""
    return runs.mean(case, "transfer_s")


def given_up(runs: Runs, case: Case) -> Estimate | None:
    """The share of the transfers that did not: the connection was given up, or lasted too long."""
    return runs.share(case, "transfer_s")


MEASURES = (
    Measure("transfer_s", "s", "transfer time, s", transfer),
    Measure("given_up", "1", "given up", given_up),
    mean("timeouts", "1", "timeouts"),
    mean("retransmissions", "1", "retransmissions"),
)

#: Words for the keys of a case.
KEYS = {"scheme": "scheme", "loss": "loss", "pause_s": "pause, s"}
WORDS = {"scheme": schemes.name, "loss": lambda loss: f"{100 * loss:g} %"}

METHOD = (
    "A mobile host sends 100 kB to a fixed host, by a wireless hop to its base station (an MTU of"
    " 128 or 256 octets), a campus network, a T1 line and the Internet. All hosts have the profile"
    " sunos-1994: Tahoe, windows and buffers of 4096 bytes, a clock of 500 ms. Segments are as"
    " small as the MTU of the wireless hop.",
    "What is not published of the path is calibrated on the cells without pause and loss alone"
    " (bench/yavatkar_calibration.py); all others are predicted.",
    "The wireless hop loses packets in bursts, in both directions: between them are gaps, in"
    " packets, of an exponential distribution, and a burst has a geometric number of packets, two"
    " on average. One handoff pause begins 4 to 8 s after the start, uniform by run; in it, all"
    " packets from and to the mobile host are lost, those in queues and in flight included. Then"
    " it is attached to the other base station.",
    "The transfer time is from the start of the connection to the arrival of the last byte at the"
    " fixed host; 40 runs.",
)
