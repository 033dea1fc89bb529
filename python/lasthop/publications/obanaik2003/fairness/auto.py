"""Beyond the thesis: a policy that finds out that its own last hop is the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lasthop.publications.obanaik2003.fairness import fast, policies, simulation, words
from lasthop.publications.obanaik2003.fairness.fast import FAST, NEARER, Path
from lasthop.publications.obanaik2003.fairness.policies import (
    AUTO,
    CANIT,
    NO_RTT,
    PROPAGATION,
    SMOOTHED,
    STANDARD,
)
from lasthop.publications.obanaik2003.fairness.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, above, every
from lasthop.publications.study.words import SMALL, percent
from lasthop.stats import Estimate, mean_interval

#: How much of CANIT's fairness is asked for.
WANTED = 0.9
_TRIPS = (SMOOTHED, PROPAGATION)
#: Slow last hops: those of the thesis, and one at the end of a shorter way.
_SLOW = (
    *(Path(LINK_NAMES[link], simulation.LINKS[link]) for link in (SLOW, LTN)),
    Path(
        "slow link, nearer",
        {**simulation.LINKS[SLOW], **{f"links.{link}.delay": "100 ms" for link in (2, 3, 4)}},
    ),
)
_FAST = (NEARER, FAST)
#: The connections with the policy; all others have the standard.
ALL, OWN, OTHERS = "all", "connection 3", "the others"
_FLOWS = {ALL: range(5), OWN: (2,), OTHERS: (0, 1, 3, 4)}


def cell(path: Path, policy: str, who: str = ALL, rtt: str = NO_RTT) -> Cell:
    """A policy on some connections of a path; auto goes by CANIT where there is room."""
    increase: Any = policies.increase(policy, rtt)
    if policy == AUTO:
        increase = {"policy": AUTO, "fast": policies.increase(CANIT, rtt)}
    return Cell(
        Case(path=path.name, policy=policy, rtt=rtt, enabled=who),
        simulation.SCENARIO,
        {
            **path.settings,
            **{f"flows.{flow}.tcp.increase": increase for flow in _FLOWS[who]},
        },
        path.seeds,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Over slow last hops on each side and on both; over fast ones on all, by both round trips."""
    found = [cell(path, STANDARD) for path in (*_SLOW, *_FAST)]
    for path in _SLOW:
        for policy in (CANIT, AUTO):
            found += [cell(path, policy, who, SMOOTHED) for who in (OWN, OTHERS, ALL)]
    for path in _FAST:
        found += [cell(path, policy, ALL, rtt) for policy in (CANIT, AUTO) for rtt in _TRIPS]
    return found


def _standard(runs: Runs, path: Path) -> Case:
    return runs.case(path=path.name, policy=STANDARD)


def gain(runs: Runs, path: Path, rtt: str) -> Estimate:
    """Auto's gain in Jain's index over the standard, as a share of CANIT's, over pairs of runs."""
    plain = _standard(runs, path)
    cases = (plain, *(plain.but(policy=policy, rtt=rtt) for policy in (CANIT, AUTO)))
    standard, canit, auto = (runs.values(case, "fairness") for case in cases)
    full = sum(canit) / len(canit) - sum(standard) / len(standard)
    return mean_interval([(a - s) / full for a, s in zip(auto, standard, strict=True)])


def _pairs(runs: Runs, path: Path, policy: str) -> list[tuple[Case, Case]]:
    """Connection 3 with the policy and without: the others without it, and with it."""
    own, others, together = (
        runs.case(path=path.name, policy=policy, enabled=who) for who in (OWN, OTHERS, ALL)
    )
    return [(own, _standard(runs, path)), (together, others)]


def _as_standard(runs: Runs, path: Path) -> Answer:
    pairs = _pairs(runs, path, AUTO)
    ratios = [runs.ratio(*pair, "goodput_bps") for pair in pairs]
    as_good = every([Check(ratio, above(1 - SMALL)) for ratio in ratios])
    losses = (pairs[0][1], pairs[0][0], _pairs(runs, path, CANIT)[0][0])
    return Answer(
        f"Over a {path.name}, auto is as good as the standard, give or take {percent(SMALL)}.",
        "§3.4",
        as_good.verdict,
        "Goodput of connection 3 with it over that with the standard, if the others have the"
        f" standard: {words.number(ratios[0])}, if they have it, too: {words.number(ratios[1])};"
        f" with CANIT: {words.ratios(runs, _pairs(runs, path, CANIT), 'goodput_bps', _who)}."
        f" Losses if only connection 3 has it: {words.each(runs, losses, 'losses_packets')}.",
        pairs[0][0],
        ratios[0],
        effect_of="none",
        criterion=as_good.criterion,
    )


