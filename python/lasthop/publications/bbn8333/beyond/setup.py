"""Connection set-up on very lossy paths (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import MODERN, NONE, PERIOD
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Measure, quantile
from lasthop.publications.study.verdict import Check, Verdict, below
from lasthop.publications.study.words import NEGLIGIBLE, percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

BIT_ERROR_RATES = (1e-4, 3e-4, 1e-3, 2e-3, 4e-3)
WORDS: Mapping[Any, str] = {rate: units.power_of_ten(rate) for rate in BIT_ERROR_RATES}
#: The kinds of ETEN, and the bytes of notices: as in ns-2, and as small as an ICMP message can be.
NOTICES = ((NONE, 0), ("backward", 180), ("backward", 56), ("oracle", 0))
SEEDS, QUICK_SEEDS = 400, 60
_TIME = "first_byte_s"


def cells() -> list[Cell]:
    """Every kind of notice, in the report's profile and in today's."""
    found = []
    for profile in (PERIOD, MODERN):
        for eten, notice in NOTICES:
            for errors in ("forward", "both"):
                for rate in BIT_ERROR_RATES:
                    settings: dict[str, Any] = {
                        "profile": profile,
                        "flows.0.tcp.eten.report": eten,
                        "links.0.errors.bit": rate,
                    }
                    if notice:
                        settings["flows.0.tcp.eten.notice_size"] = f"{notice} B"
                    if errors == "forward":
                        settings["links.0.backward.errors"] = {}
                    case = Case(
                        recovery="sack",
                        eten=eten,
                        rate_bps=1.5e6,
                        one_way_delay_s=0.32,
                        bit_error_rate=rate,
                        errors=errors,
                        profile=profile,
                        notice_bytes=notice,
                    )
                    scenario = "bbn8333/beyond/setup"
                    found.append(Cell(case, scenario, settings, SEEDS, QUICK_SEEDS))
    return found


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """When the only byte was there, if ever."""
    return {_TIME: column("completed_s", "byte")(rows)}


LINES = (
    draw.Line("no ETEN", {"eten": NONE}, pictures.BLACK, "s"),
    draw.Line("Backward, 180 bytes", {"notice_bytes": 180}, pictures.BLUE, "o"),
    draw.Line("Backward, 56 bytes", {"notice_bytes": 56}, pictures.SKY, "D"),
    draw.Line("Oracle", {"eten": "oracle"}, pictures.ORANGE, "^"),
)


def figure(runs: Runs) -> Figure:
    """Median time and the share that fails, with errors in both directions."""

    def panels(profile: str) -> list[draw.Panel]:
        where = {"profile": profile, "errors": "both"}
        return [
            draw.Panel(
                f"{profile}: median",
                where,
                lambda runs, case: runs.quantile(case, _TIME, 0.5),
                "first byte after, s",
                log=True,
                lines=LINES,
            ),
            draw.Panel(
                f"{profile}: never",
                where,
                lambda runs, case: runs.share(case, _TIME),
                "connections that fail, %",
                0.01,
                top=100,
                lines=LINES,
            ),
        ]

    rows = [panels(PERIOD), panels(MODERN)]
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate", WORDS)


def _fewer(share: Estimate, alone: Estimate) -> Verdict:
    """Whether a share is smaller than another: their intervals are apart."""
    if share.hi < alone.lo:
        return Verdict.HOLDS
    return Verdict.DIFFERS if share.lo > alone.hi else Verdict.UNDECIDED


def answers(runs: Runs) -> Sequence[Answer]:
    """Whether connections come up sooner and more often."""
    rate = 1e-3
    both = {"errors": "both", "profile": PERIOD}
    high = units.scientific(rate)

    def times(share: float, **where: Any) -> str:
        found = []
        for eten, notice in NOTICES:
            case = runs.case(
                **{"bit_error_rate": rate, **both, **where}, eten=eten, notice_bytes=notice
            )
            found.append(f"{runs.quantile(case, _TIME, share).value:.3g}")
        return " / ".join(found)

    def failing(**where: Any) -> str:
        found = []
        for eten, notice in NOTICES:
            case = runs.case(**{**both, **where}, eten=eten, notice_bytes=notice)
            share = runs.share(case, _TIME)
            found.append(f"{percent(share.value)} [{percent(share.lo)}, {percent(share.hi)}]")
        return ", ".join(found)

    oracle = runs.case(eten="oracle", bit_error_rate=rate, **both)
    plain = oracle.but(eten=NONE)
    sooner = runs.quantile_ratio(oracle, plain, _TIME, 0.5)
    worst = {"bit_error_rate": BIT_ERROR_RATES[-1]}
    who = "without ETEN, with Backward in notices of 180 and of 56 bytes, with Oracle"
    small = runs.case(eten="backward", notice_bytes=56, bit_error_rate=rate, **both)
    large = small.but(notice_bytes=180)

    def fewer(eten: str, notice: int, words: str, why: str) -> Answer:
        with_it, alone = (
            runs.case(eten=of, notice_bytes=size, **both, **worst)
            for of, size in ((eten, notice), (NONE, 0))
        )
        fail, fail_alone = (runs.share(case, _TIME) for case in (with_it, alone))
        claim = f"Fewer connections fail with ETEN ({words})."
        return Answer(
            claim,
            "§8.3",
            _fewer(fail, fail_alone),
            why,
            with_it,
            fail,
            effect_of="eten",
            criterion="intervals that are apart",
        )

    return [
        Answer(
            "Connections are established sooner with ETEN where errors are many (Oracle).",
            "§8.3",
            (decides := Check(sooner, below(1 - NEGLIGIBLE))).verdict,
            f"At {high} in both directions the median time to the first byte is"
            f" {times(0.5)} s {who}; the 95th percentile is {times(0.95)} s. With errors on the"
            f" way of the SYN alone: {times(0.5, errors='forward')} s and"
            f" {times(0.95, errors='forward')} s. In the profile modern:"
            f" {times(0.5, profile=MODERN)} s and {times(0.95, profile=MODERN)} s, errors in both"
            " directions.",
            oracle,
            sooner,
            effect_of="eten",
            criterion=decides.criterion,
        ),
        fewer(
            "oracle",
            0,
            "Oracle",
            f"At {units.scientific(BIT_ERROR_RATES[-1])} in both directions these fail, {who}:"
            f" {failing(**worst)}; with errors on the way of the SYN alone"
            f" {failing(**worst, errors='forward')}. A SYN is given up after six timeouts; one"
            " that a notice sends again is none.",
        ),
        fewer(
            "backward",
            180,
            "Backward, ns-2's notices of 180 bytes",
            "The same runs: the notice has to come back over the errors that the SYN met, and is"
            " four times as long.",
        ),
        Answer(
            "Does a notice get through where a SYN does not?",
            "§8.3",
            None,
            f"A notice is no smaller than the SYN that it is about. At {high} in both directions"
            f" Backward multiplies the median time by"
            f" {phrase(runs.quantile_ratio(large, plain, _TIME, 0.5))} in notices of 180 bytes, and"
            f" by {phrase(runs.quantile_ratio(small, plain, _TIME, 0.5))} in those of 56 bytes."
            " A corrupted SYN-ACK is not reported: its sender has not asked for notices.",
            small,
            runs.quantile_ratio(small, plain, _TIME, 0.5),
        ),
    ]


STUDY = question(
    id="setup",
    title="Connection set-up",
    asks="Where errors are many, connections take long to be established, or never are. How much"
    " does"
    " a notice about a SYN help?",
    where="§8.3",
    method=(
        "A connection for one byte over one hop of 1.5 Mb/s, 320 ms one way: the time from the SYN"
        " until the byte is there, which takes three packets one after the other.",
        "Six timeouts in a row, and the connection is given up, as by Linux. The initial"
        " retransmission timeout is 6 s in ns2-2001 and 1 s in modern.",
        "A failed connection counts as longer than all others: quantiles are of all connections,"
        " not"
        " of those that came about.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        quantile(_TIME, 0.5, "first_byte_median_s", "first byte, median, s"),
        quantile(_TIME, 0.95, "first_byte_p95_s", "95th percentile, s"),
        Measure("failed", "1", "fail, %", lambda runs, case: runs.share(case, _TIME), 0.01),
    ),
    figure=figure,
    caption="Time to the first byte and failed connections, errors in both directions.",
    answers=answers,
    keys={
        "profile": "profile",
        "errors": "errors",
        "bit_error_rate": "bit errors",
        "eten": "ETEN",
        "notice_bytes": "notice, bytes",
    },
)
