"""The weight of a new sample in CETEN's estimates (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import units
from lasthop.publications.bbn8333.beyond import ceten
from lasthop.publications.bbn8333.beyond.ceten import HIGH, MEDIUM, OTHERS, PUBLISHED_A, STRATEGIES
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.words import SMALL, percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/alpha"
WEIGHTS = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9)
WORDS: Mapping[Any, str] = {weight: f"{weight:g}" for weight in WEIGHTS}


def weights(strategy: str) -> list[float]:
    """Those that a strategy takes."""
    return [a for a in WEIGHTS if strategy != "adaptive" or a <= ceten.ADAPTIVE_A]


def cells() -> list[Cell]:
    """Every strategy with every weight; without ETEN there is no weight."""
    found = []
    for others in (0, OTHERS):
        for rate in (MEDIUM, HIGH):
            found += [
                ceten.cell(SCENARIO, strategy, rate, others=others, a=weight, alpha=weight)
                for strategy in STRATEGIES
                for weight in weights(strategy)
            ]
            found.append(ceten.cell(SCENARIO, NONE, rate, others=others, alpha=PUBLISHED_A))
    return found


def _gain(runs: Runs, case: Case) -> Estimate | None:
    if case["eten"] == NONE:
        return None
    plain = case.but(eten=NONE, strategy="", alpha=PUBLISHED_A)
    return runs.ratio(case, plain, "goodput_bps")


def figure(runs: Runs) -> Figure:
    """The gain over the weight, alone and beside others, at two error rates."""

    def panel(others: int, rate: float) -> draw.Panel:
        beside = f"beside {others}" if others else "alone"
        return draw.Panel(
            f"{beside.capitalize()}, {units.scientific(rate)}",
            {"competitors": others, "bit_error_rate": rate},
            _gain,
            "goodput with / without",
            lines=ceten.LINES[1:4],
        )

    rows = [[panel(others, rate) for rate in (MEDIUM, HIGH)] for others in (0, OTHERS)]
    return draw.panels(runs, rows, "alpha", "weight of a new sample", WORDS)


def answers(runs: Runs) -> Sequence[Answer]:
    """How far the weight moves the gain of each strategy."""
    found = []
    for strategy in STRATEGIES:
        words = []
        for others, rate in ((0, HIGH), (OTHERS, MEDIUM), (OTHERS, HIGH)):
            where = {"strategy": strategy, "competitors": others, "bit_error_rate": rate}
            gains = [(a, _gain(runs, runs.case(alpha=a, **where))) for a in weights(strategy)]
            known = [(a, gain) for a, gain in gains if gain is not None]
            least = min(known, key=lambda pair: pair[1].value)
            most = max(known, key=lambda pair: pair[1].value)
            beside = f"beside {others}" if others else "alone"
            words.append(
                f"{beside} at {units.scientific(rate)} from {phrase(least[1])} (a = {least[0]:g})"
                f" to {phrase(most[1])} (a = {most[0]:g})"
            )
        found.append(
            Answer(
                f"What does the weight of a new sample do to the strategy {strategy}?",
                "§8.3",
                None,
                f"Goodput over that without ETEN: {'; '.join(words)}.",
            )
        )
    return [*found, _published_choice(runs)]


def _published_choice(runs: Runs) -> Answer:
    """Whether the report's choice was a good one."""
    where = {"strategy": "published", "competitors": OTHERS}
    worse = []
    cells = 0
    for rate in (MEDIUM, HIGH):
        chosen = runs.case(alpha=PUBLISHED_A, bit_error_rate=rate, **where)
        for weight in WEIGHTS:
            if weight != PUBLISHED_A:
                cells += 1
                ratio = runs.ratio(chosen.but(alpha=weight), chosen, "goodput_bps")
                if ratio is not None and ratio.lo > 1 + SMALL:
                    worse.append(f"a = {weight:g} at {units.scientific(rate)}: {phrase(ratio)}")
    return Answer(
        "Would another weight than 0.5 have served the published strategy better, beside others?",
        "§8.3",
        None,
        f"More than {percent(SMALL)} better in {len(worse)} of {cells} cells"
        + (f": {'; '.join(worse)}." if worse else "."),
    )


STUDY = question(
    id="alpha",
    title="The weight of a new sample in CETEN",
    asks="Routers estimate how many packets survive by a moving average, in which a new sample"
    " has the weight 0.5. What if it has less, or more?",
    where="§8.3",
    method=(
        ceten.ONE_SENDER,
        "The three strategies of the sender: as published, by the ratio of losses, and adaptive,"
        " which takes weights up to 1/64 only.",
    ),
    cells=cells,
    collect=ceten.collect,
    measures=(
        mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
        Measure("ratio", "1", "with / without", _gain),
        mean("share_of_fair", "1", "of a fair share"),
        mean("reductions", "1", "reductions and timeouts"),
    ),
    figure=figure,
    caption="Goodput over that without ETEN, by the weight of a new sample.",
    answers=answers,
    keys={
        "competitors": "others",
        "bit_error_rate": "bit errors",
        "strategy": "strategy",
        "alpha": "a",
    },
)
