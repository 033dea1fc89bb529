"""Beyond the thesis: a policy that finds out that its own last hop is the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.obanaik2003 import fast, policies, simulation, single, words
from lasthop.publications.obanaik2003.fast import FAST
from lasthop.publications.obanaik2003.policies import AUTO, CANIT, STANDARD
from lasthop.publications.obanaik2003.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn
from lasthop.stats import Estimate, mean_interval

#: How much of CANIT's fairness is asked for.
WANTED = 0.9
LINKS: Mapping[str, Mapping[str, str]] = {**simulation.LINKS, FAST: fast.LINK}
NAMES = {**LINK_NAMES, FAST: "fast last hop"}
SEEDS = simulation.SEEDS


def cell(link: str, policy: str) -> Cell:
    """A policy over one of three last hops."""
    value: Any = policies.increase(policy)
    return Cell(
        Case(link=link, policy=policy),
        simulation.SCENARIO,
        {**LINKS[link], **simulation.with_policy(value, policy)},
        SEEDS,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Standard, CANIT and auto everywhere."""
    return [cell(link, policy) for link in LINKS for policy in (STANDARD, CANIT, AUTO)]


def gain(runs: Runs) -> Estimate:
    """Auto's gain in Jain's index over the standard, as a share of CANIT's, over pairs of runs."""
    standard, canit, auto = (
        runs.values(runs.case(link=FAST, policy=policy), "fairness")
        for policy in (STANDARD, CANIT, AUTO)
    )
    full = sum(canit) / len(canit) - sum(standard) / len(standard)
    return mean_interval([(a - s) / full for a, s in zip(auto, standard, strict=True)])


def _as_standard(link: str, runs: Runs) -> Answer:
    auto, canit, standard = (
        runs.case(link=link, policy=policy) for policy in (AUTO, CANIT, STANDARD)
    )
    ratio = runs.ratio(auto, standard, "goodput_bps")
    assert ratio is not None
    return Answer(
        f"Over a {NAMES[link]}, auto is as good as the standard, within the noise of the runs.",
        "§3.4",
        ratio.hi >= 1,
        f"Goodput over the standard’s: auto {words.number(ratio)},"
        f" CANIT {words.number(runs.ratio(canit, standard, 'goodput_bps'))}. Losses:"
        f" {words.each(runs, (standard, auto, canit), 'losses_packets')}.",
        auto,
        ratio,
    )


def _fair(runs: Runs) -> Answer:
    share = gain(runs)
    cases = [runs.case(link=FAST, policy=policy) for policy in (STANDARD, AUTO, CANIT)]
    return Answer(
        f"Over fast last hops it has at least {100 * WANTED:.0f} % of what CANIT gains in fairness.",
        "§3.4",
        share.value >= WANTED,
        f"{words.number(share, 0.01)} % of CANIT’s gain. Jain’s index:"
        f" {words.each(runs, cases, 'fairness')}; long round trips’ share in %:"
        f" {words.each(runs, cases, 'long_share', 0.01)}.",
        cases[1],
        share,
    )


def _outcome(runs: Runs) -> str:
    ratios = []
    for link in (SLOW, LTN):
        auto, standard = (runs.case(link=link, policy=policy) for policy in (AUTO, STANDARD))
        ratios.append(f"{words.number(runs.ratio(auto, standard, 'goodput_bps'))} ({NAMES[link]})")
    return (
        f"Auto’s goodput over the standard’s is {' and '.join(ratios)}; over fast last hops it has"
        f" {words.number(gain(runs), 0.01)} % of CANIT’s gain in fairness."
    )


def _lines() -> list[draw.Line]:
    looks = (policies.line(policy) for policy in (STANDARD, CANIT, AUTO))
    return [
        draw.Line(look.label, {"policy": look.where["policy"]}, look.colour, look.marker, "")
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
        panel("Everybody", "fairness", "Jain’s index"),
    ]
    return draw.panels(
        runs, [row], "link", "connection 3’s last hop", {SLOW: "slow", LTN: "long thin", FAST: "fast"}
    )


STUDY = single.SingleRuns(
    publication=simulation.PUBLICATION,
    experiment="fairness/auto",
    title="A policy that knows when not to",
    asks="The thesis asks that the policies be turned off where the connection’s own last hop is the"
    " bottleneck, and leaves open who is to know. Auto finds out by itself. Is it as good as the standard"
    " there, and as fair as CANIT elsewhere?",
    where="§3.4",
    method=(
        *simulation.METHOD,
        "The fast last hop is 10 Mb/s and 5 ms, as the others’. All five connections have the policy.",
    ),
    cells=cells,
    collect=single.no_rows,
    observe=fast.observe,
    measures=(*simulation.MEASURES[:2], *fast.MEASURES[:3]),
    figures=[Drawn("Standard, CANIT and auto over three last hops.", _figure)],
    answers=lambda runs: [*(_as_standard(link, runs) for link in (SLOW, LTN)), _fair(runs)],
    keys={"link": "last hop", "policy": "policy"},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