def _who(case: Case) -> str:
    return str(case["enabled"])


def _fair(runs: Runs, path: Path) -> Answer:
    shares = {rtt: gain(runs, path, rtt) for rtt in _TRIPS}
    cases = runs.cases(path=path.name)
    summary = ", ".join(f"{rtt} {words.number(share, 0.01)}" for rtt, share in shares.items())
    return Answer(
        f"Over fast last hops ({path.name}) it has at least {100 * WANTED:.0f} % of what CANIT"
        " gains in fairness.",
        "§3.4",
        (decides := every([Check(share, above(WANTED)) for share in shares.values()])).verdict,
        f"In % of CANIT's gain, by the round trip: {summary}. Jain's index:"
        f" {words.each(runs, cases, 'fairness')}; long round trips' share in %:"
        f" {words.each(runs, cases, 'long_share', 0.01)}; goodput of all, kb/s:"
        f" {words.each(runs, cases, 'all_payload_bps', 1e3)}.",
        _standard(runs, path).but(policy=AUTO, rtt=SMOOTHED),
        shares[SMOOTHED],
        effect_of="policy",
        criterion=decides.criterion,
    )


def _outcome(runs: Runs) -> str:
    ratios = []
    for path in _SLOW:
        ratio = runs.ratio(*_pairs(runs, path, AUTO)[0], "goodput_bps")
        ratios.append(f"{words.number(ratio)} ({path.name})")
    shares = [words.number(gain(runs, FAST, rtt), 0.01) for rtt in _TRIPS]
    return (
        f"Auto's goodput over the standard's is {', '.join(ratios)}; over fast last hops it has"
        f" {' and '.join(shares)} % of CANIT's gain in fairness, by the measured round trip and by"
        " the propagation delay."
    )


def _lines(*, fast: bool) -> list[draw.Line]:
    trips, who = (_TRIPS, ALL) if fast else ((SMOOTHED,), OWN)
    looks = [
        policies.line(policy, rtt, words.policy({"policy": policy, "rtt": rtt}), enabled=who)
        for policy in (CANIT, AUTO)
        for rtt in trips
    ]
    # By another mark: there are no lines to be dashed.
    return [
        replace(look, style="", marker="x" if look.where["rtt"] == PROPAGATION else look.marker)
        for look in (policies.line(STANDARD), *looks)
    ]


def _figure(paths: Sequence[Path], metrics: Sequence[tuple[str, str, str, float]]) -> Any:
    def panel(title: str, metric: str, ylabel: str, scale: float) -> draw.Panel:
        return draw.Panel(
            title,
            {},
            lambda runs, case: runs.mean(case, metric),
            ylabel,
            lines=_lines(fast=paths == _FAST),
            scale=scale,
        )

    row = [panel(*metric) for metric in metrics]
    names = {path.name: path.name.replace(" ", "\n", 1) for path in paths}
    return lambda runs: draw.panels(runs, [row], "path", "", names)


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
        "Over slow last hops, the effect of the connection's own policy is separated from the"
        " effect of the others' policy on it. One more slow link is at the end of a way of 100 ms"
        " instead of 400.",
        "The fast paths are those of fairness/fast, with the policy on all five connections.",
        "Auto goes by CANIT where there is room, or else grows as the standard does.",
    ),
    cells=cells,
    observe=simulation.observe(),
    measures=(*simulation.MEASURES[:2], *fast.MEASURES[:3]),
    figures=[
        Drawn(
            "Slow last hops: connection 3 with a policy, the others with the standard.",
            _figure(
                _SLOW,
                (
                    ("Goodput", "goodput_bps", "kb/s", 1e3),
                    ("Losses", "losses_packets", "packets", 1.0),
                ),
            ),
        ),
        Drawn(
            "Fast last hops: the policy on all connections.",
            _figure(
                _FAST,
                (
                    ("Fairness", "fairness", "Jain's index", 1.0),
                    ("Long round trips", "long_share", "share, %", 0.01),
                ),
            ),
        ),
    ],
    answers=lambda runs: [
        *(_as_standard(runs, path) for path in _SLOW),
        *(_fair(runs, path) for path in _FAST),
    ],
    keys={"path": "path", "policy": "policy", "rtt": "round trip", "enabled": "policy on"},
    outcome=_outcome,
)
