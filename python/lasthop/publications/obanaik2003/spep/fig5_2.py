"""Windows, timeouts and sequence numbers with one error in 32 KB (figures 5.2, 5.3, 5.5, 5.6)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.obanaik2003.spep import bed
from lasthop.publications.obanaik2003.spep.bed import DELAYS, LAN, NEWRENO, SPEP, WAN
from lasthop.publications.study.factors import Factor, Factors
from lasthop.publications.study.published import Answer, Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, phrase

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from lasthop.scenario import Scenario

INTERVAL = 32 * 1024
#: The thesis shows one run of each, and has ten: too few for counts of timeouts.
SEEDS = 100
#: "Much less" than another: at most half of it.
MUCH_LESS = 0.5


def cells() -> list[Cell]:
    """Both senders, over both delays."""
    return [
        bed.cell(scheme, delay, INTERVAL, SEEDS, bed.QUICK_SEEDS)
        for delay in DELAYS
        for scheme in (NEWRENO, SPEP)
    ]


FACTORS = (
    Factor(
        "no-limited-transmit",
        "no limited transmit",
        "No new segment is sent for the first two duplicate ACKs. RFC 3042 is of 2001; whether"
        " FreeBSD 4.5 had it the thesis does not say.",
    ),
    Factor("delayed-acks", "delayed ACKs", "FreeBSD delays an ACK by up to 100 ms."),
    Factor(
        "minimum-rto",
        "a minimum timeout of 1 s",
        "As FreeBSD had it, and RFC 6298 asks for; the profile has 200 ms.",
    ),
)
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "no-limited-transmit": {"flows.0.tcp.limited_transmit": False},
    "delayed-acks": {"flows.0.tcp.delayed_ack": "100 ms"},
    "minimum-rto": {
        "flows.0.tcp.rto": {"initial": "3 s", "minimum": "1 s", "granularity": "10 ms"}
    },
}


def varied(factor: Factor) -> list[Cell]:
    """The same with a factor changed."""
    settings = _SETTINGS[factor.id]
    return [replace(cell, settings={**cell.settings, **settings}) for cell in cells()]


def window(series: pl.DataFrame, end: float) -> tuple[float, float]:
    """The mean of the congestion window over the time, in segments, and its standard deviation over
    that mean. What the receive window forbids does not count."""
    times = [*series["t_s"].to_list(), end]
    values = [min(value, bed.RECEIVE_WINDOW) / bed.MSS for value in series["cwnd_bytes"].to_list()]
    lengths = [after - before for before, after in pairwise(times)]
    total = sum(lengths)
    middle = sum(length * value for length, value in zip(lengths, values, strict=True)) / total
    square = sum(
        length * (value - middle) ** 2 for length, value in zip(lengths, values, strict=True)
    )
    return middle, math.sqrt(square / total) / middle


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What the sender counts, and its window."""
    result = lab.run(scenario, seed=seed, trace=True)
    middle, variation = window(result.series(), result.rows["duration_s"][0])
    counted = {name: values[0] for name, values in bed.collect(result.rows).items()}
    delivered = result.rows["payload_bytes"][0] / 1e6
    return {
        **counted,
        "timeouts_per_mb": counted["timeouts"] / delivered,
        "cwnd_segments": middle,
        "cwnd_variation": variation,
    }


# --- Pictures --------------------------------------------------------------------------------

_COLOURS = {NEWRENO: pictures.ORANGE, SPEP: pictures.BLUE}


#: Changes of the window, in segments, and times between acknowledgments that pictures show.
_SEEN, _SEEN_S = 0.25, 0.1
#: Points of a line: seconds, and values.
Points = tuple[list[float], list[float]]


