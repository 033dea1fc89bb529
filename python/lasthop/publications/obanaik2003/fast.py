"""What the policies are for: a fast last hop for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.obanaik2003 import policies, simulation, single, words
from lasthop.publications.obanaik2003.policies import ALTERNATIVES, CANIT, CR, NO_RTT, STANDARD
from lasthop.publications.obanaik2003.simulation import EVERYBODY
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, mean
from lasthop.publications.study.words import percent
from lasthop.results import Result

FAST = "fast"
LINK: Mapping[str, str] = {
    "links.9.rate": "10 Mbit/s",
    "links.9.delay": "5 ms",
    "links.9.queue": "unlimited",
}
#: Connections with long round trips, and their fair share of everything.
_LONG = ("3", "4", "5")
FAIR = len(_LONG) / len(EVERYBODY)
#: No more than slow start would add; and no such bound.
CAPPED, UNCAPPED = 1.0, 0.0


def settings(policy: str, rtt: str = NO_RTT, cap: float = UNCAPPED) -> Mapping[str, Any]:
    """The fast last hop, and a policy."""
    value = policies.increase(policy, rtt, cap=cap or None)
    return {**LINK, **simulation.with_policy(value, policy)}


def cell(policy: str, rtt: str = NO_RTT, cap: float = UNCAPPED) -> Cell:
    """A policy where all last hops are fast."""
    return Cell(
        Case(link=FAST, policy=policy, rtt=rtt, cap=cap),
        simulation.SCENARIO,
        settings(policy, rtt, cap),
        simulation.SEEDS,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Every policy, and those that outgrow slow start with a cap, too."""
    found = []
    for policy in (STANDARD, *ALTERNATIVES):
        for rtt in policies.round_trips(policy):
            caps = (UNCAPPED, CAPPED) if policy in (CR, CANIT) else (UNCAPPED,)
            found += [cell(policy, rtt, cap) for cap in caps]
    return found


def observe(result: Result) -> Mapping[str, float | None]:
    """Who gets what of the shared link."""
    rates = dict(result.rows.select("flow", "payload_bps").iter_rows())
    together = sum(rates.values())
    return {
        **simulation.observe(result),
        "long_share": sum(rates[flow] for flow in _LONG) / together,
    }


def _plain(case: Case) -> Case:
    return case.but(policy=STANDARD, rtt=NO_RTT, cap=UNCAPPED)


def _fairer(runs: Runs) -> Answer:
    others = [case for case in runs if case["policy"] != STANDARD]
    plain = _plain(others[0])
    index = {case: words.value(runs, case, "fairness") for case in runs}
    return Answer(
        "Where all last hops are fast, the policies are fairer than the standard.",
        "§2.3.1",
        all(index[case] > index[plain] for case in others),
        f"Jain’s index of the five goodputs: {words.each(runs, runs, 'fairness')}.",
        plain,
        runs.mean(plain, "fairness"),
    )


def _share(runs: Runs) -> Answer:
    best = max(runs, key=lambda case: words.value(runs, case, "long_share"))
    return Answer(
        "What part of everything do the three connections with long round trips get?",
        "§2.2.1",
        None,
        f"Fair are {percent(FAIR)}. In %: {words.each(runs, runs, 'long_share', 0.01)}.",
        best,
        runs.mean(best, "long_share"),
    )


def _cost(runs: Runs) -> Answer:
    pairs = [(case, _plain(case)) for case in runs if case["policy"] != STANDARD]
    return Answer(
        "What do all connections together lose by it?",
        "§2.3.1",
        None,
        "Goodput of all five over that with the standard:"
        f" {words.ratios(runs, pairs, 'all_payload_bps')}.",
    )


def _cap(runs: Runs) -> Answer:
    pairs = [(case, case.but(cap=UNCAPPED)) for case in runs.cases(cap=CAPPED)]
    return Answer(
        "What does a cap of one segment for each acknowledgment, as fast as slow start, change?",
        "§2.3.1",
        None,
        f"Jain’s index over that without it: {words.ratios(runs, pairs, 'fairness')}; goodput of all:"
        f" {words.ratios(runs, pairs, 'all_payload_bps')}.",
    )


def _outcome(runs: Runs) -> str:
    plain = runs.case(policy=STANDARD)
    best = max(runs, key=lambda case: words.value(runs, case, "fairness"))
    before, after = (words.value(runs, case, "fairness") for case in (plain, best))
    return f"Jain’s index goes from {before:.2f} to up to {after:.2f} ({words.policy(best)})."


def lines() -> list[draw.Line]:
    """A line for every policy and round trip."""
    return [
        policies.line(policy, rtt, words.policy({"policy": policy, "rtt": rtt}))
        for policy in (STANDARD, *ALTERNATIVES)
        for rtt in policies.round_trips(policy)
    ]


def _panel(metric: str, title: str, ylabel: str, scale: float, top: float | None) -> draw.Panel:
    return draw.Panel(
        title,
        {},
        lambda runs, case: runs.mean(case, metric),
        ylabel,
        lines=lines(),
        scale=scale,
        top=top,
    )


MEASURES = (
    mean("fairness", "1", "Jain’s index"),
    mean("long_share", "1", "long round trips’ share, %", 0.01),
    mean("all_payload_bps", "bit/s", "goodput of all, kb/s", 1e3),
    mean("goodput_bps", "bit/s", "connection 3, kb/s", 1e3),
    mean("utilisation", "1", "shared link used, %", 0.01),
)

STUDY = single.SingleRuns(
    publication=simulation.PUBLICATION,
    experiment="fairness/fast",
    title="What the policies are for: fast last hops",
    asks="The other side: where the shared link is everybody’s bottleneck, how much fairer to connections"
    " with long round trips do the policies make it?",
    where="§2.2.1, §2.3.1",
    method=(
        *simulation.METHOD[:2],
        "Sink 3’s last hop is as the others’ here: 10 Mb/s, 5 ms. Connections 3, 4 and 5 have the long"
        " round trip.",
        simulation.METHOD[3],
        "Where there is a cap, no acknowledgment adds more than a segment. Jain’s index is 1 if all five"
        " have as much, and 0.2 if one has everything.",
    ),
    cells=cells,
    collect=single.no_rows,
    observe=observe,
    measures=MEASURES,
    figures=[
        Drawn(
            "Fairness, and the part of those with long round trips, without and with the cap.",
            lambda runs: draw.panels(
                runs,
                [
                    [
                        _panel("fairness", "Fairness", "Jain’s index", 1.0, 1.03),
                        _panel("long_share", "Long round trips", "share, %", 0.01, None),
                        _panel("all_payload_bps", "Everybody", "goodput, kb/s", 1e3, None),
                    ]
                ],
                "cap",
                "an acknowledgment adds",
                {UNCAPPED: "anything", CAPPED: "a segment"},
            ),
        )
    ],
    answers=lambda runs: [_fairer(runs), _share(runs), _cost(runs), _cap(runs)],
    keys={"policy": "policy", "rtt": "round trip", "cap": "cap"},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
