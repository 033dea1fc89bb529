"""One transfer over a disconnection of eight seconds (koutsianas2007 §4.2, figures 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from lasthop import lab, pictures
from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.koutsianas2007.schemes import MENDED, NAMES, RLCI, STANDARD
from lasthop.publications.study.published import Answer, Section, judged_value
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, below
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/fig4.2"
#: When it leaves one access point and is attached to the next.
LEFT_S, BACK_S = 2.0, 10.0
SEGMENT = 1500
HALVE, HOLD = "halve", "hold"
#: Who sends, and what a timeout after another does to ssthresh.
ARMS = ((STANDARD, HALVE), (STANDARD, HOLD), (RLCI, HALVE), (MENDED, HALVE))
#: "Immediately": no round trip later.
_AT_ONCE_S = 0.01


@dataclass(frozen=True)
class Trace:
    """What the sender sent and heard, in segments over seconds."""

    sent: tuple[list[float], list[float]]
    again: tuple[list[float], list[float]]
    acknowledged: tuple[list[float], list[float]]

    @classmethod
    def of(cls, events: pl.DataFrame) -> Trace:
        """From the events of a run."""
        own = events.filter(pl.col("node") == "phone")
        data = own.filter((pl.col("event") == "sent") & (pl.col("len") > 1))
        acks = own.filter(pl.col("event") == "acknowledged")

        def points(rows: pl.DataFrame, column: str) -> tuple[list[float], list[float]]:
            return rows["t_s"].to_list(), (rows[column] / SEGMENT).to_list()

        return cls(
            points(data.filter(~pl.col("again")), "start"),
            points(data.filter(pl.col("again")), "start"),
            points(acks, "una"),
        )


def _cell(scheme: str, backoff: str) -> Cell:
    (flow,) = schemes.flows(SCENARIO)
    flow["tcp"] = {**schemes.tcp(flow["tcp"], scheme), "ssthresh_on_backoff": backoff}
    case = Case(scheme=scheme, ssthresh_on_backoff=backoff, disconnection_s=BACK_S - LEFT_S)
    # Nothing is drawn in it: one run says everything.
    return Cell(case, SCENARIO, {"flows": [flow]}, 1, 1)


def cells() -> list[Cell]:
    """All arms."""
    return [_cell(scheme, backoff) for scheme, backoff in ARMS]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """When it goes on after the disconnection, and when the last byte is acknowledged."""
    result = lab.run(scenario, seed=seed, events=True)
    assert result.events is not None
    times, _ = Trace.of(result.events).acknowledged
    heard = [time for time in times if time >= BACK_S]
    sent = result.events.filter(
        (pl.col("node") == "phone") & (pl.col("event") == "sent") & (pl.col("t_s") >= BACK_S)
    )
    end = heard[-1] if heard else None
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


def _sequences(arms: Sequence[tuple[str, str, str]]) -> Figure:
    with pictures.figure(11, 4) as drawn:
        axes = drawn.subplots(1, len(arms), sharey=True)
        for ax, (scheme, backoff, title) in zip(axes, arms, strict=True):
            _draw(ax, _cell(scheme, backoff), title)
            ax.set_xlabel("seconds")
        axes[0].set_ylabel("segment")
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=3, markerscale=2.5)
    return drawn


def standard(_: Runs) -> Figure:
    """Figure 4.2, with either reading of a timeout after another."""
    return _sequences(
        [
            (STANDARD, HALVE, "Each timeout halves ssthresh, as in ns-2"),
            (STANDARD, HOLD, "Only the first one does"),
        ]
    )


def rlci(_: Runs) -> Figure:
    """Figure 4.3, and without the protocol's holes."""
    return _sequences([(RLCI, HALVE, "As published"), (MENDED, HALVE, "Mended")])


# --- What the report says ---------------------------------------------------------------------


def _value(runs: Runs, scheme: str, metric: str, backoff: str = HALVE) -> float:
    (value,) = runs.values(runs.case(scheme=scheme, ssthresh_on_backoff=backoff), metric)
    return value


def _held(id: str, runs: Runs, metric: str, case: Case, why: str) -> Judgement:
    """What a run says to the time that a statement gives."""
    of = Section.of(schemes.PUBLICATION, "fig4.2").value(id)
    return judged_value(of, why, runs.mean(case, metric), case, "s", exact=True)


