"""The simulations' topology (§3.1), and what its studies have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.obanaik2003.fairness import policies, single
from lasthop.publications.obanaik2003.fairness.policies import IBK, NO_RTT, STANDARD
from lasthop.publications.study.runs import Case, Cell, Observe
from lasthop.publications.study.study import mean

PUBLICATION = "obanaik2003"
SCENARIO = f"{PUBLICATION}/simulation"
SEEDS, QUICK_SEEDS = 20, 3
#: Where that leaves a published number undecided: runs are cheap.
MOST_SEEDS = 100

#: The last hop of connection 3.
SLOW, LTN = "slow", "ltn"
LINKS: Mapping[str, Mapping[str, str]] = {
    SLOW: {"links.9.rate": "56 kbit/s", "links.9.delay": "50 ms"},
    LTN: {"links.9.rate": "9.6 kbit/s", "links.9.delay": "200 ms"},
}
LINK_NAMES = {SLOW: "slow link", LTN: "long thin network"}

#: As in the scenario: calibrated, as the path is (bench/obanaik_calibration.py).
RECOVERY = "sack"

#: Flows by their place in the file: connections 1 to 5, and those with a long round trip.
_OWN = 2
ALL_FLOWS = range(5)
_LONG = range(2, 5)

#: On which connections the policy is.
ALL, OTHERS = "all", "others"


def observe(followed: int = 0) -> Observe:
    """What is looked at, with the round trips of so many runs of a cell."""
    return single.observed("r2->lasthop", followed=followed)


def with_policy(value: Any, policy: str, enabled: str = ALL) -> Mapping[str, Any]:
    """Settings that put a policy on those who have it; increase-by-K is for long round trips."""
    flows = _LONG if policy == IBK else ALL_FLOWS
    chosen = [flow for flow in flows if enabled == ALL or flow != _OWN]
    return {f"flows.{flow}.tcp.increase": value for flow in chosen}


def cell(
    link: str,
    policy: str,
    rtt: str = NO_RTT,
    *,
    enabled: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **case: Any,
) -> Cell:
    """A policy over one of the last hops; on all connections, if nothing is said."""
    if enabled is not None:
        case["enabled"] = enabled
    return Cell(
        Case(link=link, policy=policy, rtt=rtt, **case),
        SCENARIO,
        {
            **LINKS[link],
            **with_policy(policies.increase(policy, rtt), policy, enabled or ALL),
            **(settings or {}),
        },
        SEEDS,
        QUICK_SEEDS,
    )


def standard(link: str, **case: Any) -> Case:
    """The case of the standard policy."""
    return Case(link=link, policy=STANDARD, rtt=NO_RTT, **case)


MEASURES = (
    mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
    mean("losses_packets", "packets", "losses at the last hop"),
    mean("payload_bps", "bit/s", "goodput without headers, kb/s", 1e3),
    mean("losses_before_packets", "packets", "losses before"),
    mean("timeouts", "1", "timeouts"),
    mean("shared_bps", "bit/s", "shared link carries, kb/s", 1e3),
)

METHOD = (
    "Sources 1 to 5, two routers, a last-hop router, sinks 1 to 5. All links have 10 Mb/s but the"
    " one to"
    " the last-hop router (1.5 Mb/s, 25 ms, shared by all) and that to sink 3: 56 kb/s and 50 ms"
    " (slow"
    " link) or 9.6 kb/s and 200 ms (long thin network), with a buffer of 3 packets. Packets of 296"
    " bytes, windows of 64 KiB, bulk transfers of 100 s, 20 runs.",
    "Not published are the kind of recovery, the delays of the other links and the buffers of the"
    " other routers. SACK, 5 and 400 ms before the first router and 50 packets before the shared"
    " link bring the standard policy closest to its two published rows; nothing else was looked at"
    " (bench/obanaik_calibration.py).",
    "Goodput counts 40 bytes of headers for each segment. Losses are packets that the last-hop"
    " router drops.",
    "Constant rate (c = 10) and CANIT (30 ms) go by the round trip that the sender measures, with"
    " queues,"
    " or by twice the links' delays; the thesis does not say which. Increase-by-K (K = 4) is on"
    " connections"
    " 3, 4 and 5, the other policies on all.",
    "Where numbers differ from the published ones: fairness/factors tries what moves them.",
)

#: Of runs whose round trips are followed.
RTT = mean("rtt_s", "s", "smoothed round trip, s")

KEYS = {"link": "last hop", "policy": "policy", "rtt": "round trip"}
