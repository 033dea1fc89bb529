"""The advertised window on the test-bed (§3.3.4): tables 3.10, 3.11."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import bed, simulation, words
from lasthop.publications.obanaik2003.fairness.bed import SMALL_WINDOW, VARIANTS, WINDOW
from lasthop.publications.obanaik2003.fairness.policies import CANIT, CR, IBK, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Band, Check, Judgement, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE

_METRIC = "payload_bps"
#: "Hardly anything": of 100 packets, and in 100 s where packets are counted.
_HARDLY = {bed.SHARE: 0.02, bed.PACKETS: 2.0}


def cells() -> list[Cell]:
    """Every policy with both windows."""
    return [
        bed.cell(link, variant, window=window)
        for link in (SLOW, LTN)
        for variant in VARIANTS
        for window in (SMALL_WINDOW, WINDOW)
    ]


def _pairs(runs: Runs, link: str, *policies: str) -> list[tuple[Case, Case]]:
    cases = runs.cases(
        link=link, receive_window_bytes=SMALL_WINDOW, **({"policy": policies} if policies else {})
    )
    return [(case, case.but(receive_window_bytes=WINDOW)) for case in cases]


def _summary(runs: Runs, pairs: list[tuple[Case, Case]]) -> str:
    return (
        f"Goodput with 1 KB over that with 8 KB: {words.ratios(runs, pairs, _METRIC, bed.where)}."
    )


def _slow(runs: Runs) -> Judgement:
    pairs = _pairs(runs, SLOW)
    return every(_in(runs, pairs, above(1 + NEGLIGIBLE))).judged(_summary(runs, pairs))


def _ltn(runs: Runs) -> Judgement:
    cost, gain = _pairs(runs, LTN, STANDARD, IBK), _pairs(runs, LTN, CANIT, CR)
    less, more = below(1 - NEGLIGIBLE), above(1 + NEGLIGIBLE)
    checks = [*_in(runs, cost, less), *_in(runs, gain, more)]
    return every(checks).judged(_summary(runs, [*cost, *gain]))


def _in(runs: Runs, pairs: list[tuple[Case, Case]], band: Band) -> list[Check]:
    return [Check(runs.ratio(*pair, _METRIC), band) for pair in pairs]


def _hardly(runs: Runs) -> Judgement:
    cases = runs.cases(receive_window_bytes=SMALL_WINDOW)
    few = {
        metric: every([Check(runs.mean(case, metric), below(most)) for case in cases])
        for metric, most in _HARDLY.items()
    }
    summary = words.each(runs, cases, bed.SHARE, 0.01, bed.where)
    return few[bed.SHARE].judged(
        f"Of packets, %, at most {100 * _HARDLY[bed.SHARE]:g} each: {summary}. Counted in packets,"
        f" at most {_HARDLY[bed.PACKETS]:g} each, the statement has the verdict:"
        f" {few[bed.PACKETS].verdict}."
    )


def _outcome(runs: Runs) -> str:
    ratios = bed.known(runs, [*_pairs(runs, SLOW), *_pairs(runs, LTN)], _METRIC)
    return f"1 KB instead of 8 KB multiplies goodput by {min(ratios):.2f} to {max(ratios):.2f}."


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/testbed-window",
    title="The test-bed's path: a small receive window",
    asks="A receive window of 1 KB instead of 8 KB keeps losses away. What does it give, and what"
    " does it"
    " cost?",
    where="§3.3.4, tables 3.10, 3.11",
    method=bed.METHOD,
    cells=cells,
    observe=bed.observe(),
    measures=bed.MEASURES,
    figures=[
        Drawn(
            "Goodput and losses of connection 3, by its receive window.",
            lambda runs: draw.panels(
                runs,
                [
                    [bed.panel(link, _METRIC, "goodput, kb/s", 1e3) for link in (SLOW, LTN)],
                    [bed.panel(link, bed.SHARE, "lost, %", 0.01) for link in (SLOW, LTN)],
                ],
                "receive_window_bytes",
                "receive window",
                {SMALL_WINDOW: "1 KiB", WINDOW: "8 KiB"},
            ),
        )
    ],
    keys=bed.KEYS,
    answers=lambda runs: [bed.loss_readings(runs, "fairness/testbed-window")],
    tests={"slow-gains": _slow, "ltn-differs": _ltn, "hardly-losses": _hardly},
    most_seeds=simulation.MOST_SEEDS,
    outcome=_outcome,
)
