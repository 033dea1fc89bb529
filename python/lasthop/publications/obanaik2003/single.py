"""What is looked at of a run: connection 3, its last hop, and its neighbours."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from lasthop import lab
from lasthop.publications.study.runs import Observe
from lasthop.scenario import Scenario
from lasthop.stats import jain

#: The connection under study, and its last hop.
OWN, LAST_HOP = "3", "lasthop->sink3"
#: In how many runs of a cell round trips are followed, where they are: it takes longer than the
#: run.
FOLLOWED = 5


def observed(shared: str, *, followed: int = 0) -> Observe:
    """Connection 3 and its neighbours behind a shared link."""

    def of(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
        result = lab.run(scenario, seed=seed, trace=seed <= followed)
        rows = {row["flow"]: row for row in result.rows.iter_rows(named=True)}
        links = {row["link"]: row for row in result.links.iter_rows(named=True)}
        own, last = rows[OWN], links[LAST_HOP]
        rates = {flow: row["payload_bps"] for flow, row in rows.items()}
        duration = max(row["duration_s"] for row in rows.values())
        srtt = result.series(OWN)["srtt_s"].drop_nulls().to_list() if result.flows else []
        return {
            "goodput_bps": own["goodput_bps"],
            "payload_bps": own["payload_bps"],
            "losses_packets": last["dropped"],
            "loss_share": last["dropped"] / max(1, last["packets"] + last["dropped"]),
            # What did not even come to the last hop; what is on its way at the end is no loss.
            "losses_before_packets": max(0, own["segments"] - last["packets"] - last["dropped"]),
            "timeouts": own["timeouts"],
            "rtt_s": statistics.fmean(srtt) if srtt else None,
            "fairness": jain(list(rates.values())),
            "long_share": sum(rates.get(flow, 0.0) for flow in LONG) / sum(rates.values()),
            "all_payload_bps": sum(rates.values()),
            "shared_bps": links[shared]["bytes"] * 8 / duration,
        }

    return of


#: The simulations' connections with a long round trip.
LONG = ("3", "4", "5")
