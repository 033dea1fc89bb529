"""Net duration over the length of a disconnection (koutsianas2007 §4.2, figures 4.4 and 4.5)."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.koutsianas2007 import schemes, windows
from lasthop.publications.koutsianas2007.schemes import CORRECTED, LINES, NAMES, RLCI, STANDARD
from lasthop.publications.koutsianas2007.windows import FEW, LIKELY
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import (
    Check,
    Judgement,
    above,
    below,
    between,
    every,
)
from lasthop.publications.study.words import SMALL, percent, phrase
from lasthop.stats import Estimate, mean_interval, ratio_interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/fig4.4"
SCHEMES = (STANDARD, RLCI, CORRECTED)
#: The report has 15.
SEEDS, QUICK_SEEDS = 25, 3
#: The first RTO, at the least that ns-2 has, and when the n-th retransmission follows the
#: detachment at the earliest.
RTO_S = 0.2
STEPS = tuple(RTO_S * (2**n - 1) for n in range(1, 8))
#: Disconnections, seconds: shorter than any RTO, then right before, right after and between steps.
SHORT = (0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15)
LONGEST = 50.0
_BEFORE, _AFTER, _LATE = 0.98, 1.03, 1.9
DISCONNECTIONS = tuple(
    round(length, 3)
    for length in (
        *SHORT,
        *(step * share for step in STEPS for share in (_BEFORE, _AFTER, 1.3, 1.6, _LATE)),
        LONGEST,
    )
)
#: What is long enough for every connection to be in back-off.
_LONG_S = 0.5
#: Of the pictures.
_DRAWN = (50, 200)


def drawn(disconnection: float, run: int) -> Mapping[str, Any]:
    """When it leaves, the same for all lengths and schemes, and is back."""
    left = random.Random(f"fig4.4, run {run}").uniform(0.5, 5.0)
    return schemes.attached(left, left + disconnection)


def cells() -> list[Cell]:
    """Every scheme and every length, with some windows."""
    (flow,) = schemes.flows(SCENARIO)
    return [
        Cell(
            Case(scheme=scheme, window=window, disconnection_s=length),
            SCENARIO,
            {
                "flows": [
                    {**flow, "tcp": schemes.tcp(flow["tcp"], scheme) | windows.setting(window)}
                ]
            },
            SEEDS,
            QUICK_SEEDS,
            drawn=partial(drawn, length),
        )
        for window in FEW
        for scheme in SCHEMES
        for length in DISCONNECTIONS
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """How long it takes, without the disconnection."""
    found: dict[str, list[float | None]] = {"net_duration_s": [], "timeouts": []}
    for run in apart(rows):
        left, back = schemes.moves(run)
        ends = run["completed_s"][0]
        found["net_duration_s"].append(None if ends is None else ends - (back - left))
        found["timeouts"].append(float(run["timeouts"][0]))
    return found


def spread(runs: Runs, case: Case) -> Estimate | None:
    """The standard deviation of net durations."""
    return schemes.deviation([[value] for value in runs.values(case, "net_duration_s")])


# --- Pictures --------------------------------------------------------------------------------


def _draw(runs: Runs, of: Sequence[str]) -> Figure:
    with pictures.figure(11, 6.6) as figure:
        rows = figure.subplots(2, 2, width_ratios=[2, 1])
        for (whole, short), window in zip(rows, _DRAWN, strict=True):
            for ax in (whole, short):
                for scheme in of:
                    _line(ax, runs, scheme, window)
                ax.set_ylim(bottom=0)
            whole.set_title(f"Net duration, s; window {window}")
            short.set_title("The shortest disconnections")
            short.set_xlim(-0.02, 0.8)
            short.set_ylim(0, 14)
            if STANDARD in of:
                for step in STEPS:
                    whole.axvline(step, color=pictures.GREY, linewidth=0.6, linestyle=":")
        for ax in rows[-1]:
            ax.set_xlabel("disconnection, s")
        handles, labels = rows[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=3)
    return figure


def _line(ax: Axes, runs: Runs, scheme: str, window: int) -> None:
    line = LINES[scheme]
    points = sorted(
        (case["disconnection_s"], runs.mean(case, "net_duration_s"), spread(runs, case))
        for case in runs.cases(scheme=scheme, window=window)
    )
    ax.errorbar(
        [length for length, _, _ in points],
        [middle.value for _, middle, _ in points if middle],
        yerr=[around.value if around else 0.0 for _, _, around in points],
        color=line.colour,
        marker=line.marker,
        linestyle=line.style,
        markersize=3.5,
        capsize=2,
        elinewidth=0.8,
        linewidth=1.1,
        label=line.label,
    )


def standard(runs: Runs) -> Figure:
    """Figure 4.4."""
    return _draw(runs, [STANDARD])


def rlci(runs: Runs) -> Figure:
    """Figure 4.5."""
    return _draw(runs, [RLCI, CORRECTED])


# --- What the report says ---------------------------------------------------------------------


def _case(runs: Runs, scheme: str, length: float, window: int) -> Case:
    return runs.case(scheme=scheme, disconnection_s=round(length, 3), window=window)


def _net(runs: Runs, scheme: str, length: float, window: int) -> Estimate:
    value = runs.mean(_case(runs, scheme, length, window), "net_duration_s")
    assert value is not None
    return value


def _range(runs: Runs, scheme: str, length: float) -> str:
    """As in "8.0 to 9.2 s", over the likely windows."""
    values = [_net(runs, scheme, length, window).value for window in LIKELY]
    return f"{min(values):.1f} to {max(values):.1f} s"


def _apart(runs: Runs, length: float, to: float, window: int) -> Estimate | None:
    """How much longer standard TCP takes than at another length, over pairs of runs."""
    one, other = (_case(runs, STANDARD, of, window) for of in (length, to))
    return runs.difference(one, other, "net_duration_s")


def _saw(runs: Runs) -> Judgement:
    # The first timeout is no step: what is lost before it is repaired without one.
    later = STEPS[1:]
    held = {
        window: every(
            [
                Check(_apart(runs, length, to, window), band)
                for step in later
                for length, to, band in (
                    (_AFTER * step, _BEFORE * step, above(0.0)),
                    (_LATE * step, _AFTER * step, below(0.0)),
                )
            ]
        )
        for window in FEW
    }
    shown = "; ".join(
        f"{step:.1f} s: {_range(runs, STANDARD, _BEFORE * step)} and"
        f" {_range(runs, STANDARD, _AFTER * step)}"
        for step in later
    )
    last = _case(runs, STANDARD, _AFTER * STEPS[-1], LIKELY[0])
    return windows.joined(
        held,
        f"Net durations right before and right after the retransmission that goes out at {shown}."
        f" From the second on it is to rise there, and to fall until the next.",
        measured=runs.mean(last, "net_duration_s"),
        case=last,
        unit="s",
    )


def _peaks(runs: Runs) -> Judgement:
    later = STEPS[1:]
    held = {
        window: every(
            [
                Check(_apart(runs, _AFTER * b, _AFTER * a, window), above(0.0))
                for a, b in itertools.pairwise(later)
            ]
        )
        for window in FEW
    }
    shown = ", ".join(
        f"{_range(runs, STANDARD, _AFTER * step)} after {step:.1f} s" for step in later
    )
    last = _case(runs, STANDARD, _AFTER * STEPS[-1], LIKELY[0])
    return windows.joined(
        held,
        f"The peaks: {shown}.",
        measured=runs.mean(last, "net_duration_s"),
        case=last,
        unit="s",
    )


def _long(runs: Runs, scheme: str, window: int) -> list[Case]:
    cases = runs.cases(scheme=scheme, window=window)
    return [case for case in cases if case["disconnection_s"] >= _LONG_S]


def _flatness(runs: Runs, scheme: str, window: int) -> tuple[Case, Estimate]:
    """The longest mean of long disconnections, and how many times the shortest it is."""
    long = _long(runs, scheme, window)

    def net(case: Case) -> float:
        value = runs.mean(case, "net_duration_s")
        return value.value if value else 0.0

    most = max(long, key=net)
    ratio = runs.ratio(most, min(long, key=net), "net_duration_s")
    assert ratio is not None
    return most, ratio


def _flat(runs: Runs) -> Judgement:
    held = {}
    for window in FEW:
        longest = _case(runs, RLCI, LONGEST, window)
        held[window] = every(
            [
                Check(runs.ratio(case, longest, "net_duration_s"), between(1 - SMALL, 1 + SMALL))
                for case in _long(runs, RLCI, window)
                if case != longest
            ]
        )
    found = {
        scheme: [_flatness(runs, scheme, window) for window in LIKELY]
        for scheme in (STANDARD, RLCI)
    }
    shown = "; ".join(
        f"{NAMES[scheme]} at most {max(ratio.value for _, ratio in of):.2f}"
        for scheme, of in found.items()
    )
    case, ratio = max(found[RLCI], key=lambda pair: pair[1].value)
    return windows.joined(
        held,
        f"From {_LONG_S:g} s on, the longest mean net duration over the shortest: {shown}. Held"
        f" against that at {LONGEST:g} s, give or take {percent(SMALL)}.",
        measured=ratio,
        case=case,
    )


def _shorter(runs: Runs, window: int) -> list[float]:
    """By run, the mean net duration over all disconnections shorter than the RTO."""
    cases = runs.cases(scheme=RLCI, window=window)
    values = [
        runs.values(case, "net_duration_s") for case in cases if case["disconnection_s"] < RTO_S
    ]
    return [statistics.fmean(run) for run in zip(*values, strict=True)]


def _bump(runs: Runs) -> Judgement:
    """Disconnections shorter than the RTO take longer, on average, than every longer one does."""
    held, shown, ratios = {}, [], {}
    for window in FEW:
        short = _shorter(runs, window)
        ratios[window] = {
            case: ratio_interval(short, runs.values(case, "net_duration_s"))
            for case in runs.cases(scheme=RLCI, window=window)
            if case["disconnection_s"] > RTO_S
        }
        held[window] = every([Check(ratio, above(1 + SMALL)) for ratio in ratios[window].values()])
        most = _longest(runs, RLCI, window)
        value = runs.mean(most, "net_duration_s")
        assert value is not None
        shown.append(
            f"with {window} segments {phrase(mean_interval(short))} s, at most {value.value:.2f} s"
            f" at {units.duration(most['disconnection_s'])}; at {LONGEST:g} s"
            f" {_net(runs, RLCI, LONGEST, window).value:.2f} s"
        )
    last = _case(runs, RLCI, LONGEST, LIKELY[0])
    return windows.joined(
        held,
        f"Mean net duration over the lengths below {units.duration(RTO_S)}: {'; '.join(shown)}. It"
        f" is to be {percent(SMALL)} more than that of each longer disconnection.",
        measured=ratios[LIKELY[0]][last],
        case=last,
    )


def _longest(runs: Runs, scheme: str, window: int) -> Case:
    """The length at which a scheme takes longest."""

    def net(case: Case) -> float:
        value = runs.mean(case, "net_duration_s")
        return value.value if value else 0.0

    return max(runs.cases(scheme=scheme, window=window), key=net)


def answers(runs: Runs) -> Sequence[Answer]:
    """What correcting the protocol changes here."""
    shown = []
    ratios = {}
    for window in FEW:
        most = _longest(runs, CORRECTED, window)
        last = _case(runs, CORRECTED, LONGEST, window)
        ratios[window] = runs.ratio(most, last, "net_duration_s")
        shown.append(
            f"{phrase(ratios[window])} with {window} segments"
            f" ({units.duration(most['disconnection_s'])})"
        )
    worst = max(ratios, key=lambda window: value.value if (value := ratios[window]) else 0.0)
    return [
        Answer(
            "Is the bump at short disconnections gone without the protocol's holes?",
            "beyond",
            None,
            f"Corrected, the longest mean net duration over that at {LONGEST:g} s is"
            f" {', '.join(shown)}.",
            _longest(runs, CORRECTED, worst),
            ratios[worst],
        )
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    ratio = max(_flatness(runs, RLCI, window)[1].value for window in LIKELY)
    return (
        f"Standard TCP takes {_range(runs, STANDARD, _AFTER * STEPS[-1])} net at"
        f" {_AFTER * STEPS[-1]:.0f} s of disconnection; with RLCI the longest mean is at most"
        f" {ratio:.2f} times the shortest, from {_LONG_S:g} s on."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="fig4.4",
    title="Net duration over the length of a disconnection",
    also=("fig4.5",),
    asks="How long does a transfer of 5 MB take, without the time in which the phone is attached"
    " nowhere?",
    where="§4.2, figures 4.4 and 4.5",
    method=(
        "The network of figure 4.2, 5 MB. The phone leaves after 0.5 to 5 s, uniform, 25 draws that"
        " are the same for all lengths and schemes; it is away for 1 ms to 50 s.",
        f"Receive windows, which the report does not give, of {', '.join(map(str, FEW))} segments."
        " A statement holds, or differs, if it does with all that meet the times of figures 4.2"
        " and 4.3; where they disagree, it is undecided.",
        "Lengths are chosen around the times at which standard TCP sends again, 0.2 (2^k - 1)"
        " seconds after the detachment at the earliest.",
        "The pictures' bars are standard deviations, as the report's.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("net_duration_s", "s", "net duration, s"),
        Measure("deviation_s", "s", "its deviation, s", spread),
        Measure(
            "gain_s",
            "s",
            "standard less this, s",
            schemes.against_standard("net_duration_s"),
        ),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(
        Drawn("Figure 4.4: standard TCP. Dotted: when it sends again.", standard, bars=False),
        Drawn("Figure 4.5: RLCI.", rlci, bars=False),
    ),
    tests={"sawtooth": _saw, "peaks-grow": _peaks, "flat": _flat, "bump": _bump},
    answers=answers,
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "window": "window, segments",
        "disconnection_s": "disconnection, s",
    },
)