@functools.cache
def _run(scheme: str, delay: float) -> tuple[Points, Points]:
    """The first run's window in segments, and its acknowledged data in MB."""
    scenario, seed = bed.cell(scheme, delay, INTERVAL).single(0)
    result = lab.run(scenario, seed=seed, trace=True, events=True)
    assert result.events is not None
    events = result.events
    acks = events.filter((events["node"] == "fixed") & (events["event"] == "acknowledged"))
    series = result.series()
    windows = zip(series["t_s"], series["cwnd_bytes"] / bed.MSS, strict=True)
    data = zip(acks["t_s"], acks["una"] / 1e6, strict=True)
    return (
        _thinned(windows, lambda last, new: abs(new[1] - last[1]) >= _SEEN),
        _thinned(data, lambda last, new: new[0] - last[0] >= _SEEN_S),
    )


def _thinned(
    points: Iterable[tuple[float, float]],
    differs: Callable[[tuple[float, float], tuple[float, float]], bool],
) -> Points:
    """Without points that look like the one before."""
    kept: list[tuple[float, float]] = []
    for point in points:
        if not kept or differs(kept[-1], point):
            kept.append(point)
    return [time for time, _ in kept], [value for _, value in kept]


def windows(_: Runs) -> Figure:
    """Figures 5.2 and 5.5."""
    with pictures.figure(11, 6) as drawn:
        axes = drawn.subplots(2, 2, sharex=True, sharey="row", squeeze=False)
        for row, delay in zip(axes, DELAYS, strict=True):
            for ax, scheme in zip(row, (NEWRENO, SPEP), strict=True):
                ax.step(
                    *_run(scheme, delay)[0],
                    where="post",
                    color=_COLOURS[scheme],
                    linewidth=0.8,
                )
                ax.set_title(f"{DELAYS[delay]}, {bed.SCHEMES[scheme].name}")
                ax.axhline(
                    bed.RECEIVE_WINDOW / bed.MSS, color=pictures.GREY, linewidth=0.9, linestyle=":"
                )
                ax.set_xlim(0, 100)
            row[0].set_ylabel("cwnd, segments")
            # Both of a row have the larger one's scale.
            row[0].set_ylim(0, None)
        for ax in axes[-1]:
            ax.set_xlabel("seconds")
    return drawn


def sequences(_: Runs) -> Figure:
    """Figures 5.3 and 5.6."""
    with pictures.figure(11, 3.6) as drawn:
        for ax, delay in zip(drawn.subplots(1, 2), DELAYS, strict=True):
            for scheme in (NEWRENO, SPEP):
                ax.plot(
                    *_run(scheme, delay)[1],
                    color=_COLOURS[scheme],
                    label=bed.SCHEMES[scheme].name,
                )
            ax.set_title(DELAYS[delay])
            ax.set_xlabel("seconds")
            ax.set_xlim(0, 100)
            ax.set_ylim(0, None)
        drawn.axes[0].set_ylabel("acknowledged, MB")
        drawn.axes[0].legend(loc="upper left")
    return drawn


# --- Statements ------------------------------------------------------------------------------


def _pair(runs: Runs, delay: float) -> tuple[Case, Case]:
    spep, newreno = (runs.case(scheme=scheme, one_way_delay_s=delay) for scheme in (SPEP, NEWRENO))
    return spep, newreno


def _timeouts(delay: float, most: float) -> Test:
    def test(runs: Runs) -> Judgement:
        spep, newreno = _pair(runs, delay)
        # Unlike a ratio it exists where there are none.
        fewer = runs.difference(spep, newreno, "timeouts", most)
        counts = " and ".join(phrase(runs.mean(case, "timeouts")) for case in (newreno, spep))
        return every([Check(fewer, below(0.0))]).judged(
            f"Timeouts in 100 s with NewReno and SPEP: {counts}; their ratio is"
            f" {phrase(runs.ratio(spep, newreno, 'timeouts'))}. Holds if SPEP has less than"
            f" {most:g} times as many.",
            runs.ratio(spep, newreno, "timeouts"),
            spep,
        )

    return test


