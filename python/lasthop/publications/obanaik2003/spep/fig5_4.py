"""The throughput of NewReno with SPEP and without (figures 5.4 and 5.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lasthop.publications.obanaik2003.spep import bed
from lasthop.publications.obanaik2003.spep.bed import DELAYS, INTERVALS, LAN, NEWRENO, SPEP, WAN
from lasthop.publications.study import draw
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, above, every
from lasthop.publications.study.words import MARKED, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells() -> list[Cell]:
    """Both senders, at every error rate and delay."""
    return [
        bed.cell(scheme, delay, interval, quick=bed.QUICK_SEEDS)
        for delay in DELAYS
        for interval in INTERVALS
        for scheme in (NEWRENO, SPEP)
    ]


def gain(runs: Runs, case: Case) -> Estimate | None:
    """The rate over that of NewReno."""
    plain = case.but(scheme=NEWRENO)
    return None if plain == case else runs.ratio(case, plain, "payload_bps")


def rates(schemes: Sequence[str], runs: Runs, *, log: bool = False) -> Figure:
    """Rates over the error rate, for both delays."""
    panels = [
        draw.Panel(
            words,
            {"one_way_delay_s": delay},
            lambda runs, case: runs.mean(case, "payload_bps"),
            "payload, Mb/s",
            lines=[bed.line(scheme) for scheme in schemes],
            scale=1e6,
            log=log,
        )
        for delay, words in DELAYS.items()
    ]
    words = {interval: bed.interval_words(interval) for interval in INTERVALS}
    return draw.panels(runs, [panels], "error_interval_bytes", "one error in", words, 5.0)


def _improves(delay: float) -> Test:
    def test(runs: Runs) -> Judgement:
        cases = runs.cases(scheme=SPEP, one_way_delay_s=delay)
        gains = {case: gain(runs, case) for case in cases}
        listed = ", ".join(
            f"{phrase(value)} at {bed.interval_words(case['error_interval_bytes'])}"
            for case, value in gains.items()
        )
        least = min(cases, key=lambda case: value.value if (value := gains[case]) else 0.0)
        return every([Check(value, above(1 + MARKED)) for value in gains.values()]).judged(
            f"Payload over that of NewReno: {listed}. Holds if all are above {1 + MARKED:g}.",
            gains[least],
            least,
        )

    return test


def outcome(runs: Runs) -> str:
    """In a sentence."""
    parts = []
    for delay, words in DELAYS.items():
        gains = [gain(runs, case) for case in runs.cases(scheme=SPEP, one_way_delay_s=delay)]
        values = [value.value for value in gains if value is not None]
        parts.append(f"{min(values):.2g} to {max(values):.2g} times in the {words}")
    return f"SPEP multiplies NewReno's throughput: {', '.join(parts)}."


MEASURES = (
    mean("payload_bps", "bit/s", "payload, kb/s", 1e3),
    Measure("gain", "1", "over NewReno", gain),
    mean("timeouts", "1", "timeouts"),
    mean("reductions", "1", "other reductions"),
    mean("retransmissions", "1", "sent again"),
)

STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/fig5.4",
    title="The throughput of NewReno with SPEP and without",
    also=("fig5.7",),
    asks="How much is it worth to know which losses are corruption?",
    where="§5.2, figures 5.4 and 5.7",
    method=bed.METHOD,
    cells=cells,
    collect=bed.collect,
    measures=MEASURES,
    figures=(
        Drawn(
            "Figures 5.4 (LAN) and 5.7 (WAN), with 95 % intervals.",
            lambda runs: rates((NEWRENO, SPEP), runs),
        ),
    ),
    tests={"lan-improves": _improves(LAN), "wan-improves": _improves(WAN)},
    keys=bed.KEYS,
    words=bed.WORDS,
    outcome=outcome,
)
