"""What the report leaves open: the factors that are tried, one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasthop.publications.study import factors as study


@dataclass(frozen=True)
class Factor(study.Factor):
    """A factor, by the settings that it changes."""

    #: Keys of the scenario.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Whether nothing is corrupted on the way back.
    clean_return: bool = False
    #: Keys of every flow of the cross traffic, where there is some.
    cross: Mapping[str, Any] = field(default_factory=dict)
    #: Hops, if there are others.
    hops: int | None = None
    #: The link that has errors, if only one has.
    link: int | None = None
    #: Recovery of those whose window is not AIMD's, if it is another.
    recovery: str | None = None

    def __and__(self, other: Factor) -> Factor:
        """Both factors changed."""
        own, others = self._grid, other._grid
        if own.keys() & others.keys() or self.settings.keys() & other.settings.keys():
            raise ValueError(f"{self.id} and {other.id} change the same factor")
        return Factor(
            f"{self.id}+{other.id}",
            f"{self.name} and {other.name}",
            f"{self.about} {other.about}",
            {**self.settings, **other.settings},
            cross={**self.cross, **other.cross},
            **own,
            **others,
        )

    @property
    def _grid(self) -> dict[str, Any]:
        """The fields that it changes apart from settings."""
        names = ("clean_return", "hops", "link", "recovery")
        changed = {name: getattr(self, name) for name in names}
        return {name: of for name, of in changed.items() if of != getattr(AS_IS, name)}


#: What is reproduced.
AS_IS = Factor("", "", "")


def pairs(factors: Sequence[Factor]) -> tuple[Factor, ...]:
    """Every pair of factors, both changed."""
    return tuple(one & other for one, other in itertools.combinations(factors, 2))


_TCP = "flows.0.tcp"

FACTORS = (
    Factor(
        "dupacks-count",
        "duplicate ACKs that still count",
        "A notice only speeds up the retransmission; the duplicate ACKs or SACK holes that the same"
        " corruption causes halve the window as ever. The report's text asks that the congestion"
        " state stays as it is; whether its code kept the later duplicate ACKs out is not said.",
        {f"{_TCP}.eten.suppress_dupacks": "none"},
    ),
    Factor(
        "first-excused",
        "one corruption of a window excused",
        "Between the two: until all that was outstanding at a notice is acknowledged, no other"
        " corruption is excused, as a sender has it that remembers one.",
        {f"{_TCP}.eten.suppress_dupacks": "first"},
    ),
    Factor(
        "small-notices",
        "notices of 56 bytes",
        "A real ICMP message instead of ns-2's message agent of 180 bytes: a notice is lost less"
        " often.",
        {f"{_TCP}.eten.notice_size": "56 B"},
    ),
    Factor(
        "clean-return",
        "an error-free way back",
        "Neither ACKs nor notices are lost; the report simulated both and does not say which its"
        " numbers are from.",
        clean_return=True,
    ),
    Factor(
        "window-40",
        "a window of 40 segments",
        "Twice the receive window: what a connection that is rarely disturbed can gain at most.",
        {f"{_TCP}.receive_window": "40 segments"},
    ),
    Factor(
        "initial-window-10",
        "an initial window of 10 segments",
        "Slow start at the beginning of the connection is shorter.",
        {f"{_TCP}.initial_window": 10},
    ),
    Factor(
        "rto-1s",
        "an RTO of at least 1 s",
        "The minimum of RFC 6298 instead of ns-2's 200 ms: every timeout costs more.",
        {f"{_TCP}.rto.minimum": "1 s"},
    ),
    Factor(
        "tick-10ms",
        "a timer granularity of 10 ms",
        "A finer clock than ns-2's 100 ms of the time, as ns-2 had it later.",
        {f"{_TCP}.rto.granularity": "10 ms"},
    ),
    Factor(
        "tick-500ms",
        "a timer granularity of 500 ms",
        "BSD's clock of the 1990s: a script of the time may have set it.",
        {f"{_TCP}.rto.granularity": "500 ms"},
    ),
    Factor(
        "limited-transmit",
        "limited transmit",
        "New data on the first two duplicate ACKs (RFC 3042): fewer timeouts at small windows.",
        {f"{_TCP}.limited_transmit": True},
    ),
    Factor(
        "halve-on-backoff",
        "ssthresh halved at every timeout",
        "ns-2 halved it at each timeout of a back-off series, RFC 5681 only at the first.",
        {f"{_TCP}.ssthresh_on_backoff": "halve"},
    ),
    Factor(
        "delayed-acks",
        "delayed ACKs",
        "An ACK for every second segment: the window grows half as fast.",
        {f"{_TCP}.delayed_ack": "100 ms"},
    ),
)


ALWAYS_ON = Factor(
    "always-on",
    "UDP that is always on",
    "Four sources fill the middle link, and eight offer twice its capacity, as the text says; with"
    " the silences that it describes they offer half of that.",
    cross={"traffic.udp": {"rate": "1 Mbit/s", "packet": "210 B"}},
)
LARGE_DATAGRAMS = Factor(
    "large-datagrams",
    "UDP packets of 1000 bytes",
    "The report gives no size; ns-2's on-off sources send 210 bytes. A queue of 50 packets holds"
    " more of larger ones.",
    cross={"traffic.udp.packet": "1000 B"},
)
SMALL_COMPETITORS = Factor(
    "small-competitors",
    "competitors' packets of 576 bytes",
    "The size of the transfer's own, instead of ns-2's default of 1000 bytes: they are corrupted"
    " less often, and a queue holds less of them.",
    cross={"tcp.mss": 536},
)
SACK_COMPETITORS = Factor(
    "sack-competitors",
    "competitors that use SACK",
    "Instead of Tahoe: they lose less of their share to errors.",
    cross={"tcp.recovery": "sack"},
)
COMPETITORS_WINDOW_100 = Factor(
    "competitors-window-100",
    "competitors' windows of 100 segments",
    "Instead of ns-2's default of 20, with which they take little of a long and fast link.",
    cross={"tcp.receive_window": "100 segments"},
)
COMPETITORS_WINDOW_1000 = Factor(
    "competitors-window-1000",
    "competitors' windows of 1000 segments",
    "More than their share of what the middle link holds at 100 Mb/s and 100 ms: they fill it where"
    " errors let them.",
    cross={"tcp.receive_window": "1000 segments"},
)
ONE_HOP = Factor(
    "one-hop",
    "one hop",
    "As in simulation 1: a third of the errors, and every notice crosses one link.",
    hops=1,
)
FIRST_LINK = Factor(
    "first-link",
    "errors on the first link alone",
    "Every notice comes from the first router: it crosses one link, and the round trip is as long"
    " as ever.",
    link=0,
)
LAST_LINK = Factor(
    "last-link",
    "errors on the last link alone",
    "Every notice comes from the sink, over all three links.",
    link=2,
)
THREE_HOPS = Factor(
    "three-hops",
    "three hops",
    "The text speaks of a link; the report's other simulations from the second on have three.",
    hops=3,
)
EXACT_CLOCK = Factor(
    "exact-clock",
    "round trips that are measured exactly",
    "The clock of ns2-2001 shows whole ticks of 100 ms, one at least, as ns-2's did: over a short"
    " path Westwood's shortest round trip is too long, and the path seems to hold far more.",
    {f"{_TCP}.rto.estimator": "exact"},
)
SACK_WESTWOOD = Factor(
    "sack-westwood",
    "Westwood on SACK",
    "The authors' code extends ns-2's Reno, so several losses in a window cost a timeout; ported to"
    " the report's SACK it would not.",
    recovery="sack",
)


def named(*ids: str) -> tuple[Factor, ...]:
    """The factors with these ids."""
    by_id = {factor.id: factor for factor in FACTORS}
    return tuple(by_id[id] for id in ids)