def _variation(delay: float) -> Test:
    def test(runs: Runs) -> Judgement:
        spep, newreno = _pair(runs, delay)
        ratio = runs.ratio(spep, newreno, "cwnd_variation")
        values = " and ".join(phrase(runs.mean(case, "cwnd_variation")) for case in (newreno, spep))
        return every([Check(ratio, below(1 - NEGLIGIBLE))]).judged(
            f"Standard deviation of cwnd over its mean, with NewReno and SPEP: {values}; their"
            f" ratio is {phrase(ratio)}.",
            ratio,
            spep,
        )

    return test


def _slope(delay: float) -> Test:
    def test(runs: Runs) -> Judgement:
        spep, newreno = _pair(runs, delay)
        ratio = runs.ratio(spep, newreno, "payload_bps")
        return every([Check(ratio, above(1 + NEGLIGIBLE))]).judged(
            f"Data in 100 s over that of NewReno: {phrase(ratio)}.", ratio, spep
        )

    return test


def _per_data(runs: Runs) -> Answer:
    pairs = [_pair(runs, delay) for delay in DELAYS]
    ratios = [runs.ratio(spep, newreno, "timeouts_per_mb") for spep, newreno in pairs]
    each = "; ".join(
        f"{words} {phrase(runs.mean(newreno, 'timeouts_per_mb'))} and"
        f" {phrase(runs.mean(spep, 'timeouts_per_mb'))}, a ratio of {phrase(ratio)}"
        for words, (spep, newreno), ratio in zip(DELAYS.values(), pairs, ratios, strict=True)
    )
    return Answer(
        "How many timeouts are there for as much data, of which SPEP sends more in the time?",
        "beyond",
        None,
        f"For each megabyte with NewReno and SPEP: {each}.",
        pairs[0][0],
        ratios[0],
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What the thesis does not say."""
    return [_per_data(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    parts: Sequence[str] = [
        f"{DELAYS[delay]}: timeouts {phrase(runs.mean(newreno, 'timeouts'))} and"
        f" {phrase(runs.mean(spep, 'timeouts'))}, variation of cwnd"
        f" {phrase(runs.mean(newreno, 'cwnd_variation'))} and"
        f" {phrase(runs.mean(spep, 'cwnd_variation'))}"
        for delay in DELAYS
        for spep, newreno in (_pair(runs, delay),)
    ]
    return f"Without SPEP and with it, {'; '.join(parts)}."


STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/fig5.2",
    title="Windows, timeouts and sequence numbers with one error in 32 KB",
    also=("fig5.3", "fig5.5", "fig5.6"),
    asks="Does a sender that is told of corruption time out less, and keep its window?",
    where="§5.2, figures 5.2, 5.3, 5.5 and 5.6",
    method=(
        *bed.METHOD,
        "The window's variation is its standard deviation over its mean, both over the time. Where"
        " the window is larger than the receive window, it counts as that.",
        f"Much less: at most half. {SEEDS} runs, where the thesis has ten.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("timeouts", "1", "timeouts"),
        mean("timeouts_per_mb", "1/MB", "timeouts for each MB"),
        mean("reductions", "1", "other reductions"),
        mean("cwnd_segments", "1", "mean cwnd, segments"),
        mean("cwnd_variation", "1", "variation of cwnd"),
        mean("payload_bps", "bit/s", "payload, kb/s", 1e3),
    ),
    figures=(
        Drawn(
            "Figures 5.2 and 5.5: the congestion window in one run; dotted: the receive window.",
            windows,
            bars=False,
        ),
        Drawn("Figures 5.3 and 5.6: data acknowledged in one run.", sequences, bars=False),
    ),
    tests={
        "lan-much-fewer-timeouts": _timeouts(LAN, MUCH_LESS),
        "lan-steadier-window": _variation(LAN),
        "lan-steeper": _slope(LAN),
        "wan-fewer-timeouts": _timeouts(WAN, 1 - NEGLIGIBLE),
        "wan-steadier-window": _variation(WAN),
        "wan-steeper": _slope(WAN),
    },
    factors=Factors(FACTORS, varied, "both delays"),
    answers=answers,
    keys=bed.KEYS,
    words=bed.WORDS,
    outcome=outcome,
)
