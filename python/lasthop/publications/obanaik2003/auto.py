"""Beyond the thesis: a policy that finds out that its own last hop is the bottleneck."""

from __future__ import annotations

from typing import Any

from lasthop.publications.obanaik2003 import fast, policies, simulation, words
from lasthop.publications.obanaik2003.fast import FAST, NEARER, Path
from lasthop.publications.obanaik2003.policies import AUTO, CANIT, STANDARD
from lasthop.publications.obanaik2003.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.stats import Estimate, mean_interval

#: How much of CANIT's fairness is asked for.
WANTED = 0.9
_SLOW = {link: Path(LINK_NAMES[link], simulation.LINKS[link]) for link in (SLOW, LTN)}
#: Slow last hops, and fast ones.
PATHS = (*_SLOW.values(), NEARER, FAST)


def cell(path: Path, policy: str) -> Cell:
    """A policy on all connections of a path."""
    return Cell(
        Case(path=path.name, policy=policy),
        simulation.SCENARIO,
        {**path.settings, **simulation.with_policy(policies.increase(policy), policy)},
        path.seeds,
        simulation.QUICK_SEEDS,
    )


def cells() -> list[Cell]:
    """Standard, CANIT and auto everywhere."""
    return [cell(path, policy) for path in PATHS for policy in (STANDARD, CANIT, AUTO)]


def gain(runs: Runs, path: Path) -> Estimate:
    """Auto's gain in Jain's index over the standard, as a share of CANIT's, over pairs of runs."""
    standard, canit, auto = (
        runs.values(runs.case(path=path.name, policy=policy), "fairness")
        for policy in (STANDARD, CANIT, AUTO)
    )
    full = sum(canit) / len(canit) - sum(standard) / len(standard)
    return mean_interval([(a - s) / full for a, s in zip(auto, standard, strict=True)])


def _as_standard(runs: Runs, path: Path) -> Answer:
    standard, canit, auto = _cases(runs, path)
    ratio = runs.ratio(auto, standard, "goodput_bps")
    assert ratio is not None
    return Answer(
        f"Over a {path.name}, auto is as good as the standard, within the noise of the runs.",
        "§3.4",
        ratio.hi >= 1,
        f"Goodput over the standard's: auto {words.number(ratio)},"
        f" CANIT {words.number(runs.ratio(canit, standard, 'goodput_bps'))}. Losses:"
        f" {words.each(runs, (standard, auto, canit), 'losses_packets')}.",
        auto,
        ratio,
    )


def _cases(runs: Runs, path: Path) -> list[Case]:
    return [runs.case(path=path.name, policy=policy) for policy in (STANDARD, CANIT, AUTO)]


def _fair(runs: Runs, path: Path) -> Answer:
    share = gain(runs, path)
    cases = _cases(runs, path)
    return Answer(
        f"Over fast last hops ({path.name}) it has at least {100 * WANTED:.0f} % of what CANIT"
        " gains in"
        " fairness.",
        "§3.4",
        share.value >= WANTED,
        f"{words.number(share, 0.01)} % of CANIT's gain. Jain's index:"
        f" {words.each(runs, cases, 'fairness')}; long round trips' share in %:"
        f" {words.each(runs, cases, 'long_share', 0.01)}; goodput of all, kb/s:"
        f" {words.each(runs, cases, 'all_payload_bps', 1e3)}.",
        cases[-1],
        share,
    )


def _outcome(runs: Runs) -> str:
    ratios = []
    for path in _SLOW.values():
        standard, _, auto = _cases(runs, path)
        ratios.append(f"{words.number(runs.ratio(auto, standard, 'goodput_bps'))} ({path.name})")
    return (
        f"Auto's goodput over the standard's is {' and '.join(ratios)}; over fast last hops it has"
        f" {words.number(gain(runs, FAST), 0.01)} % of CANIT's gain in fairness."
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
    keys={"path": "path", "policy": "policy"},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
