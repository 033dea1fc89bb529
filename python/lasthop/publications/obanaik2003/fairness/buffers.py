"""The last-hop router's buffer (§3.2.2): figures 3.4, 3.5, 3.6."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from lasthop.publications.obanaik2003.fairness import policies, simulation, single, words
from lasthop.publications.obanaik2003.fairness.last_hop import TWICE
from lasthop.publications.obanaik2003.fairness.policies import ALTERNATIVES, POLICIES, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import (
    Check,
    Judgement,
    above,
    below,
    between,
    every,
    some,
)
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, percent

BUFFERS = (3, 5, 7, 10, 15, 20, 30, 40)
#: Those of figure 3.6.
_OF_RTT = (3, 7, 15)
WORDS: Mapping[Any, str] = {size: str(size) for size in BUFFERS}
_KEY = "buffer_packets"


def cells() -> list[Cell]:
    """Every policy, by the round trip that the sender measures, at every size."""
    return [
        simulation.cell(
            link,
            policy,
            policies.default_rtt(policy),
            settings={"links.9.queue": f"{size} packets"},
            buffer_packets=size,
        )
        for link in (SLOW, LTN)
        for policy in POLICIES
        for size in BUFFERS
    ]


def _each(runs: Runs) -> list[tuple[str, str]]:
    return [(link, policy) for link in (SLOW, LTN) for policy in POLICIES]


def _summary(runs: Runs, metric: str, sizes: tuple[int, ...], scale: float = 1.0) -> str:
    found = []
    for link, policy in _each(runs):
        cases = runs.cases(link=link, policy=policy, buffer_packets=sizes)
        means = " ".join(f"{words.value(runs, case, metric) / scale:.3g}" for case in cases)
        found.append(f"{LINK_NAMES[link]}, {words.policy(cases[0])} {means}")
    return f"With {', '.join(map(str, sizes))} packets: {'; '.join(found)}"


_ENDS = BUFFERS[0], BUFFERS[-1]


def _first_and_last(runs: Runs) -> list[tuple[Case, Case]]:
    """Of every policy but the standard: with the largest buffer and with the smallest."""
    return [
        (case.but(**{_KEY: BUFFERS[-1]}), case)
        for case in runs.cases(policy=ALTERNATIVES, buffer_packets=BUFFERS[0])
    ]


def _absorb(runs: Runs) -> Judgement:
    more = [
        Check(runs.ratio(*pair, "goodput_bps"), above(1 + NEGLIGIBLE))
        for pair in _first_and_last(runs)
    ]
    return every(more).judged(f"{_summary(runs, 'goodput_bps', _ENDS, 1e3)} kb/s.")


def _fewer(runs: Runs) -> Judgement:
    fewer = [
        Check(runs.difference(*pair, "loss_share"), below(0.0)) for pair in _first_and_last(runs)
    ]
    return every(fewer).judged(
        f"{_summary(runs, 'loss_share', _ENDS, 0.01)} % of packets lost."
        f" {_summary(runs, 'losses_packets', _ENDS)} losses."
    )


def _no_impact(runs: Runs) -> Judgement:
    pairs = [
        (case, simulation.standard(case["link"], buffer_packets=BUFFERS[-1]))
        for case in runs.cases(policy=ALTERNATIVES, buffer_packets=BUFFERS[-1])
    ]
    alike = [
        Check(runs.ratio(*pair, "goodput_bps"), between(1 - SMALL, 1 + SMALL)) for pair in pairs
    ]
    summary = words.ratios(runs, pairs, "goodput_bps", _where)
    return every(alike).judged(
        f"Goodput over the standard's with {BUFFERS[-1]} packets: {summary}. Little is taken as"
        f" {percent(SMALL)}."
    )


def _where(case: Case) -> str:
    return f"{LINK_NAMES[case['link']]}, {words.policy(case)}"


def _rtt(runs: Runs) -> Judgement:
    cases = runs.cases(link=LTN, policy=STANDARD, buffer_packets=_OF_RTT)
    grows = [
        Check(runs.difference(after, before, "rtt_s"), above(0.0))
        for before, after in pairwise(cases)
    ]
    return every(grows).judged(
        f"The mean smoothed round trip. {_summary(runs, 'rtt_s', _OF_RTT)} s.",
        runs.mean(cases[-1], "rtt_s"),
        cases[-1],
        "s",
    )


def _not_monotonic(runs: Runs) -> Judgement:
    steps = [
        (before, after)
        for link, policy in _each(runs)
        for before, after in pairwise(runs.cases(link=link, policy=policy))
    ]
    ratios = {pair: runs.ratio(pair[1], pair[0], "goodput_bps") for pair in steps}
    falls = [
        f"{_where(after)} from {before[_KEY]} to {after[_KEY]}: {words.number(ratio)}"
        for (before, after), ratio in ratios.items()
        if ratio is not None and ratio.value < 1
    ]
    runs_fall = sum(
        b < a
        for before, after in steps
        for a, b in zip(
            runs.values(before, "goodput_bps"), runs.values(after, "goodput_bps"), strict=False
        )
    )
    return some([Check(ratio, below(1 - NEGLIGIBLE)) for ratio in ratios.values()]).judged(
        f"The mean falls at {len(falls)} of {len(steps)} steps, and single runs at"
        f" {runs_fall} of {len(steps) * runs.seeds}. {'; '.join(falls)}.",
    )


def _least_losses(runs: Runs) -> Judgement:
    pairs = [
        (case, simulation.standard(case["link"], buffer_packets=case[_KEY]))
        for case in runs.cases(policy=ALTERNATIVES)
    ]
    more = [Check(runs.difference(*pair, "losses_packets", TWICE), above(0.0)) for pair in pairs]
    ratios = {case: runs.ratio(case, plain, "losses_packets") for case, plain in pairs}
    known = {case: ratio for case, ratio in ratios.items() if ratio is not None}
    few = [case for case, ratio in known.items() if ratio.value < TWICE]
    least = min((ratio.value for ratio in known.values()), default=math.nan)
    summary = "; ".join(
        f"{_where(case)}, {case[_KEY]} packets: {words.number(ratios[case])}" for case in few
    )
    return every(more).judged(
        f"Losses are less than {TWICE:g} times the standard's in {len(few)} of {len(pairs)}"
        f" cells; the least is {least:.2f} times. {summary}",
    )


def _outcome(runs: Runs) -> str:
    plain = runs.cases(link=LTN, policy=STANDARD, buffer_packets=(BUFFERS[0], BUFFERS[-1]))
    short, long = (words.value(runs, case, "rtt_s") for case in plain)
    return (
        f"Over the long thin network the standard's round trip grows from {short:.2f} s with"
        f" {BUFFERS[0]} packets to {long:.2f} s with {BUFFERS[-1]}."
    )


def _panel(link: str, metric: str, ylabel: str, scale: float = 1.0) -> draw.Panel:
    return draw.Panel(
        LINK_NAMES[link].capitalize(),
        {"link": link},
        lambda runs, case: runs.mean(case, metric),
        ylabel,
        lines=[policies.line(policy) for policy in POLICIES],
        scale=scale,
    )


def _goodput_and_losses(link: str, figure: str) -> Drawn:
    row = [
        _panel(link, "goodput_bps", "goodput, kb/s", 1e3),
        _panel(link, "losses_packets", "losses, packets"),
    ]
    return Drawn(
        f"Figure {figure}: goodput and losses of connection 3 over a {LINK_NAMES[link]}.",
        lambda runs: draw.panels(runs, [row], _KEY, "buffer, packets", WORDS),
    )


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/buffers",
    title="The buffer of the last-hop router",
    asks="Three packets cannot absorb a burst. What do larger buffers make of the policies, and"
    " at what"
    " price?",
    where="§3.2.2, figures 3.4 to 3.6",
    method=simulation.METHOD,
    cells=cells,
    observe=simulation.observe(single.FOLLOWED),
    measures=(*simulation.MEASURES, mean("loss_share", "1", "lost, %", 0.01), simulation.RTT),
    figures=[
        _goodput_and_losses(SLOW, "3.4"),
        _goodput_and_losses(LTN, "3.5"),
        Drawn(
            "Figure 3.6: the smoothed round trip of connection 3.",
            lambda runs: draw.panels(
                runs,
                [[_panel(link, "rtt_s", "round trip, s") for link in (SLOW, LTN)]],
                _KEY,
                "buffer, packets",
                WORDS,
            ),
        ),
    ],
    keys={**simulation.KEYS, _KEY: "buffer"},
    tests={
        "absorb": _absorb,
        "fewer-losses": _fewer,
        "no-impact-if-large": _no_impact,
        "rtt": _rtt,
        "not-monotonic": _not_monotonic,
        "standard-least-losses": _least_losses,
    },
    outcome=_outcome,
)
