"""One transfer over a disconnection of eight seconds (koutsianas2007 §4.2, figures 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.koutsianas2007 import schemes, windows
from lasthop.publications.koutsianas2007.schemes import CORRECTED, NAMES, RLCI, STANDARD
from lasthop.publications.koutsianas2007.windows import WINDOWS
from lasthop.publications.study.published import Answer, Section
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, Verdict, below
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/fig4.2"
#: When it leaves one access point and is attached to the next.
LEFT_S, BACK_S = 2.0, 10.0
SEGMENT = 1500
HALVE, HOLD = "halve", "hold"
#: Who sends, and what a timeout after another does to ssthresh.
ARMS = ((STANDARD, HALVE), (STANDARD, HOLD), (RLCI, HALVE), (CORRECTED, HALVE))
#: "Immediately": no round trip later.
_AT_ONCE_S = 0.01
#: Of the pictures: a window of each kind that meets the published times.
_DRAWN = (50, 200)


@dataclass(frozen=True)
class Trace:
    """The segments that the sender sent and the acknowledgments it got, over seconds."""

    sent: tuple[list[float], list[float]]
    again: tuple[list[float], list[float]]
    acknowledged: tuple[list[float], list[float]]

    @classmethod
    def of(cls, events: pl.DataFrame) -> Trace:
        """From the events of a run."""
        own = events.filter(events["node"] == "phone")
        data = own.filter((own["event"] == "sent") & (own["len"] > 1))
        acks = own.filter(own["event"] == "acknowledged")

        def points(rows: pl.DataFrame, column: str) -> tuple[list[float], list[float]]:
            return rows["t_s"].to_list(), (rows[column] / SEGMENT).to_list()

        return cls(
            points(data.filter(~data["again"]), "start"),
            points(data.filter(data["again"]), "start"),
            points(acks, "una"),
        )


def _cell(scheme: str, backoff: str, window: int) -> Cell:
    (flow,) = schemes.flows(SCENARIO)
    tcp = {**schemes.tcp(flow["tcp"], scheme), **windows.setting(window)}
    flow["tcp"] = {**tcp, "ssthresh_on_backoff": backoff}
    case = Case(scheme=scheme, ssthresh_on_backoff=backoff, window=window)
    # Nothing is drawn in it: one run says everything.
    return Cell(case, SCENARIO, {"flows": [flow]}, 1, 1)


def cells() -> list[Cell]:
    """All arms, with all windows."""
    return [_cell(scheme, backoff, window) for window in WINDOWS for scheme, backoff in ARMS]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """When it goes on after the disconnection, and when the last byte is acknowledged."""
    result = lab.run(scenario, seed=seed, events=True)
    assert result.events is not None
    events = result.events
    times, _ = Trace.of(events).acknowledged
    acknowledged = [time for time in times if time >= BACK_S]
    sent = events.filter(
        (events["node"] == "phone") & (events["event"] == "sent") & (events["t_s"] >= BACK_S)
    )
    end = acknowledged[-1] if acknowledged else None
    return {
        "resume_s": sent["t_s"][0] if len(sent) else None,
        "duration_s": end,
        "net_duration_s": None if end is None else end - (BACK_S - LEFT_S),
        "timeouts": float(result.rows["timeouts"][0]),
    }


# --- Pictures --------------------------------------------------------------------------------


def _draw(ax: Axes, cell: Cell, title: str) -> None:
    scenario, seed = cell.single(0)
    events = lab.run(scenario, seed=seed, events=True).events
    assert events is not None
    found = Trace.of(events)
    for (times, numbers), colour, marker, label, size in (
        (found.acknowledged, pictures.SKY, ".", "acknowledged", 2.0),
        (found.sent, pictures.BLACK, ".", "sent", 2.0),
        (found.again, pictures.ORANGE, "x", "sent again", 3.5),
    ):
        ax.plot(times, numbers, marker, color=colour, markersize=size, label=label)
    for time in (LEFT_S, BACK_S):
        ax.axvline(time, color=pictures.GREY, linewidth=1.0)
    ax.set_title(title)
    ax.set_xlim(0, 20)
    ax.set_ylim(-20, 2050)


def _sequences(arms: Sequence[tuple[str, str, int, str]]) -> Figure:
    with pictures.figure(11, 4) as drawn:
        axes = drawn.subplots(1, len(arms), sharey=True)
        for ax, (scheme, backoff, window, title) in zip(axes, arms, strict=True):
            _draw(ax, _cell(scheme, backoff, window), title)
            ax.set_xlabel("seconds")
        axes[0].set_ylabel("segment")
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=3, markerscale=2.5)
    return drawn


def standard(_: Runs) -> Figure:
    """Figure 4.2, with either reading of a timeout after another."""
    small, large = _DRAWN
    return _sequences(
        [
            (STANDARD, HALVE, small, f"Window {small}:\neach timeout halves ssthresh"),
            (STANDARD, HALVE, large, f"Window {large}:\neach timeout halves ssthresh"),
            (STANDARD, HOLD, small, f"Window {small}:\nonly the first one does"),
        ]
    )


def rlci(_: Runs) -> Figure:
    """Figure 4.3."""
    return _sequences([(RLCI, HALVE, window, f"Window {window}") for window in _DRAWN])


def by_window(runs: Runs) -> Figure:
    """When both end, over the receive window."""
    with pictures.figure(11, 3.8) as drawn:
        axes = drawn.subplots(1, 2)
        for ax, (scheme, backoffs, title) in zip(
            axes,
            ((STANDARD, (HALVE, HOLD), "Standard TCP ends at, s"), (RLCI, (HALVE,), "RLCI, s")),
            strict=True,
        ):
            for backoff, colour in zip(backoffs, (pictures.BLUE, pictures.ORANGE), strict=False):
                ends = [_value(runs, scheme, "duration_s", window, backoff) for window in WINDOWS]
                ax.plot(WINDOWS, ends, ".-", color=colour, linewidth=1.0, label=backoff)
            number = _number("standard-ends" if scheme == STANDARD else "rlci-ends")
            ax.axhline(number.value, color=pictures.GREY, linewidth=1.0, linestyle=":")
            ax.set_xscale("log")
            ax.set_xticks([20, 41, 91, 200, 500], ["20", "41", "91", "200", "500"])
            ax.minorticks_off()
            ax.set_xlabel("receive window, segments")
            ax.set_title(title)
        axes[0].legend(title="a timeout after another")
    return drawn


# --- What the report says ---------------------------------------------------------------------


def _value(runs: Runs, scheme: str, metric: str, window: int, backoff: str = HALVE) -> float:
    case = runs.case(scheme=scheme, ssthresh_on_backoff=backoff, window=window)
    # All runs are the same.
    return runs.values(case, metric)[0]


def _number(id: str) -> Any:
    return Section.of(schemes.PUBLICATION, "fig4.2").value(id)


@dataclass(frozen=True)
class Time:
    """One of the published times."""

    id: str
    scheme: str
    metric: str


TIMES = (
    Time("standard-stalls", STANDARD, "resume_s"),
    Time("standard-ends", STANDARD, "duration_s"),
    Time("rlci-ends", RLCI, "duration_s"),
)


def _time(runs: Runs, time: Time, window: int, backoff: str = HALVE) -> float:
    # RLCI has no timeout after another on the new path.
    rule = backoff if time.scheme == STANDARD else HALVE
    return _value(runs, time.scheme, time.metric, window, rule)


def to_the_digit(runs: Runs, times: Sequence[Time] = TIMES, backoff: str = HALVE) -> list[int]:
    """The windows with which all these times are those that are printed, when rounded."""
    return [
        window
        for window in WINDOWS
        if all(
            abs(_time(runs, time, window, backoff) - _number(time.id).value)
            <= _number(time.id).last_digit / 2
            for time in times
        )
    ]


def _held(runs: Runs, time: Time, backoff: str = HALVE, more: str = "") -> Judgement:
    """The window, which was not published, follows from the other times of both figures: this time
    is compared with every window with which the others are met to the digit."""
    of = _number(time.id)
    others = [other for other in TIMES if other is not time]
    given_by = to_the_digit(runs, others)
    values = {window: _time(runs, time, window, backoff) for window in given_by}
    met = {value in of.band for value in values.values()}
    verdict = Verdict.of(met == {True}) if len(met) == 1 else Verdict.UNDECIDED
    shown = min(values, key=lambda window: abs(values[window] - of.value), default=WINDOWS[0])
    rule = backoff if time.scheme == STANDARD else HALVE
    case = runs.case(scheme=time.scheme, ssthresh_on_backoff=rule, window=shown)
    said = (
        f"{min(values.values()):.2f} to {max(values.values()):.2f} s"
        if values
        else "nothing: no window meets them"
    )
    return Judgement(
        verdict,
        f"With the windows that the other times of both figures leave, to the digit"
        f" ({windows.stretches(given_by, WINDOWS)} of {WINDOWS[0]} to {WINDOWS[-1]} segments), it"
        f" is {said}. This time alone comes out to the digit with"
        f" {windows.stretches(to_the_digit(runs, [time], backoff), WINDOWS)}.{more}",
        runs.mean(case, time.metric),
        case,
        "s",
        criterion=f"{of.criterion} with every such window",
    )


def _stalls(runs: Runs) -> Judgement:
    more = " The retransmissions go out at 2.0 + 0.2 (2^k - 1) seconds."
    return _held(runs, TIMES[0], more=more)


def _ends(runs: Runs) -> Judgement:
    return _held(runs, TIMES[1])


def _half_window(runs: Runs) -> Judgement:
    more = " Only the first of the timeouts in a row halves the threshold here (RFC 5681 §3.1)."
    return _held(runs, TIMES[1], HOLD, more)


def _at_once(runs: Runs) -> Judgement:
    resumes = [_value(runs, RLCI, "resume_s", window) for window in WINDOWS]
    case = runs.case(scheme=RLCI, window=WINDOWS[resumes.index(max(resumes))])
    latest = runs.mean(case, "resume_s")
    check = Check(latest, below(BACK_S + _AT_ONCE_S), exact=True)
    return Judgement(
        check.verdict,
        f"With every window it sends {1e3 * (max(resumes) - BACK_S):.1f} ms after it is attached,"
        f" or sooner; at once is taken as within {1e3 * _AT_ONCE_S:g} ms.",
        latest,
        case,
        "s",
        criterion=check.criterion,
    )


def _shorter(runs: Runs) -> Judgement:
    return _held(runs, TIMES[2])


def answers(runs: Runs) -> Sequence[Answer]:
    """Which window it may have been, and what correcting the protocol changes here."""
    apart = {
        window: abs(
            _value(runs, RLCI, "duration_s", window) - _value(runs, CORRECTED, "duration_s", window)
        )
        for window in WINDOWS
    }
    most = max(apart, key=lambda window: apart[window])
    exactly = to_the_digit(runs)
    held = to_the_digit(runs, backoff=HOLD)
    return [
        Answer(
            "Which receive windows, which the report does not give, meet the published times?",
            "§4.2",
            None,
            f"All of them to the digit: {windows.stretches(exactly, WINDOWS)} segments, of"
            f" {len(WINDOWS)} that were tried from {WINDOWS[0]} to {WINDOWS[-1]}; with `hold`"
            f" instead of `halve`: {windows.stretches(held, WINDOWS)}.",
            Case(scheme=STANDARD, ssthresh_on_backoff=HALVE),
        ),
        Answer(
            "Does the protocol without its holes do as well?",
            "beyond",
            None,
            f"With any window it ends within {apart[most]:.2f} s of the published one.",
            runs.case(scheme=CORRECTED, window=most),
            runs.mean(runs.case(scheme=CORRECTED, window=most), "duration_s"),
            "s",
        ),
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    exactly = windows.stretches(to_the_digit(runs), WINDOWS)
    return (
        f"Both transfers end when they were published to, to the digit, with receive windows of"
        f" {exactly} segments, if every timeout in a row halves ssthresh."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="fig4.2",
    title="A transfer over a disconnection of eight seconds",
    also=("fig4.3",),
    asks="A phone sends 3 MB. At 2 s it loses its access point, at 10 s it finds another: when does"
    " its transfer go on, and when is it done?",
    where="§4.2, figures 4.2 and 4.3",
    method=(
        "6 Mb/s and 1 ms to each access point, 1 Gb/s and 40 ms behind it, drop-tail queues of what"
        " a link sends in 100 ms; 2000 segments of 1500 bytes, SACK, timestamps on in all arms,"
        " profile ns2-2007. What is queued for the link or on it as the phone leaves is lost.",
        "Unpublished is the receive window: everything is run with windows from 20 to 500 segments."
        " A published time is held with those windows with which the other times are met to the"
        " digit.",
        "With RLCI the phone alone is notified that it is attached anew. Its segments have 8 bytes"
        " more, so that as much data is in each.",
        "Nothing is drawn at random: each cell is one run.",
    ),
    cells=cells,
    exact=True,
    observe=observe,
    measures=(
        mean("resume_s", "s", "resumes at, s"),
        mean("duration_s", "s", "ends at, s"),
        mean("net_duration_s", "s", "net duration, s"),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(
        Drawn(
            "Figure 4.2: standard TCP. The lines are the times at which it leaves one access point"
            " and is attached to the next.",
            standard,
            bars=False,
        ),
        Drawn(f"Figure 4.3: {NAMES[RLCI]}.", rlci, bars=False),
        Drawn("When the transfer ends, over the receive window; dotted: as published.", by_window),
    ),
    tests={
        "standard-stalls": _stalls,
        "standard-ends": _ends,
        "ssthresh-half-the-window": _half_window,
        "rlci-at-once": _at_once,
        "rlci-ends": _shorter,
    },
    answers=answers,
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "ssthresh_on_backoff": "timeouts in a row",
        "window": "window, segments",
    },
)
