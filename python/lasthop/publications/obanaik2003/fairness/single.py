"""What is looked at of a run: connection 3, its last hop, and its neighbours."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from lasthop import lab
from lasthop.publications.study.runs import Observe
from lasthop.scenario import Scenario
from lasthop.stats import jain

if TYPE_CHECKING:
    import polars as pl

#: The connection under study, and its last hop.
OWN, LAST_HOP = "3", "lasthop->sink3"
#: In how many runs of a cell round trips and windows are followed, where they are: it takes as
#: long again as the run.
FOLLOWED = 5


#: Of connection 3 in both topologies, bytes.
MSS = 256


def windows(series: pl.DataFrame, mss: int) -> list[float]:
    """The window in segments after each acknowledgment."""
    found: list[float] = []
    before = None
    for cwnd, rto, flight in series.select("cwnd_bytes", "rto_s", "flight_bytes").iter_rows():
        # A timeout is no acknowledgment: the timer backs off, and nothing is in flight but one
        # segment.
        timed_out = before is not None and rto > before * 1.5 and cwnd <= mss
        if not timed_out and flight > 1:
            found.append(cwnd / mss)
        before = rto
    return found


def observed(shared: str, *, followed: int = 0) -> Observe:
    """Connection 3 and its neighbours behind a shared link."""

    def of(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
        result = lab.run(scenario, seed=seed, trace=seed <= followed)
        rows = {row["flow"]: row for row in result.rows.iter_rows(named=True)}
        links = {row["link"]: row for row in result.links.iter_rows(named=True)}
        own, last = rows[OWN], links[LAST_HOP]
        rates = {flow: row["payload_bps"] for flow, row in rows.items()}
        duration = max(row["duration_s"] for row in rows.values())
        series = result.series(OWN) if result.flows else None
        srtt = [] if series is None else series["srtt_s"].drop_nulls().to_list()
        grown = [] if series is None else [b - a for a, b in pairwise(windows(series, MSS))]
        return {
            "goodput_bps": own["goodput_bps"],
            "payload_bps": own["payload_bps"],
            "losses_packets": last["dropped"],
            "loss_share": last["dropped"] / max(1, last["packets"] + last["dropped"]),
            # What did not even come to the last hop; what is on its way at the end is no loss.
            "losses_before_packets": max(0, own["segments"] - last["packets"] - last["dropped"]),
            "timeouts": own["timeouts"],
            "rtt_s": statistics.fmean(srtt) if srtt else None,
            "largest_step_segments": max(grown) if grown else None,
            "fairness": jain(list(rates.values())),
            "long_share": sum(rates.get(flow, 0.0) for flow in LONG) / sum(rates.values()),
            "all_payload_bps": sum(rates.values()),
            "shared_bps": links[shared]["bytes"] * 8 / duration,
        }

    return of


#: The simulations' connections with a long round trip.
LONG = ("3", "4", "5")
