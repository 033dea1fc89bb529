"""What `burst` and `fade` have in common: other error patterns with the same mean loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import units
from lasthop.publications.bbn8333.beyond.question import ETENS
from lasthop.publications.bbn8333.cases import NONE, gain_measure
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import mean
from lasthop.publications.study.verdict import Band, Check, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, number, phrase

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

RECOVERIES = ("reno", "sack")
NOTIFIED = ("backward", "oracle")
#: Of the single bit errors that the other patterns are beside.
BIT_ERROR_RATES = (1.56e-6, 1.56e-5)
MEDIUM, HIGH = BIT_ERROR_RATES
#: One way, in seconds, with the runs of each cell: those of the short path are longer.
DELAYS = {0.32: 30, 0.01: 10}
LONG, SHORT = DELAYS
QUICK_SEEDS = {0.32: 5, 0.01: 2}

#: A data packet, bits.
_PACKET = 576 * 8

NAMES = {"reno": "Reno", "sack": "SACK", "backward": "Backward", "oracle": "Oracle"}


def packet_loss(bit_error_rate: float) -> float:
    """The share of data packets that single bit errors corrupt."""
    return -math.expm1(_PACKET * math.log1p(-bit_error_rate))


def bit_errors(loss: float) -> float:
    """The bit error rate that corrupts such a share of data packets."""
    return -math.expm1(math.log1p(-loss) / _PACKET)


def cells(
    scenario: str,
    key: str,
    patterns: Mapping[Any, Callable[[float], Mapping[str, Any]]],
    along: Callable[[Any], Mapping[str, Sequence[Any]]] = lambda _: {},
) -> list[Cell]:
    """Every sender over every channel; `patterns` makes settings of a bit error rate, and `along`
    what differs from run to run."""
    found = []
    for delay, seeds in DELAYS.items():
        for recovery in RECOVERIES:
            for eten in (NONE, *NOTIFIED):
                who = {
                    "flows.0.tcp.recovery": recovery,
                    "flows.0.tcp.eten.report": eten,
                    "links.0.delay": f"{delay * 1e3:g} ms",
                }
                for rate in BIT_ERROR_RATES:
                    for value, settings in patterns.items():
                        case = Case(
                            recovery=recovery,
                            eten=eten,
                            rate_bps=1.5e6,
                            one_way_delay_s=delay,
                            bit_error_rate=rate,
                            **{key: value},
                        )
                        of = {**who, **settings(rate)}
                        quick = QUICK_SEEDS[delay]
                        found.append(Cell(case, scenario, of, seeds, quick, along(value)))
    return found


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """The goodput of each run, and how much of what was sent the channel corrupted."""
    corrupted, sent = column("corrupted", "ftp")(rows), column("segments", "ftp")(rows)
    timeouts, reductions = column("timeouts", "ftp")(rows), column("reductions", "ftp")(rows)
    return {
        "goodput_bps": column("goodput_bps", "ftp")(rows),
        "corrupted_share": [
            (a or 0) / max(b or 0, 1) for a, b in zip(corrupted, sent, strict=True)
        ],
        "timeouts": timeouts,
        # How many corrupted packets a reduction of the window, or a timeout, answers.
        "corrupted_per_answer": [
            (a or 0) / max((b or 0) + (c or 0), 1)
            for a, b, c in zip(corrupted, timeouts, reductions, strict=True)
        ],
    }


MEASURES = (
    mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
    gain_measure("goodput_bps", "with / without"),
    mean("timeouts", "1", "timeouts a run"),
    mean("corrupted_share", "1", "corrupted, %", 0.01),
    mean("corrupted_per_answer", "1", "corrupted per reduction or timeout"),
)
KEYS = {
    "recovery": "recovery",
    "eten": "ETEN",
    "one_way_delay_s": "delay, s",
    "bit_error_rate": "mean as of",
}


def figure(runs: Runs, key: str, xlabel: str, words: Mapping[Any, str]) -> Figure:
    """Goodput over the pattern at the high error rate, a panel for each recovery and delay."""

    def panel(recovery: str, delay: float) -> draw.Panel:
        return draw.Panel(
            f"{NAMES[recovery]}, {units.duration(delay)} one way",
            {"recovery": recovery, "one_way_delay_s": delay, "bit_error_rate": HIGH},
            lambda runs, case: runs.mean(case, "goodput_bps"),
            "goodput, kb/s",
            1e3,
            lines=ETENS,
        )

    rows = [[panel(recovery, delay) for delay in DELAYS] for recovery in RECOVERIES]
    return draw.panels(runs, rows, key, xlabel, words)


# --- What comes of it ---


def alone(runs: Runs, metric: str, key: str, values: Sequence[Any], **where: Any) -> str:
    """A mean of TCP alone at each of some values of a key, in words."""
    cases = [runs.case(**{key: value}, eten=NONE, **where) for value in values]
    return " and ".join(phrase(runs.mean(case, metric)) for case in cases)


def gains(runs: Runs, key: str, values: Sequence[Any], eten: str, **where: Any) -> str:
    """The gain at each of some values of a key, in words."""
    found = []
    for value in values:
        case = runs.case(**{key: value}, eten=eten, **where)
        found.append(phrase(runs.ratio(case, case.but(eten=NONE), "goodput_bps")))
    return ", ".join(found)


def never_worse(runs: Runs, pattern: str) -> Answer:
    """The report wants every practical ETEN to do no worse than TCP alone."""
    return _everywhere(
        runs,
        f"Also with {pattern}, Backward ETEN does no worse than TCP alone.",
        [(case, case.but(eten=NONE)) for case in runs.cases(eten="backward")],
        above(1 - NEGLIGIBLE),
        largest=False,
    )


def oracle_bounds(runs: Runs, pattern: str) -> Answer:
    """And no better than the oracle."""
    return _everywhere(
        runs,
        f"Also with {pattern}, Backward ETEN does no better than the oracle.",
        [(case, case.but(eten="oracle")) for case in runs.cases(eten="backward")],
        below(1 + NEGLIGIBLE),
        largest=True,
    )


def _everywhere(
    runs: Runs,
    claim: str,
    pairs: Sequence[tuple[Case, Case]],
    band: Band,
    *,
    largest: bool,
) -> Answer:
    found = [(case, runs.ratio(case, to, "goodput_bps")) for case, to in pairs]
    ratios = [(case, ratio) for case, ratio in found if ratio is not None]
    cells = every([Check(ratio, band) for _, ratio in ratios])
    pick = max if largest else min
    case, extreme = pick(ratios, key=lambda pair: pair[1].value)
    where = f"{NAMES[case['recovery']]}, {units.duration(case['one_way_delay_s'])}"
    why = (
        f"The {'largest' if largest else 'smallest'} ratio is {phrase(extreme)} ({where},"
        f" {units.scientific(case['bit_error_rate'])}). {cells.tally}"
    )
    return Answer(
        claim,
        "§8.1",
        cells.verdict,
        why,
        case,
        extreme,
        effect_of="none",
        criterion=cells.criterion,
    )


def kept(runs: Runs, key: str, value: Any, uniform: Any, **where: Any) -> str:
    """The goodput over that with single bit errors, in per cent, without ETEN and with each."""
    words = []
    for eten, name in ((NONE, "TCP alone"), ("backward", "Backward"), ("oracle", "Oracle")):
        case = runs.case(**{key: value}, eten=eten, **where)
        ratio = runs.ratio(case, case.but(**{key: uniform}), "goodput_bps")
        words.append(f"{name} {number(ratio.value) if ratio else 'nothing'}")
    return ", ".join(words)