def _stalls(runs: Runs) -> Judgement:
    case = runs.case(scheme=STANDARD, ssthresh_on_backoff=HALVE)
    resumes = _value(runs, STANDARD, "resume_s")
    why = (
        f"After {_value(runs, STANDARD, 'timeouts'):.0f} timeouts from the start of the"
        f" disconnection it sends again at {resumes:.2f} s, {resumes - BACK_S:.2f} s after it is"
        " attached: the retransmissions go out at 2.0 + 0.2 (2^k - 1) seconds."
    )
    return _held("standard-stalls", runs, "resume_s", case, why)


def _ends(runs: Runs) -> Judgement:
    case = runs.case(scheme=STANDARD, ssthresh_on_backoff=HALVE)
    halve, hold = (_value(runs, STANDARD, "duration_s", how) for how in (HALVE, HOLD))
    why = (
        f"It ends at {halve:.2f} s if every timeout in a row halves ssthresh, and at {hold:.2f} s"
        " if only the first one does (RFC 5681 §3.1)."
    )
    return _held("standard-ends", runs, "duration_s", case, why)


def _half_window(runs: Runs) -> Judgement:
    case = runs.case(scheme=STANDARD, ssthresh_on_backoff=HOLD)
    halve, hold = (_value(runs, STANDARD, "duration_s", how) for how in (HALVE, HOLD))
    why = (
        f"With half the last window as ssthresh the transfer ends at {hold:.2f} s; with a"
        f" threshold that all timeouts have halved, at {halve:.2f} s."
    )
    return _held("ssthresh-half-the-window", runs, "duration_s", case, why)


def _at_once(runs: Runs) -> Judgement:
    case = runs.case(scheme=RLCI)
    resumes = runs.mean(case, "resume_s")
    return Judgement(
        Check(resumes, below(BACK_S + _AT_ONCE_S), exact=True).verdict,
        f"It sends {1e3 * (_value(runs, RLCI, 'resume_s') - BACK_S):.1f} ms after it is attached;"
        f" at once is taken as within {1e3 * _AT_ONCE_S:g} ms.",
        resumes,
        case,
        "s",
    )


def _shorter(runs: Runs) -> Judgement:
    case = runs.case(scheme=RLCI)
    ends = _value(runs, RLCI, "duration_s")
    why = f"It ends at {ends:.2f} s, net of the disconnection {ends - BACK_S + LEFT_S:.2f} s."
    return _held("rlci-ends", runs, "duration_s", case, why)


def answers(runs: Runs) -> Sequence[Answer]:
    """What mending the protocol changes here."""
    case = runs.case(scheme=MENDED)
    strict, mended = (_value(runs, scheme, "duration_s") for scheme in (RLCI, MENDED))
    return [
        Answer(
            "Does the protocol without its holes do as well?",
            "beyond",
            None,
            f"It ends at {mended:.2f} s, the published one at {strict:.2f} s.",
            case,
            runs.mean(case, "duration_s"),
            "s",
        )
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    ends: dict[str, Any] = {
        scheme: _value(runs, scheme, "duration_s") for scheme in (STANDARD, RLCI)
    }
    return (
        f"Standard TCP resumes at {_value(runs, STANDARD, 'resume_s'):.1f} s and ends at"
        f" {ends[STANDARD]:.1f} s, RLCI at {ends[RLCI]:.1f} s."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="fig4.2",
    title="A transfer over a disconnection of eight seconds",
    asks="A phone sends 3 MB. At 2 s it loses its access point, at 10 s it finds another: when does"
    " its transfer go on, and when is it done?",
    where="§4.2, figures 4.2 and 4.3",
    method=(
        "6 Mb/s and 1 ms to each access point, 1 Gb/s and 40 ms behind it, drop-tail queues of what"
        " a link sends in 100 ms; 2000 segments of 1500 bytes, SACK, timestamps on in all arms,"
        " profile ns2-2007. What is queued for the link or on it as the phone leaves is lost.",
        "Unpublished is the receive window: 50 segments here. The published times follow with 42 to"
        " 60.",
        "RLCI hears at the phone alone that it is attached anew. Its segments have 8 bytes more, so"
        " that as much data is in each.",
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
        Drawn(f"Figure 4.3: {NAMES[RLCI]}, and mended.", rlci, bars=False),
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
    keys={"scheme": "scheme", "ssthresh_on_backoff": "timeouts in a row"},
)
reproduce = STUDY.reproduce
