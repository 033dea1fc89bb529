"""Short flows (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import units
from lasthop.publications.bbn8333.beyond.question import ETENS, question
from lasthop.publications.bbn8333.cases import MODERN, NONE, PERIOD
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Measure, quantile
from lasthop.publications.study.verdict import Check, below, every
from lasthop.publications.study.words import NEGLIGIBLE, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SIZES = (5_000, 20_000, 100_000, 1_000_000)
WORDS: Mapping[Any, str] = {5_000: "5 kB", 20_000: "20 kB", 100_000: "100 kB", 1_000_000: "1 MB"}
BIT_ERROR_RATES = (0.0, 1.56e-6, 5e-6, 1.56e-5)
HIGH = BIT_ERROR_RATES[-1]
SEEDS, QUICK_SEEDS = 200, 20
_TIME = "transfer_s"


def cells() -> list[Cell]:
    """Every size at every error rate, in the report's profile and in today's."""
    return [
        Cell(
            Case(
                recovery="sack",
                eten=eten,
                rate_bps=1.5e6,
                one_way_delay_s=0.32,
                bit_error_rate=rate,
                profile=profile,
                size_bytes=size,
            ),
            "bbn8333/beyond/short",
            {
                "profile": profile,
                "flows.0.traffic.size": f"{size} B",
                "flows.0.tcp.eten.report": eten,
                "links.0.errors.bit": rate,
            },
            SEEDS,
            QUICK_SEEDS,
        )
        for profile in (PERIOD, MODERN)
        for size in SIZES
        for eten in (NONE, "backward", "oracle")
        for rate in BIT_ERROR_RATES
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """How long each transfer took."""
    return {_TIME: column("completed_s", "file")(rows)}


def _faster(runs: Runs, case: Case, share: float) -> Estimate | None:
    """The time with notification over the time without."""
    plain = case.but(eten=NONE)
    return None if plain == case else runs.quantile_ratio(case, plain, _TIME, share)


def figure(runs: Runs) -> Figure:
    """Median and 95th percentile at the high error rate, in both profiles."""

    def panel(profile: str, words: str, share: float) -> draw.Panel:
        return draw.Panel(
            f"{profile}: {words}",
            {"profile": profile, "bit_error_rate": HIGH},
            lambda runs, case: runs.quantile(case, _TIME, share),
            "transfer time, s",
            log=True,
            lines=ETENS,
        )

    rows = [
        [panel(profile, "median", 0.5), panel(profile, "95th percentile", 0.95)]
        for profile in (PERIOD, MODERN)
    ]
    return draw.panels(runs, rows, "size_bytes", "size of the transfer", WORDS)


def answers(runs: Runs) -> Sequence[Answer]:
    """What the size of a transfer makes of the gain."""

    def ratios(eten: str, profile: str, share: float, rate: float = HIGH) -> str:
        found = [
            _faster(
                runs,
                runs.case(eten=eten, profile=profile, bit_error_rate=rate, size_bytes=size),
                share,
            )
            for size in SIZES
        ]
        return ", ".join(map(phrase, found))

    def slower(share: float, size: int) -> str:
        case = runs.case(eten=NONE, profile=PERIOD, bit_error_rate=HIGH, size_bytes=size)
        clean = case.but(bit_error_rate=0.0)
        return phrase(runs.quantile_ratio(case, clean, _TIME, share))

    sizes = ", ".join(WORDS.values())
    high = units.scientific(HIGH)
    small = runs.case(eten="backward", profile=PERIOD, bit_error_rate=HIGH, size_bytes=SIZES[0])
    return [
        Answer(
            "How much sooner do short transfers end with ETEN?",
            "§8.3",
            None,
            f"SACK, {high}, transfers of {sizes}. Backward multiplies the median time by"
            f" {ratios('backward', PERIOD, 0.5)}, and the 95th percentile by"
            f" {ratios('backward', PERIOD, 0.95)}; Oracle by {ratios('oracle', PERIOD, 0.5)} and"
            f" {ratios('oracle', PERIOD, 0.95)}.",
            small,
            _faster(runs, small, 0.95),
        ),
        Answer(
            "Does a larger initial window change that?",
            "§8.3",
            None,
            f"In the profile `modern` (ten segments at first) Backward multiplies the median by"
            f" {ratios('backward', MODERN, 0.5)}, and the 95th percentile by"
            f" {ratios('backward', MODERN, 0.95)}.",
        ),
        Answer(
            "What do losses during slow start cost, without ETEN?",
            "§8.3",
            None,
            f"At {high}, 20 kB take {slower(0.5, 20_000)} times as long as without errors (median),"
            f" and {slower(0.95, 20_000)} times (95th percentile); 1 MB takes"
            f" {slower(0.5, 1_000_000)} and {slower(0.95, 1_000_000)} times.",
        ),
        _slow_start(runs),
    ]


def _slow_start(runs: Runs) -> Answer:
    """Whether the gain is there for what ends in slow start."""
    cells = [
        _faster(runs, case, 0.95)
        for case in runs.cases(
            eten="backward", bit_error_rate=HIGH, profile=PERIOD, size_bytes=SIZES[:2]
        )
    ]
    found = [ratio for ratio in cells if ratio is not None]
    faster = every([Check(ratio, below(1 - NEGLIGIBLE)) for ratio in cells])
    return Answer(
        "Flows that end during slow start profit from ETEN, too (95th percentile of the time).",
        "§8.3",
        faster.verdict,
        f"Backward multiplies it by {', '.join(map(phrase, found))} for 5 kB and 20 kB at"
        f" {units.scientific(HIGH)}.",
        effect_of="eten",
        criterion=faster.criterion,
    )


STUDY = question(
    id="short",
    title="Short flows",
    asks="The simulations have transfers without end. What does notification do for those of 5 kB"
    " to"
    " 1 MB, of which the shorter ones never leave slow start?",
    where="§8.3",
    method=(
        "One transfer a run, SACK, over one hop of 1.5 Mb/s and 320 ms one way with bit errors in"
        " both"
        " directions, from the SYN until the receiver has the last byte.",
        "Profile ns2-2001: an initial window of one segment, a window of 20. Profile modern:"
        " segments"
        " of 536 bytes and a window of 20 all the same, an initial window of ten, delayed"
        " acknowledgments.",
        "A transfer that does not end within 1500 s counts as longer than all others.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        quantile(_TIME, 0.5, "transfer_median_s", "median, s"),
        quantile(_TIME, 0.95, "transfer_p95_s", "95th percentile, s"),
        Measure(
            "ratio_median", "1", "with / without, median", lambda runs, c: _faster(runs, c, 0.5)
        ),
        Measure("ratio_p95", "1", "95th percentile", lambda runs, c: _faster(runs, c, 0.95)),
    ),
    figure=figure,
    caption="Time of a transfer at a bit error rate of 1.56e-5, by its size.",
    answers=answers,
    keys={
        "profile": "profile",
        "size_bytes": "bytes",
        "bit_error_rate": "bit errors",
        "eten": "ETEN",
    },
)
