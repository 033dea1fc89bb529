"""ECN beside cumulative ETEN (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond import ceten
from lasthop.publications.bbn8333.beyond.ceten import BIT_ERROR_RATES, HIGH, MEDIUM, STRATEGIES
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.words import phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/ecn"
WORDS: Mapping[Any, str] = {
    rate: units.power_of_ten(rate) if rate else "none" for rate in BIT_ERROR_RATES
}
#: Queues that mark; CoDel's interval is about a round trip with its queue.
QUEUES: Mapping[str, Mapping[str, Any]] = {
    "red": {"limit": "50 packets", "red": {"min": 5, "max": 15, "ecn": True}},
    "codel": {"limit": "50 packets", "codel": {"interval": "150 ms", "ecn": True}},
}
NAMES = {"red": "RED", "codel": "CoDel"}
_SHOWN = "loss-ratio"


def cells() -> list[Cell]:
    """With and without ECN, with and without CETEN, behind each queue."""
    return [
        ceten.cell(
            SCENARIO,
            strategy,
            rate,
            ecn=ecn,
            settings={"links.2.queue": queue},
            queue=name,
            ecn_on=ecn,
        )
        for name, queue in QUEUES.items()
        for ecn in (False, True)
        for strategy in (NONE, *STRATEGIES)
        for rate in BIT_ERROR_RATES
    ]


def _gain(runs: Runs, case: Case) -> Estimate | None:
    """The goodput of the one with CETEN over that without, ECN as it is."""
    plain = case.but(eten=NONE, strategy="")
    return None if plain == case else runs.ratio(case, plain, "goodput_bps")


LINES = (
    draw.Line("neither", {"eten": NONE, "ecn_on": False}, pictures.BLACK, "s", ":"),
    draw.Line("ECN", {"eten": NONE, "ecn_on": True}, pictures.BLACK, "s"),
    draw.Line("CETEN", {"strategy": _SHOWN, "ecn_on": False}, pictures.BLUE, "o", ":"),
    draw.Line("both", {"strategy": _SHOWN, "ecn_on": True}, pictures.BLUE, "o"),
)


def figure(runs: Runs) -> Figure:
    """Goodput, the others' and drops over the error rate, behind each queue."""

    def row(queue: str) -> list[draw.Panel]:
        def of(metric: str, title: str, words: str, scale: float) -> draw.Panel:
            return draw.Panel(
                f"{NAMES[queue]}: {title}",
                {"queue": queue},
                lambda runs, case: runs.mean(case, metric),
                words,
                scale,
                lines=LINES,
            )

        return [
            of("goodput_bps", "its own", "goodput, kb/s", 1e3),
            of("others_goodput_bps", "each of the others", "goodput, kb/s", 1e3),
            of("dropped_share", "dropped", "of all segments, %", 0.01),
        ]

    rows = [row(queue) for queue in QUEUES]
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate", WORDS)


def answers(runs: Runs) -> Sequence[Answer]:
    """Whether CETEN gains more where marks signal congestion."""
    return [*(_queue(runs, queue) for queue in QUEUES), _drops(runs)]


def _queue(runs: Runs, queue: str) -> Answer:
    words = []
    for strategy in STRATEGIES:
        for rate in (MEDIUM, HIGH):
            case = runs.case(strategy=strategy, queue=queue, bit_error_rate=rate, ecn_on=True)
            without = _gain(runs, case.but(ecn_on=False))
            words.append(
                f"{strategy} at {units.scientific(rate)} {phrase(_gain(runs, case))} with ECN,"
                f" {phrase(without)} without"
            )
    case = runs.case(strategy=_SHOWN, queue=queue, bit_error_rate=HIGH, ecn_on=True)
    return Answer(
        f"Does CETEN gain more or less where {NAMES[queue]} marks packets?",
        "§8.3",
        None,
        f"Goodput with CETEN over that without: {'; '.join(words)}.",
        case,
        _gain(runs, case),
    )


def _drops(runs: Runs) -> Answer:
    """Whether a sender that excuses losses undoes what marks are for."""
    claim = "Does CETEN undo what marks are for, and cause drops?"
    ratios = []
    for case in runs.cases(strategy=_SHOWN, ecn_on=True):
        ratio = runs.ratio(case, case.but(eten=NONE, strategy=""), "dropped_share")
        if ratio is not None:
            ratios.append((case, ratio))
    if not ratios:
        return Answer(claim, "§8.3", None, "Nothing is dropped.")
    case, most = max(ratios, key=lambda pair: pair[1].value)
    return Answer(
        claim,
        "§8.3",
        None,
        f"The share of segments dropped over that without CETEN is at most {phrase(most)}"
        f" ({NAMES[case['queue']]}, {units.scientific(case['bit_error_rate'])}), with the strategy"
        f" {_SHOWN}.",
        case,
        most,
    )


STUDY = question(
    id="ecn",
    title="ECN beside CETEN",
    asks="If queues mark packets instead of dropping them, losses are mostly corruption. Does"
    " cumulative"
    " ETEN then distinguish them better, and does it undo the purpose of the marks?",
    where="§8.3",
    method=(
        "One Reno connection with cumulative ETEN beside four without, over a bottleneck of 1.5"
        " Mb/s with"
        " RED (5 to 15 packets) or CoDel (interval 150 ms), room for 50 packets and bit errors in"
        " both"
        " directions; a round trip of 140 ms, windows of 100 segments, 120 s; a = 0.5 (adaptive:"
        " 1/64).",
        "All connections have ECN, or none has. A mark is answered as congestion, whatever the"
        " estimates are.",
    ),
    cells=cells,
    collect=ceten.collect,
    measures=(
        mean("goodput_bps", "bit/s", "own goodput, kb/s", 1e3),
        Measure("ratio", "1", "with / without CETEN", _gain),
        mean("others_goodput_bps", "bit/s", "each other's, kb/s", 1e3),
        mean("fairness", "1", "Jain's index"),
        mean("utilisation", "1", "bottleneck used, %", 0.01),
        mean("dropped_share", "1", "dropped, %", 0.01),
    ),
    figure=figure,
    caption="Goodputs and drops with ECN, CETEN (loss-ratio), both and neither.",
    answers=answers,
    keys={
        "queue": "queue",
        "ecn_on": "ECN",
        "strategy": "strategy",
        "bit_error_rate": "bit errors",
    },
)
