"""SPEP beside a receiver that knows its losses (figure 5.8)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.obanaik2003.spep import bed, fig5_4
from lasthop.publications.obanaik2003.spep.bed import (
    AS_LARGE,
    DELAYS,
    END_TO_END,
    INTERVALS,
    SPEP,
    WAN,
)
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Star
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, below, between, every
from lasthop.publications.study.words import SMALL, phrase
from lasthop.stats import Estimate, student_t

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The published overhead in the worst cell, percent.
PUBLISHED = 7.0
#: Runs that the thesis had of each cell.
RUNS = 10
#: As many as overheads of a few percent take, and of the cell with the published value.
SEEDS, MOST_SEEDS = 100, 400


def cells() -> list[Cell]:
    """Both, at every error rate and delay."""
    return [
        bed.cell(
            scheme,
            delay,
            interval,
            MOST_SEEDS if (delay, interval) == (WAN, INTERVALS[0]) else SEEDS,
            bed.QUICK_SEEDS,
        )
        for delay in DELAYS
        for interval in INTERVALS
        for scheme in (SPEP, END_TO_END, AS_LARGE)
    ]


def overhead(runs: Runs, case: Case) -> Estimate | None:
    """What SPEP lacks of the rate of end-to-end ELN, percent."""
    return _lacks(runs, case, END_TO_END) if case["scheme"] == SPEP else None


def _lacks(runs: Runs, case: Case, to: str) -> Estimate | None:
    ratio = runs.ratio(case, case.but(scheme=to), "payload_bps")
    if ratio is None:
        return None
    value, lo, hi = (100 * (1 - end) for end in (ratio.value, ratio.hi, ratio.lo))
    return Estimate(value, lo, hi, ratio.n)


def _minimal(runs: Runs) -> Judgement:
    cases = runs.cases(scheme=SPEP)
    values = [overhead(runs, case) for case in cases]
    listed = ", ".join(
        f"{phrase(value)} ({DELAYS[case['one_way_delay_s']]},"
        f" {bed.interval_words(case['error_interval_bytes'])})"
        for case, value in zip(cases, values, strict=True)
    )
    most, value = max(
        zip(cases, values, strict=True), key=lambda pair: pair[1].value if pair[1] else -math.inf
    )
    return every([Check(value, below(100 * SMALL)) for value in values]).judged(
        f"Overhead in percent: {listed}. Holds if all are below {100 * SMALL:g} %.",
        value,
        most,
        "%",
    )


def _chance(runs: Runs) -> Answer:
    case = runs.case(scheme=SPEP, one_way_delay_s=WAN, error_interval_bytes=INTERVALS[0])
    both = (case, case.but(scheme=END_TO_END))
    values = [runs.values(of, "payload_bps") for of in both]
    # Of a mean of so many runs, relative.
    errors = [
        statistics.stdev(of) / statistics.fmean(of) / math.sqrt(RUNS) if len(of) > 1 else math.nan
        for of in values
    ]
    reach = 100 * student_t(2 * (RUNS - 1)) * math.hypot(*errors)
    value = overhead(runs, case)
    return Answer(
        f"Can {PUBLISHED:g} % be chance, with {RUNS} runs of each?",
        "beyond",
        None,
        f"Means of {RUNS} runs of each, with other seeds, differ by up to {reach:.2g} % more or"
        f" less than they do on average, in 95 of 100 cases. On average SPEP lacks {phrase(value)}"
        " %.",
        case,
        value,
        "%",
    )


def _bytes(runs: Runs) -> Answer:
    cases = runs.cases(scheme=SPEP)
    left = [_lacks(runs, case, AS_LARGE) for case in cases]
    listed = ", ".join(
        f"{phrase(value)} ({DELAYS[case['one_way_delay_s']]},"
        f" {bed.interval_words(case['error_interval_bytes'])})"
        for case, value in zip(cases, left, strict=True)
    )
    claim = every([Check(value, between(-1.0, 1.0)) for value in left])
    worst = runs.case(scheme=SPEP, one_way_delay_s=WAN, error_interval_bytes=INTERVALS[0])
    return Answer(
        "The overhead is that of the option's bytes, within 1 %.",
        "beyond",
        claim.verdict,
        "The option makes packets 2.3 % larger, and losses come once in so many bytes. With the"
        " option in the packets of end-to-end ELN, too, where nothing reads it, SPEP lacks, in"
        f" percent: {listed}. {claim.tally}",
        worst,
        _lacks(runs, worst, AS_LARGE),
        "%",
        effect_of="none",
        criterion=claim.criterion,
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What the thesis does not say."""
    return [_bytes(runs), _chance(runs)]


def figure(runs: Runs) -> Figure:
    """Figure 5.8, and the overhead."""
    return fig5_4.rates((SPEP, END_TO_END), runs)


def overheads(runs: Runs) -> Figure:
    """The overhead beside the published one."""
    panels = [
        draw.Panel(
            words,
            {"one_way_delay_s": delay},
            overhead,
            "overhead, %",
            lines=[Line("SPEP", {"scheme": SPEP}, pictures.BLUE)],
            signed=True,
            stars=[Star(INTERVALS[0], PUBLISHED, pictures.BLACK)] if delay == WAN else (),
        )
        for delay, words in DELAYS.items()
    ]
    words = {interval: bed.interval_words(interval) for interval in INTERVALS}
    return draw.panels(runs, [panels], "error_interval_bytes", "one error in", words, 5.0)


def outcome(runs: Runs) -> str:
    """In a sentence."""
    case = runs.case(scheme=SPEP, one_way_delay_s=WAN, error_interval_bytes=INTERVALS[0])
    return (
        f"In the WAN with one error in 16 KiB SPEP lacks {phrase(overhead(runs, case))} % of the"
        f" rate of end-to-end ELN; published are about {PUBLISHED:g} %."
    )


STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/fig5.8",
    title="SPEP beside a receiver that knows its losses",
    asks="What does SPEP cost, compared with a receiver that knows what its link has damaged?",
    where="§5.2, figure 5.8; §1.3",
    method=(
        *bed.METHOD,
        "End-to-end ELN: the link tells the mobile host which packets it has damaged, although ESP"
        " hides them. The thesis emulated that by a receiver that drops packets itself. Its packets"
        " have no option. Nothing here takes processing time, which the thesis measured too.",
        f"{SEEDS} runs a cell, {MOST_SEEDS} in the WAN with one error in 16 KiB: ten, as in the"
        " thesis, leave a difference of a few percent undecided.",
    ),
    cells=cells,
    collect=bed.collect,
    measures=(
        mean("payload_bps", "bit/s", "payload, kb/s", 1e3),
        Measure("overhead_percent", "%", "overhead, %", overhead),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(
        Drawn("Figure 5.8: rates, with 95 % intervals.", figure),
        Drawn("The overhead of SPEP; the star is the published value.", overheads),
    ),
    tests={"overhead-minimal": _minimal},
    answers=answers,
    keys=bed.KEYS,
    words=bed.WORDS,
    outcome=outcome,
)
