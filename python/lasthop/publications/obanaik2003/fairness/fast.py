"""The purpose of the policies: fast last hops for all connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop.publications.obanaik2003.fairness import policies, simulation, single, words
from lasthop.publications.obanaik2003.fairness.policies import (
    ALTERNATIVES,
    CANIT,
    CR,
    NO_RTT,
    STANDARD,
)
from lasthop.publications.obanaik2003.fairness.simulation import ALL_FLOWS
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import Check, above, every
from lasthop.publications.study.words import NEGLIGIBLE, percent

#: Connections with long round trips, and their fair share of everything.
FAIR = len(single.LONG) / len(ALL_FLOWS)
#: No more than slow start would add; and no such bound.
CAPPED, UNCAPPED = 1.0, 0.0

_LAST_HOP: Mapping[str, Any] = {
    "links.9.rate": "10 Mbit/s",
    "links.9.delay": "5 ms",
    "links.9.queue": "unlimited",
}
#: Links by their place in the file.
_LONG_LINKS, _SHARED = (2, 3, 4), 6
_NEARER = {f"links.{link}.delay": "100 ms" for link in _LONG_LINKS}


@dataclass(frozen=True)
class Path:
    """A network whose last hops are all fast."""

    name: str
    settings: Mapping[str, Any]
    seeds: int = simulation.SEEDS


#: As simulated; with long round trips that are not quite so long; and with ten times the rate.
SIMULATED = Path("as simulated", _LAST_HOP)
NEARER = Path("nearer", {**_LAST_HOP, **_NEARER})
FAST = Path(
    "ten times as fast",
    {
        **_LAST_HOP,
        **_NEARER,
        "links.*.rate": "100 Mbit/s",
        f"links.{_SHARED}.rate": "15 Mbit/s",
        f"links.{_SHARED}.queue": "500 packets",
        "links.5.queue": "500 packets",
        "flows.*.tcp.receive_window": "1 MiB",
    },
    seeds=10,
)
PATHS = (SIMULATED, NEARER, FAST)


def cell(path: Path, policy: str, rtt: str = NO_RTT, cap: float = UNCAPPED) -> Cell:
    """A policy where all last hops are fast."""
    settings = dict(path.settings)
    settings.update(simulation.with_policy(policies.increase(policy, rtt, cap=cap or None), policy))
    return Cell(
        Case(path=path.name, policy=policy, rtt=rtt, cap=cap),
        simulation.SCENARIO,
        settings,
        path.seeds,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Every policy, and those that outgrow slow start with a cap, too."""
    found = []
    for path in PATHS:
        for policy in (STANDARD, *ALTERNATIVES):
            for rtt in policies.round_trips(policy):
                caps = (UNCAPPED, CAPPED) if policy in (CR, CANIT) else (UNCAPPED,)
                found += [cell(path, policy, rtt, cap) for cap in caps]
    return found


def plain(case: Case) -> Case:
    """The same with the standard policy."""
    return case.but(policy=STANDARD, rtt=NO_RTT, cap=UNCAPPED)


def _over(runs: Runs, path: Path, *, capped: bool = False) -> Sequence[Case]:
    """The policies over a path, the standard first."""
    found = runs.cases(path=path.name)
    return [case for case in found if capped or case["cap"] == UNCAPPED]


def _fairer(runs: Runs, path: Path) -> Answer:
    plain, *others = _over(runs, path)
    fairer = every(
        [Check(runs.ratio(case, plain, "fairness"), above(1 + NEGLIGIBLE)) for case in others]
    )
    return Answer(
        f"Where all last hops are fast ({path.name}), the policies are fairer than the standard.",
        "§2.3.1",
        fairer.verdict,
        f"Jain's index of the five goodputs: {words.each(runs, (plain, *others), 'fairness')}."
        f" {fairer.tally}",
        plain,
        runs.mean(plain, "fairness"),
        effect_of="policy",
        criterion=fairer.criterion,
    )


