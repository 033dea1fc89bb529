"""The fairness of cumulative ETEN to plain TCP (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import units
from lasthop.publications.bbn8333.beyond import ceten
from lasthop.publications.bbn8333.beyond.ceten import BIT_ERROR_RATES, HIGH, STRATEGIES
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

SCENARIO = "bbn8333/beyond/fairness"
WORDS: Mapping[Any, str] = {
    rate: units.power_of_ten(rate) if rate else "none" for rate in BIT_ERROR_RATES
}
#: Connections with CETEN.
OWN = (1, 4)


def cells() -> list[Cell]:
    """Every strategy, the oracle, and no ETEN, at every error rate."""
    return [
        ceten.cell(SCENARIO, strategy, rate, own=own)
        for own in OWN
        for strategy in (NONE, *STRATEGIES, "oracle")
        for rate in BIT_ERROR_RATES
    ]


def harm(runs: Runs, case: Case) -> Estimate | None:
    """The goodput of the others over their goodput without any ETEN."""
    plain = case.but(eten=NONE, strategy="")
    return None if plain == case else runs.ratio(case, plain, "others_goodput_bps")


def figure(runs: Runs) -> Figure:
    """Shares, the others' part and Jain's index over the error rate."""

    def row(own: int) -> list[draw.Panel]:
        where = {"own": own}
        name = "One with CETEN" if own == 1 else f"{own} with CETEN"

        def of(metric: str, title: str, words: str, top: float | None = None) -> draw.Panel:
            return draw.Panel(
                f"{name}: {title}",
                where,
                lambda runs, case: runs.mean(case, metric),
                words,
                top=top,
                lines=ceten.LINES,
            )

        return [
            of("share_of_fair", "its own", "of a fair share"),
            draw.Panel(f"{name}: others", where, harm, "over without ETEN", lines=ceten.LINES),
            of("fairness", "fairness", "Jain's index", 1.03),
        ]

    rows = [row(own) for own in OWN]
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate", WORDS)


def answers(runs: Runs) -> Sequence[Answer]:
    """What each strategy takes from the other connections."""
    return [*(_strategy(runs, strategy) for strategy in STRATEGIES), _harmless(runs)]


def _strategy(runs: Runs, strategy: str) -> Answer:
    summary = []
    for own in OWN:
        for rate in (0.0, ceten.MEDIUM, HIGH):
            case = runs.case(strategy=strategy, own=own, bit_error_rate=rate)
            share, fairness = (runs.mean(case, m) for m in ("share_of_fair", "fairness"))
            if share is not None and fairness is not None:
                summary.append(
                    f"{own} at {units.scientific(rate)}: {phrase(share)} of a fair share, the"
                    f" others {phrase(harm(runs, case))}, index {fairness.value:.2f}"
                )
    case = runs.case(strategy=strategy, own=1, bit_error_rate=HIGH)
    return Answer(
        f"How fair is CETEN with the strategy {strategy} to four connections without ETEN?",
        "§8.3",
        None,
        f"Own connections, and the others' goodput over that without ETEN: {'; '.join(summary)}.",
        case,
        runs.mean(case, "share_of_fair"),
    )


def _harmless(runs: Runs) -> Answer:
    """Whether any connection is worse off without corruption."""
    clean = [(case, harm(runs, case)) for case in runs.cases(eten="cumulative", bit_error_rate=0.0)]
    known = [(case, ratio) for case, ratio in clean if ratio is not None]
    worst, least = min(known, key=lambda pair: pair[1].value)
    harmed = [case["strategy"] for case, ratio in known if ratio.hi < 1 - SMALL]
    return Answer(
        "Does CETEN take from others where nothing is corrupted?",
        "§8.3",
        None,
        f"Others lose more than {percent(SMALL)} in {len(harmed)} of {len(known)} cells"
        f" ({', '.join(dict.fromkeys(harmed)) or 'none'}); the least that is left them is"
        f" {phrase(least)}"
        f" ({worst['own']} with {worst['strategy']}).",
        worst,
        least,
    )


STUDY = question(
    id="fairness",
    title="The fairness of CETEN to plain TCP",
    asks="A sender that takes some of its losses for corruption slows down less often than its"
    " neighbours. What does it take from them?",
    where="§8.3",
    method=(
        "One Reno connection with cumulative ETEN, or four, beside four Reno connections without,"
        " over a"
        " bottleneck of 1.5 Mb/s with a drop-tail queue of 50 packets and bit errors in both"
        " directions;"
        " a round trip of 140 ms, windows of 100 segments, 120 s. The weight of a new sample is"
        " 0.5 (adaptive: 1/64).",
        "A fair share is the same for each. Corruption leaves capacity unused; a connection that"
        " uses it takes nothing from the others. So their goodput over that without ETEN is a"
        " better measure than shares.",
    ),
    cells=cells,
    collect=ceten.collect,
    measures=(
        mean("goodput_bps", "bit/s", "own goodput, kb/s", 1e3),
        mean("others_goodput_bps", "bit/s", "each other's, kb/s", 1e3),
        mean("share_of_fair", "1", "of a fair share"),
        Measure("ratio", "1", "others / without ETEN", harm),
        mean("fairness", "1", "Jain's index"),
        mean("dropped_share", "1", "dropped, %", 0.01),
    ),
    figure=figure,
    caption="What those with CETEN get, what is left to the others, and how fair that is.",
    answers=answers,
    keys={
        "own": "with ETEN",
        "eten": "ETEN",
        "strategy": "strategy",
        "bit_error_rate": "bit errors",
    },
)
