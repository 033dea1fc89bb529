"""The test-bed's topology (§3.3.1) in the lab, and what its studies have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop.publications.obanaik2003.fairness import policies, simulation, single, words
from lasthop.publications.obanaik2003.fairness.policies import CANIT, CR, IBK, PROPAGATION, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import ALL, LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer, Section
from lasthop.publications.study.runs import Case, Cell, Observe, Runs
from lasthop.publications.study.study import mean
from lasthop.publications.study.verdict import Verdict, error_factor, typical_factor

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

#: What the column "Loss" of the test-bed's tables may be: packets, or per cent of the packets.
#: §3.3.2 calls it an error rate, and so statements go by the share.
PACKETS, SHARE = "losses_packets", "loss_share"


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
    k: float = K,
    cap: float | None = None,
    **case: Any,
) -> Cell:
    """A policy on all connections, or on all but the third."""
    policy = variant.policy
    rtt = policies.default_rtt(policy) if rtt is None else rtt
    value = policies.increase(
        policy,
        rtt,
        k=k if policy == IBK else None,
        c=variant.c or None,
        cap=cap,
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
    mean(PACKETS, "packets", "losses at the last hop"),
    mean(SHARE, "1", "lost at the last hop, %", 0.01),
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
    " router drops, counted, and as a share of those that come to it.",
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


def loss_readings(runs: Runs, experiment: str) -> Answer:
    """How well the column "Loss" is met by either reading."""
    summary = []
    for metric, as_what in ((SHARE, "as a percentage"), (PACKETS, "as packets")):
        factors, held = [], 0
        for number in Section.of(simulation.PUBLICATION, experiment).numbers:
            if number.metric != metric or number.misprint or not number.value:
                continue
            for case in runs.cases(**number.case):
                if case["rtt"] == PROPAGATION:
                    continue
                measured = runs.mean(case, metric)
                held += number.of.judge(measured, runs.single(case, metric)) is Verdict.HOLDS
                factor = error_factor(measured, number.value)
                factors.append(0.0 if factor is None else factor.value)
        typical = typical_factor(factors)
        off = "not known" if typical is None else f"{typical:.2f}"
        summary.append(
            f"{as_what}: {held} of {len(factors)} cells hold, and they are off by a typical factor"
            f" of {off}"
        )
    return Answer(
        'The column "Loss" has no unit. §3.3.2 calls it an error rate. Are they packets, or per'
        " cent?",
        "§3.3.2",
        None,
        f"{'; '.join(summary).capitalize()}. Statements go by the percentage, as the text says.",
    )


def known(runs: Runs, pairs: Sequence[tuple[Case, Case]], metric: str) -> list[float]:
    """The ratios of pairs of cases, where there are any."""
    found = [runs.ratio(*pair, metric) for pair in pairs]
    return [ratio.value for ratio in found if ratio is not None]