def _share(runs: Runs, path: Path) -> Answer:
    cases = _over(runs, path)
    best = max(cases, key=lambda case: words.value(runs, case, "long_share"))
    pairs = [(case, cases[0]) for case in cases[1:]]
    return Answer(
        f"What do the three connections with long round trips get ({path.name}), and what does it"
        " cost"
        " all five together?",
        "§2.2.1",
        None,
        f"Fair are {percent(FAIR)}. In %: {words.each(runs, cases, 'long_share', 0.01)}. Goodput"
        " of all"
        f" over that with the standard: {words.ratios(runs, pairs, 'all_payload_bps')}.",
        best,
        runs.mean(best, "long_share"),
    )


def _cap(runs: Runs) -> Answer:
    pairs = [(case, case.but(cap=UNCAPPED)) for case in runs.cases(cap=CAPPED)]

    def where(case: Case) -> str:
        return f"{case['path']}, {words.policy(case.but(cap=UNCAPPED))}"

    return Answer(
        "What does a cap of one segment for each acknowledgment, as fast as slow start, change?",
        "§2.3.1",
        None,
        f"Jain's index over that without it: {words.ratios(runs, pairs, 'fairness', where)};"
        " goodput of"
        f" all: {words.ratios(runs, pairs, 'all_payload_bps', where)}.",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """The fairness of each policy, and its price."""
    each = [(_fairer(runs, path), _share(runs, path)) for path in PATHS]
    return [*(answer for pair in each for answer in pair), _cap(runs)]


def _outcome(runs: Runs) -> str:
    summary = []
    for path in PATHS:
        plain, *others = _over(runs, path)
        best = max(others, key=lambda case: words.value(runs, case, "fairness"))
        before, after = (words.value(runs, case, "fairness") for case in (plain, best))
        summary.append(f"{path.name} from {before:.2f} to {after:.2f} ({words.policy(best)})")
    return f"Jain's index goes up at most: {'; '.join(summary)}."


def _panel(metric: str, title: str, ylabel: str, scale: float, top: float | None) -> draw.Panel:
    lines = [
        policies.line(policy, rtt, words.policy({"policy": policy, "rtt": rtt}), cap=UNCAPPED)
        for policy in (STANDARD, *ALTERNATIVES)
        for rtt in policies.round_trips(policy)
    ]
    return draw.Panel(
        title,
        {},
        lambda runs, case: runs.mean(case, metric),
        ylabel,
        lines=lines,
        scale=scale,
        top=top,
    )


def _figure(runs: Runs) -> Any:
    row = [
        _panel("fairness", "Fairness", "Jain's index", 1.0, 1.03),
        _panel("long_share", "Long round trips", "share, %", 0.01, None),
        _panel("all_payload_bps", "All five", "goodput, kb/s", 1e3, None),
    ]
    words_of = {path.name: path.name.replace(" ", "\n", 1) for path in PATHS}
    return draw.panels(runs, [row], "path", "", words_of)


MEASURES = (
    mean("fairness", "1", "Jain's index"),
    mean("long_share", "1", "long round trips' share, %", 0.01),
    mean("all_payload_bps", "bit/s", "goodput of all, kb/s", 1e3),
    mean("payload_bps", "bit/s", "connection 3, kb/s", 1e3),
)

STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/fast",
    title="What the policies are for: fast last hops",
    asks="The other side: where the shared link is the bottleneck of all connections, how much"
    " fairer do the policies make it to connections with long round trips?",
    where="§2.2.1, §2.3.1",
    method=(
        "The simulations' topology, but that sink 3's last hop is as the others': 10 Mb/s, 5 ms."
        " Connections 3, 4 and 5 have the long round trip.",
        "As simulated: with the calibrated delays, round trips of 72 and 870 ms without queues."
        " Nearer: 100"
        " ms instead of 400, 72 and 270 ms. Ten times as fast: the same with 15 Mb/s, a buffer of"
        " 700"
        " packets, other links of 100 Mb/s and windows of 1 MiB; 10 runs.",
        simulation.METHOD[3],
        "Where there is a cap, no acknowledgment adds more than a segment. Jain's index is 1 if"
        " all five"
        " have as much, and 0.2 if one has everything.",
    ),
    cells=cells,
    observe=simulation.observe(),
    measures=MEASURES,
    figures=[
        Drawn(
            "Fairness, the part of those with long round trips, and the goodput of all. Without"
            " the cap.",
            _figure,
        )
    ],
    answers=answers,
    keys={"path": "path", "policy": "policy", "rtt": "round trip", "cap": "cap"},
    outcome=_outcome,
)
