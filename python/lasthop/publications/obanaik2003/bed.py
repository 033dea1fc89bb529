"""The test-bed's topology (§3.3.1) in the lab, and what its studies have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop.publications.obanaik2003 import policies, simulation, single, words
from lasthop.publications.obanaik2003.policies import CANIT, CR, IBK, STANDARD
from lasthop.publications.obanaik2003.simulation import ALL, LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell, Observe, Runs
from lasthop.publications.study.study import mean

SCENARIO = f"{simulation.PUBLICATION}/testbed"
SEEDS, QUICK_SEEDS = simulation.SEEDS, simulation.QUICK_SEEDS

LINKS: Mapping[str, Mapping[str, str]] = {
    SLOW: {"links.7.rate": "56 kbit/s", "links.7.delay": "75 ms"},
    LTN: {"links.7.rate": "9.6 kbit/s", "links.7.delay": "350 ms"},
}
#: "At twice the rate" of the standard (§3.3.2).
K = 2
#: Constants of constant rate: that of the simulations, and the largest that the thesis speaks of.
CONSTANTS = (10.0, 100.0)
NO_CONSTANT = ""
BUFFERS = (3, 10, 20)
WINDOW, SMALL_WINDOW = 8_192, 1_024
_OWN = 2


def observe(followed: int = 0) -> Observe:
    """What is looked at, with the round trips of so many runs of a cell."""
    return single.observed("controller->delaybox", followed=followed)


@dataclass(frozen=True)
class Variant:
    """A policy with its constant."""

    policy: str
    c: Any = NO_CONSTANT

    @property
    def case(self) -> Mapping[str, Any]:
        """Its keys of a case."""
        return {"policy": self.policy, "c": self.c}


STANDARD_ALONE = Variant(STANDARD)
VARIANTS = (
    STANDARD_ALONE,
    Variant(IBK),
    Variant(CANIT),
    *(Variant(CR, c) for c in CONSTANTS),
)


def cell(
    link: str,
    variant: Variant,
    *,
    rtt: str | None = None,
    enabled: str = ALL,
    buffer: int = BUFFERS[0],
    window: int = WINDOW,
    settings: Mapping[str, Any] | None = None,
    **case: Any,
) -> Cell:
    """A policy on all connections, or on all but the third."""
    policy = variant.policy
    rtt = policies.default_rtt(policy) if rtt is None else rtt
    value = policies.increase(
        policy,
        rtt,
        k=K if policy == IBK else None,
        c=variant.c or None,
    )
    chosen = [flow for flow in range(3) if enabled == ALL or flow != _OWN]
    return Cell(
        Case(
            link=link,
            **variant.case,
            rtt=rtt,
            enabled=enabled,
            buffer_packets=buffer,
            receive_window_bytes=window,
            **case,
        ),
        SCENARIO,
        {
            **LINKS[link],
            **{f"flows.{flow}.tcp.increase": value for flow in chosen},
            "links.7.queue": f"{buffer} packets",
            "flows.2.tcp.receive_window": window,
            **(settings or {}),
        },
        SEEDS,
        QUICK_SEEDS,
    )


MEASURES = (
    mean("payload_bps", "bit/s", "goodput, kb/s", 1e3),
    mean("losses_packets", "packets", "losses at the last hop"),
    mean("goodput_bps", "bit/s", "with headers, kb/s", 1e3),
    mean("losses_before_packets", "packets", "losses before"),
    mean("timeouts", "1", "timeouts"),
    mean("shared_bps", "bit/s", "shared link carries, kb/s", 1e3),
)

METHOD = (
    "The test-bed of the thesis in the lab: three sources with delays of 50, 30 and 50 ms before"
    " a link of"
    " 1.5 Mb/s, and as much behind it; then to sink 3 56 kb/s and 75 ms (slow link), or 9.6 kb/s"
    " and 350 ms"
    " (long thin network, a round trip of 900 ms), with a buffer of 3 packets. 100 s and 20 runs,"
    " of which"
    " the thesis says nothing.",
    "TCP as FreeBSD 4.5 had it: NewReno, timestamps, delayed acknowledgments, a timeout of a"
    " second at"
    " least. Connection 3 has packets of 296 bytes and a receive window of 8 KiB, the others"
    " those of an"
    " Ethernet and 64 KiB.",
    'Increase-by-K has K = 2, which is set from the thesis\'s "at twice the rate" (§3.3.2), so that'
    " this is not tested; CANIT has 30 ms. The constant of constant rate is not published: 10"
    " and 100"
    " are shown. All policies are on all connections. Nothing is calibrated.",
    "Goodput is what the receiving application gets, without headers: where the receive window"
    " alone"
    " decides (1 KiB), this is what meets the published numbers. Losses are packets that the"
    " last-hop"
    " router drops.",
    "Where numbers differ from the published ones: fairness/factors tries what moves them.",
)

KEYS = {
    "link": "last hop",
    "policy": "policy",
    "c": "c",
    "rtt": "round trip",
    "enabled": "policy on",
    "buffer_packets": "buffer",
    "receive_window_bytes": "receive window",
}


def where(case: Case) -> str:
    """Link and policy, in words."""
    return f"{LINK_NAMES[case['link']]}, {words.policy(case)}"


def lines() -> Sequence[draw.Line]:
    """A line for every variant."""
    found = []
    for variant in VARIANTS:
        label = words.policy(variant.case)
        line = policies.line(variant.policy, label=label, c=variant.c)
        if variant.c == CONSTANTS[1]:
            line = draw.Line(label, line.where, line.colour, line.marker, ":")
        found.append(line)
    return found


def panel(link: str, metric: str, ylabel: str, scale: float = 1.0) -> draw.Panel:
    """A metric over one last hop."""
    return draw.Panel(
        LINK_NAMES[link].capitalize(),
        {"link": link},
        lambda runs, case: runs.mean(case, metric),
        ylabel,
        lines=lines(),
        scale=scale,
    )


def known(runs: Runs, pairs: Sequence[tuple[Case, Case]], metric: str) -> list[float]:
    """The ratios of pairs of cases, where there are any."""
    found = [runs.ratio(*pair, metric) for pair in pairs]
    return [ratio.value for ratio in found if ratio is not None]
