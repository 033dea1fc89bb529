"""Beyond the thesis: a policy that finds out that its own last hop is the bottleneck."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lasthop.publications.obanaik2003 import fast, policies, simulation, words
from lasthop.publications.obanaik2003.fast import FAST, NEARER, Path
from lasthop.publications.obanaik2003.policies import (
    AUTO,
    CANIT,
    NO_RTT,
    PROPAGATION,
    SMOOTHED,
    STANDARD,
)
from lasthop.publications.obanaik2003.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.stats import Estimate, mean_interval

#: How much of CANIT's fairness is asked for.
WANTED = 0.9
_TRIPS = (SMOOTHED, PROPAGATION)
_SLOW = {link: Path(LINK_NAMES[link], simulation.LINKS[link]) for link in (SLOW, LTN)}
#: Slow last hops, and fast ones.
PATHS = (*_SLOW.values(), NEARER, FAST)


def cell(path: Path, policy: str, rtt: str = NO_RTT) -> Cell:
    """A policy on all connections of a path; auto goes by CANIT where there is room."""
    increase: Any = policies.increase(policy, rtt)
    if policy == AUTO:
        increase = {"policy": AUTO, "fast": policies.increase(CANIT, rtt)}
    return Cell(
        Case(path=path.name, policy=policy, rtt=rtt),
        simulation.SCENARIO,
        {**path.settings, **simulation.with_policy(increase, policy)},
        path.seeds,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Standard, and CANIT and auto by both round trips, everywhere."""
    return [
        found
        for path in PATHS
        for found in (
            cell(path, STANDARD),
            *(cell(path, policy, rtt) for rtt in _TRIPS for policy in (CANIT, AUTO)),
        )
    ]


def _cases(runs: Runs, path: Path, rtt: str) -> tuple[Case, Case, Case]:
    """Standard, CANIT and auto."""
    standard = runs.case(path=path.name, policy=STANDARD)
    canit, auto = (standard.but(policy=policy, rtt=rtt) for policy in (CANIT, AUTO))
    return standard, canit, auto


def gain(runs: Runs, path: Path, rtt: str) -> Estimate:
    """Auto's gain in Jain's index over the standard, as a share of CANIT's, over pairs of runs."""
    standard, canit, auto = (runs.values(case, "fairness") for case in _cases(runs, path, rtt))
    full = sum(canit) / len(canit) - sum(standard) / len(standard)
    return mean_interval([(a - s) / full for a, s in zip(auto, standard, strict=True)])


def _as_standard(runs: Runs, path: Path) -> Answer:
    pairs = [(_cases(runs, path, rtt)[2], _cases(runs, path, rtt)[0]) for rtt in _TRIPS]
    canits = [(_cases(runs, path, rtt)[1], _cases(runs, path, rtt)[0]) for rtt in _TRIPS]
    ratios = [runs.ratio(*pair, "goodput_bps") for pair in pairs]
    cases = runs.cases(path=path.name)
    return Answer(
        f"Over a {path.name}, auto is as good as the standard, within the noise of the runs.",
        "§3.4",
        all(ratio is not None and ratio.hi >= 1 for ratio in ratios),
        "Goodput over the standard's:"
        f" {words.ratios(runs, [*pairs, *canits], 'goodput_bps')}. Losses:"
        f" {words.each(runs, cases, 'losses_packets')}.",
        pairs[0][0],
        ratios[0],
    )


def _fair(runs: Runs, path: Path) -> Answer:
    shares = {rtt: gain(runs, path, rtt) for rtt in _TRIPS}
    cases = runs.cases(path=path.name)
    told = ", ".join(f"{rtt} {words.number(share, 0.01)}" for rtt, share in shares.items())
    return Answer(
        f"Over fast last hops ({path.name}) it has at least {100 * WANTED:.0f} % of what CANIT"
        " gains in fairness.",
        "§3.4",
        all(share.value >= WANTED for share in shares.values()),
        f"In % of CANIT's gain, by the round trip: {told}. Jain's index:"
        f" {words.each(runs, cases, 'fairness')}; long round trips' share in %:"
        f" {words.each(runs, cases, 'long_share', 0.01)}; goodput of all, kb/s:"
        f" {words.each(runs, cases, 'all_payload_bps', 1e3)}.",
        _cases(runs, path, _TRIPS[0])[2],
        shares[_TRIPS[0]],
    )


def _outcome(runs: Runs) -> str:
    ratios = []
    for path in _SLOW.values():
        standard, _, auto = _cases(runs, path, SMOOTHED)
        ratios.append(f"{words.number(runs.ratio(auto, standard, 'goodput_bps'))} ({path.name})")
    shares = [words.number(gain(runs, FAST, rtt), 0.01) for rtt in _TRIPS]
    return (
        f"Auto's goodput over the standard's is {' and '.join(ratios)}; over fast last hops it has"
        f" {' and '.join(shares)} % of CANIT's gain in fairness, by the measured round trip and by"
        " the propagation delay."
    )


def _lines() -> list[draw.Line]:
    looks = [
        policies.line(STANDARD),
        *(
            policies.line(policy, rtt, words.policy({"policy": policy, "rtt": rtt}))
            for policy in (CANIT, AUTO)
            for rtt in _TRIPS
        ),
    ]
    # By another mark: there are no lines to be dashed.
    return [
        replace(look, style="", marker="x" if look.where["rtt"] == PROPAGATION else look.marker)
        for look in looks
    ]


def _figure(runs: Runs) -> Any:
    def panel(title: str, metric: str, ylabel: str, scale: float = 1.0) -> draw.Panel:
        return draw.Panel(
            title,
            {},
            lambda runs, case: runs.mean(case, metric),
            ylabel,
            lines=_lines(),
            scale=scale,
        )

    row = [
        panel("Connection 3", "goodput_bps", "goodput, kb/s", 1e3),
        panel("Connection 3", "losses_packets", "losses at its last hop"),
        panel("Everybody", "fairness", "Jain's index"),
    ]
    words_of = {path.name: path.name.replace(" ", "\n", 1) for path in PATHS}
    return draw.panels(runs, [row], "path", "", words_of)


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/auto",
    title="A policy that knows when not to",
    asks="The thesis asks that the policies be turned off where the connection's own last hop is"
    " the"
    " bottleneck, and leaves open who is to know. Auto finds out by itself. Is it as good as the"
    " standard"
    " there, and as fair as CANIT elsewhere?",
    where="§3.4",
    method=(
        *simulation.METHOD,
        "The fast paths are those of fairness/fast. All five connections have the policy.",
    ),
    cells=cells,
    observe=simulation.observe(),
    measures=(*simulation.MEASURES[:2], *fast.MEASURES[:3]),
    figures=[Drawn("Standard, CANIT and auto over slow and fast last hops.", _figure)],
    answers=lambda runs: [
        *(_as_standard(runs, path) for path in _SLOW.values()),
        *(_fair(runs, path) for path in (NEARER, FAST)),
    ],
    keys={"path": "path", "policy": "policy", "rtt": "round trip"},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
