"""The policy off on the connection whose last hop is slow (§3.2.3): tables 3.3, 3.4."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import policies, simulation, words
from lasthop.publications.obanaik2003.fairness.policies import ALTERNATIVES, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import ALL, LINK_NAMES, LTN, OTHERS, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, percent

_METRIC = "goodput_bps"


def cells() -> list[Cell]:
    """Every policy on all and on the others only, and the standard everywhere."""
    found = []
    for link in (SLOW, LTN):
        found.append(simulation.cell(link, STANDARD, enabled=ALL))
        found += [
            simulation.cell(link, policy, rtt, enabled=enabled)
            for policy in ALTERNATIVES
            for rtt in policies.round_trips(policy)
            for enabled in (ALL, OTHERS)
        ]
    return found


def _where(case: Case) -> str:
    return f"{LINK_NAMES[case['link']]}, {words.policy(case)}"


def _better_without(runs: Runs) -> Judgement:
    pairs = [(case, case.but(enabled=ALL)) for case in runs.cases(enabled=OTHERS)]
    better = [Check(runs.ratio(*pair, _METRIC), above(1 + NEGLIGIBLE)) for pair in pairs]
    return every(better).judged(
        "Goodput without the policy over that with it:"
        f" {words.ratios(runs, pairs, _METRIC, _where)}.",
    )


def _best_if_none(runs: Runs) -> Judgement:
    pairs = [
        (case, simulation.standard(case["link"], enabled=ALL))
        for case in runs.cases(enabled=OTHERS)
    ]
    worse = [Check(runs.ratio(*pair, _METRIC), below(1 - NEGLIGIBLE)) for pair in pairs]
    return every(worse).judged(
        "Goodput if the others have the policy, over that if none has:"
        f" {words.ratios(runs, pairs, _METRIC, _where)}. Constant rate with c = 10 is"
        " gentler than the standard where the round trip is shorter than 316 ms, as that of"
        " connections 1 and 2 is: they leave room.",
    )


def _outcome(runs: Runs) -> str:
    back = [
        runs.ratio(case, simulation.standard(case["link"], enabled=ALL), _METRIC)
        for case in runs.cases(enabled=OTHERS)
    ]
    known = [ratio.value for ratio in back if ratio is not None]
    near = sum(abs(value - 1) < SMALL for value in known)
    return (
        f"With the policy off for it, the connection has {percent(min(known))} to"
        f" {percent(max(known))} of what it has if none has one; within {percent(SMALL)} in"
        f" {near} of"
        f" {len(known)} cells."
    )


def _panel(link: str) -> draw.Panel:
    return draw.Panel(
        LINK_NAMES[link].capitalize(),
        {"link": link},
        lambda runs, case: runs.mean(case, _METRIC),
        "goodput, kb/s",
        lines=[
            policies.line(STANDARD),
            *(
                policies.line(policy, rtt, _label(policy, rtt))
                for policy in ALTERNATIVES
                for rtt in policies.round_trips(policy)
            ),
        ],
        scale=1e3,
    )


def _label(policy: str, rtt: str) -> str:
    return words.policy({"policy": policy, "rtt": rtt})


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/disabled",
    title="The policy off where the last hop is slow",
    asks="What if the connection over the slow last hop grows as the standard says, and only the"
    " others"
    " have the policy?",
    where="§3.2.3, tables 3.3, 3.4",
    method=simulation.METHOD,
    cells=cells,
    observe=simulation.observe(),
    measures=simulation.MEASURES,
    figures=[
        Drawn(
            "Goodput of connection 3, by who has the policy.",
            lambda runs: draw.panels(
                runs,
                [[_panel(SLOW), _panel(LTN)]],
                "enabled",
                "who has the policy",
                {ALL: "all", OTHERS: "all but connection 3"},
            ),
        )
    ],
    keys={**simulation.KEYS, "enabled": "policy on"},
    tests={"better-without": _better_without, "best-if-none": _best_if_none},
    most_seeds=simulation.MOST_SEEDS,
    outcome=_outcome,
)
