"""Web traffic (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import units
from lasthop.publications.bbn8333.beyond.question import ETENS, question
from lasthop.publications.bbn8333.cases import MODERN, NONE, PERIOD
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Measure
from lasthop.publications.study.words import percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

BIT_ERROR_RATES = (0.0, 1.56e-6, 5e-6, 1.56e-5)
HIGH = BIT_ERROR_RATES[-1]
WORDS: Mapping[Any, str] = {
    rate: units.power_of_ten(rate) if rate else "none" for rate in BIT_ERROR_RATES
}
SEEDS, QUICK_SEEDS = 20, 3
#: The two flows of the scenario, and what they are called here.
FLOWS = {"pages": "page", "objects": "object"}


def cells() -> list[Cell]:
    """Both users at every error rate, in the report's profile and in today's."""
    return [
        Cell(
            Case(
                recovery="sack",
                eten=eten,
                rate_bps=1.5e6,
                one_way_delay_s=0.32,
                bit_error_rate=rate,
                profile=profile,
            ),
            "bbn8333/beyond/web",
            {"profile": profile, "flows.*.tcp.eten.report": eten, "links.*.errors.bit": rate},
            SEEDS,
            QUICK_SEEDS,
        )
        for profile in (PERIOD, MODERN)
        for eten in (NONE, "backward", "oracle")
        for rate in BIT_ERROR_RATES
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """Quantiles of each run's times, and how much of what was started has ended."""
    found: dict[str, Sequence[float | None]] = {}
    for flow, name in FLOWS.items():
        found[f"{name}_median_s"] = column("time_median_s", flow)(rows)
        found[f"{name}_p95_s"] = column("time_p95_s", flow)(rows)
        finished = column("finished", flow)(rows)
        started = column("started", flow)(rows)
        found[f"{name}s"] = finished
        found[f"{name}s_ended"] = [
            (a or 0) / max(b or 0, 1) for a, b in zip(finished, started, strict=True)
        ]
    return found


def _faster(runs: Runs, case: Case, metric: str) -> Estimate | None:
    plain = case.but(eten=NONE)
    return None if plain == case else runs.ratio(case, plain, metric)


def figure(runs: Runs) -> Figure:
    """Times over the bit error rate, in both profiles."""

    def panel(profile: str, name: str, which: str, words: str) -> draw.Panel:
        return draw.Panel(
            f"{profile}: {name}s, {words}",
            {"profile": profile},
            lambda runs, case: runs.mean(case, f"{name}_{which}_s"),
            "time, s",
            lines=ETENS,
        )

    rows = [
        [panel(profile, name, "median", "median"), panel(profile, name, "p95", "95th percentile")]
        for profile in (PERIOD, MODERN)
        for name in FLOWS.values()
    ]
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate", WORDS)


def _answer(runs: Runs, claim: str, name: str) -> Answer:
    """What ETEN makes of the times of one user."""
    case = runs.case(eten="backward", bit_error_rate=HIGH, profile=PERIOD)

    def ratios(which: str, **changes: Any) -> str:
        return phrase(_faster(runs, case.but(**changes), f"{name}_{which}_s"))

    def seconds(which: str, eten: str) -> str:
        value = runs.mean(case.but(eten=eten), f"{name}_{which}_s")
        return "never" if value is None else f"{units.significant(value.value)} s"

    low = {"bit_error_rate": BIT_ERROR_RATES[1]}
    ended = [runs.mean(case.but(eten=eten), f"{name}s_ended") for eten in (NONE, "backward")]
    shares = " and ".join(percent(share.value) for share in ended if share is not None)
    return Answer(
        claim,
        "§8.3",
        None,
        f"At {units.scientific(HIGH)} the median is {seconds('median', NONE)} without ETEN,"
        f" {seconds('median', 'backward')} with Backward and {seconds('median', 'oracle')} with"
        " Oracle;"
        f" Backward multiplies it by {ratios('median')}, and the 95th percentile by {ratios('p95')}"
        f" (Oracle: {ratios('median', eten='oracle')} and {ratios('p95', eten='oracle')}). At"
        f" {units.scientific(BIT_ERROR_RATES[1])}: {ratios('median', **low)} and"
        f" {ratios('p95', **low)}."
        f" In the profile modern, at {units.scientific(HIGH)}: {ratios('median', profile=MODERN)}"
        " and"
        f" {ratios('p95', profile=MODERN)}. Without ETEN and with Backward, {shares} of what was"
        " started had ended by the end of the run.",
        case,
        _faster(runs, case, f"{name}_median_s"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """One for each user."""
    return [
        _answer(runs, "How much sooner do pages come over one connection that stays?", "page"),
        _answer(
            runs, "How much sooner do objects come, each over a connection of its own?", "object"
        ),
    ]


def _measures() -> list[Measure]:
    def measure(name: str, which: str, words: str) -> list[Measure]:
        metric = f"{name}_{which}_s"
        return [
            Measure(metric, "s", f"{name}, {words}, s", lambda runs, c: runs.mean(c, metric)),
            Measure(f"{metric}_ratio", "1", "with / without", lambda r, c: _faster(r, c, metric)),
        ]

    found = []
    for name in FLOWS.values():
        found += [*measure(name, "median", "median"), *measure(name, "p95", "95th percentile")]
    return found


STUDY = question(
    id="web",
    title="Web traffic",
    asks="The simulations have bulk transfers. How much faster does notification make web pages?",
    where="§8.3",
    method=(
        "SACK over one hop of 1.5 Mb/s and 320 ms one way with bit errors in both directions, 300"
        " s.",
        "Pages: a request of 300 bytes and a page of 20 kB, 2 s after the one before has come,"
        " over one"
        " connection. Only the server has asked for notices: a corrupted request is not reported.",
        "Objects: two connections a second on average (Poisson), each for one object of"
        " log-normal size"
        " (median 10 kB, mean 31 kB), a third of the rate of the link. They meet in the queue, so"
        " that"
        " congestion plays its part.",
        "Pages and objects have links of their own. Times are quantiles of each run, averaged"
        " over runs,"
        " and of what has ended by the end of the run.",
    ),
    cells=cells,
    collect=collect,
    measures=_measures(),
    figure=figure,
    caption="Times of pages (20 kB, one connection) and of objects (log-normal, a connection"
    " each).",
    answers=answers,
    keys={"profile": "profile", "bit_error_rate": "bit errors", "eten": "ETEN"},
)
