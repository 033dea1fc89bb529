"""Net duration over the length of a disconnection (koutsianas2007 §4.2, figures 4.4 and 4.5)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.koutsianas2007.schemes import LINES, MENDED, NAMES, RLCI, STANDARD
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, above, below, between, every, some
from lasthop.publications.study.words import MARKED, SMALL, percent, told
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/fig4.4"
SCHEMES = (STANDARD, RLCI, MENDED)
SEEDS, QUICK_SEEDS = 15, 3
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


def drawn(disconnection: float, run: int) -> Mapping[str, Any]:
    """When it leaves, the same for all lengths and schemes, and is back."""
    left = random.Random(f"fig4.4, run {run}").uniform(0.5, 5.0)
    return schemes.attached(left, left + disconnection)


def cells() -> list[Cell]:
    """Every scheme and every length."""
    (flow,) = schemes.flows(SCENARIO)
    return [
        Cell(
            Case(scheme=scheme, disconnection_s=length),
            SCENARIO,
            {"flows": [{**flow, "tcp": schemes.tcp(flow["tcp"], scheme)}]},
            SEEDS,
            QUICK_SEEDS,
            drawn=partial(drawn, length),
        )
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
    with pictures.figure(11, 3.8) as figure:
        whole, short = figure.subplots(1, 2, width_ratios=[2, 1])
        for ax in (whole, short):
            for scheme in of:
                line = LINES[scheme]
                points = sorted(
                    (case["disconnection_s"], runs.mean(case, "net_duration_s"), spread(runs, case))
                    for case in runs.cases(scheme=scheme)
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
            ax.set_xlabel("disconnection, s")
            ax.set_ylim(bottom=0)
        whole.set_title("Net duration, s")
        short.set_title("The shortest disconnections")
        short.set_xlim(-0.02, 0.8)
        short.set_ylim(0, 14)
        if STANDARD in of:
            for step in STEPS:
                whole.axvline(step, color=pictures.GREY, linewidth=0.6, linestyle=":")
        handles, labels = whole.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=3)
    return figure


def standard(runs: Runs) -> Figure:
    """Figure 4.4."""
    return _draw(runs, [STANDARD])


def rlci(runs: Runs) -> Figure:
    """Figure 4.5."""
    return _draw(runs, [RLCI, MENDED])


# --- What the report says ---------------------------------------------------------------------


def _net(runs: Runs, scheme: str, length: float) -> Estimate:
    value = runs.mean(runs.case(scheme=scheme, disconnection_s=round(length, 3)), "net_duration_s")
    assert value is not None
    return value


def _teeth(runs: Runs) -> list[tuple[float, Estimate, Estimate]]:
    """Every step with what is measured right before and right after it."""
    return [
        (step, _net(runs, STANDARD, _BEFORE * step), _net(runs, STANDARD, _AFTER * step))
        for step in STEPS
    ]


def _apart(runs: Runs, length: float, to: float) -> Estimate | None:
    """How much longer standard TCP takes than at another length, over pairs of runs."""
    one, other = (runs.case(scheme=STANDARD, disconnection_s=round(of, 3)) for of in (length, to))
    return runs.difference(one, other, "net_duration_s")


def _saw(runs: Runs) -> Judgement:
    teeth = _teeth(runs)
    # The first timeout is no step: what is lost before it is repaired without one.
    later = STEPS[1:]
    rises = [Check(_apart(runs, _AFTER * step, _BEFORE * step), above(0.0)) for step in later]
    falls = [Check(_apart(runs, _LATE * step, _AFTER * step), below(0.0)) for step in later]
    shown = ", ".join(
        f"{step:.1f} s: {before.value:.1f} to {after.value:.1f}" for step, before, after in teeth
    )
    return every([*rises, *falls]).judged(
        f"Seconds net right before and right after the retransmission that goes out at {shown}."
        f" From the second on it is to rise there, and to fall until the next.",
        _net(runs, STANDARD, _AFTER * STEPS[-1]),
        runs.case(scheme=STANDARD, disconnection_s=round(_AFTER * STEPS[-1], 3)),
        "s",
    )


def _peaks(runs: Runs) -> Judgement:
    peaks = [(step, after) for step, _, after in _teeth(runs)[1:]]
    grows = [
        Check(_apart(runs, _AFTER * b, _AFTER * a), above(0.0))
        for (a, _), (b, _) in itertools.pairwise(peaks)
    ]
    return every(grows).judged(
        "The peaks, s: "
        + ", ".join(f"{after.value:.1f} after {step:.1f} s" for step, after in peaks)
        + ".",
        peaks[-1][1],
        runs.case(scheme=STANDARD, disconnection_s=round(_AFTER * STEPS[-1], 3)),
        "s",
    )


def _long(runs: Runs, scheme: str) -> list[Case]:
    return [case for case in runs.cases(scheme=scheme) if case["disconnection_s"] >= _LONG_S]


def _flatness(runs: Runs, scheme: str) -> tuple[Case, Case, Estimate]:
    """The shortest and the longest mean of long disconnections, and their ratio."""
    long = _long(runs, scheme)

    def net(case: Case) -> float:
        value = runs.mean(case, "net_duration_s")
        return value.value if value else 0.0

    least, most = min(long, key=net), max(long, key=net)
    ratio = runs.ratio(most, least, "net_duration_s")
    assert ratio is not None
    return least, most, ratio


def _flat(runs: Runs) -> Judgement:
    told_of = []
    for scheme in (STANDARD, RLCI):
        least, most, ratio = _flatness(runs, scheme)
        told_of.append(
            f"{NAMES[scheme]} {told(ratio)} (at {most['disconnection_s']:g} s over at"
            f" {least['disconnection_s']:g} s)"
        )
    _, most, ratio = _flatness(runs, RLCI)
    return every(
        [
            Check(_over(runs, case, _longest(runs)), between(1 - SMALL, 1 + SMALL))
            for case in _long(runs, RLCI)
            if case != _longest(runs)
        ]
    ).judged(
        f"From {_LONG_S:g} s on, the longest mean net duration over the shortest:"
        f" {'; '.join(told_of)}. Held against that at {LONGEST:g} s, give or take"
        f" {percent(SMALL)}.",
        ratio,
        most,
    )


def _longest(runs: Runs) -> Case:
    return runs.case(scheme=RLCI, disconnection_s=LONGEST)


def _over(runs: Runs, case: Case, to: Case) -> Estimate | None:
    return runs.ratio(case, to, "net_duration_s")


def _bump(runs: Runs) -> Judgement:
    """Some disconnection of about the RTO at most takes longer than every longer one does."""
    of = runs.cases(scheme=RLCI)
    short = [case for case in of if case["disconnection_s"] <= RTO_S * (1 + MARKED)]
    longer = [case for case in of if case not in short]
    bump = some(
        [every([Check(_over(runs, case, to), above(1 + SMALL)) for to in longer]) for case in short]
    )

    def net(case: Case) -> float:
        value = runs.mean(case, "net_duration_s")
        return value.value if value else 0.0

    most = max(of, key=net)
    length = most["disconnection_s"]
    value, timeouts = runs.mean(most, "net_duration_s"), runs.mean(most, "timeouts")
    beside, longest = _net(runs, STANDARD, length), _net(runs, RLCI, LONGEST)
    assert timeouts is not None
    return bump.judged(
        f"Its longest mean net duration is {told(value)} s, at {units.duration(length)}, with"
        f" {timeouts.value:.1f} timeouts a run; standard TCP takes {told(beside)} s there. At"
        f" {LONGEST:g} s RLCI takes {told(longest)} s. Lengths up to"
        f" {units.duration(RTO_S * (1 + MARKED))} are held against all longer ones, of which one is"
        f" to take {percent(SMALL)} more than each.",
        value,
        most,
        "s",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What mending the protocol changes here."""
    worst = max(DISCONNECTIONS, key=lambda length: _net(runs, MENDED, length).value)
    case = runs.case(scheme=MENDED, disconnection_s=worst)
    return [
        Answer(
            "Is the bump at short disconnections gone without the protocol's holes?",
            "beyond",
            None,
            f"Mended it takes at most {told(_net(runs, MENDED, worst))} s, at"
            f" {units.duration(worst)}; at {LONGEST:g} s {told(_net(runs, MENDED, LONGEST))} s.",
            case,
            runs.mean(case, "net_duration_s"),
            "s",
        )
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    _, _, ratio = _flatness(runs, RLCI)
    last = _net(runs, STANDARD, _AFTER * STEPS[-1])
    return (
        f"Standard TCP takes {last.value:.0f} s net at {_AFTER * STEPS[-1]:.0f} s of disconnection;"
        f" with RLCI the longest mean is {ratio.value:.2f} times the shortest."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="fig4.4",
    title="Net duration over the length of a disconnection",
    asks="How long does a transfer of 5 MB take, without the time in which the phone is attached"
    " nowhere?",
    where="§4.2, figures 4.4 and 4.5",
    method=(
        "The network of figure 4.2, 5 MB. The phone leaves after 0.5 to 5 s, uniform, 15 draws that"
        " are the same for all lengths and schemes; it is away for 1 ms to 50 s.",
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
    keys={"scheme": "scheme", "disconnection_s": "disconnection, s"},
)
reproduce = STUDY.reproduce
