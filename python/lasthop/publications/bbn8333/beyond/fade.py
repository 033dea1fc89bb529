"""Channel fades (bbn8333 §8.3)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lasthop import lab, units
from lasthop.publications.bbn8333.beyond import channels
from lasthop.publications.bbn8333.beyond.channels import HIGH, LONG, bit_errors, packet_loss
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Cell, Runs

#: How long a fade lasts, seconds; 0 are single bit errors at all times.
ALWAYS = 0.0
FADES = (0.05, 0.2, 1.0, 4.0)
#: The share of the time that is faded. Whole numbers of periods fit a run.
FADED = 0.1
WORDS: Mapping[Any, str] = {ALWAYS: "none", **{fade: units.duration(fade) for fade in FADES}}
#: Where in its period a fade begins: from run to run another, lest all depend on how that falls on
#: timers and round trips.
_PHASES = 10
_KEY = "fade_s"


def _pattern(fade: float) -> Callable[[float], Mapping[str, Any]]:
    def of(rate: float) -> Mapping[str, Any]:
        errors: Mapping[str, Any] = {"bit": rate}
        if fade != ALWAYS:
            period = fade / FADED
            bit = bit_errors(packet_loss(rate) / FADED)
            span = {"start": _ms(0), "end": _ms(fade), "bit": bit}
            errors = {"fades": {"every": _ms(period), "at": [span]}}
        return {"links.0.errors": errors}

    return of


def _along(fade: float) -> Mapping[str, Sequence[Any]]:
    if fade == ALWAYS:
        return {}
    starts = [fade / FADED * phase / _PHASES for phase in range(_PHASES)]
    span = "links.0.errors.fades.at.0"
    return {
        f"{span}.start": [_ms(start) for start in starts],
        f"{span}.end": [_ms(start + fade) for start in starts],
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms"


def cells() -> list[Cell]:
    """Errors at all times, and fades of every length."""
    patterns = {fade: _pattern(fade) for fade in (ALWAYS, *FADES)}
    return channels.cells("bbn8333/beyond/fade", _KEY, patterns, _along)


def answers(runs: Runs) -> Sequence[Answer]:
    """What fades do to the gain, and to the goodput that is left."""
    long = {"one_way_delay_s": LONG, "bit_error_rate": HIGH}
    case = runs.case(eten="backward", recovery="sack", **{_KEY: FADES[-1]}, **long)
    lengths = ", ".join(units.duration(fade) for fade in FADES)

    def gains(eten: str, recovery: str) -> str:
        return channels.gains(runs, _KEY, (ALWAYS, *FADES), eten, recovery=recovery, **long)

    ends = (ALWAYS, FADES[-1])
    corrupted = channels.alone(runs, "corrupted_share", _KEY, ends, recovery="sack", **long)
    return [
        Answer(
            "How does the gain by ETEN change if the channel fades?",
            "§8.3",
            None,
            f"SACK, 320 ms: with errors at all times and with fades of {lengths}, Backward"
            " multiplies"
            f" the goodput by {gains('backward', 'sack')}; Oracle by {gains('oracle', 'sack')}."
            " Reno:"
            f" Backward {gains('backward', 'reno')}.",
            case,
            runs.ratio(case, case.but(eten=NONE), "goodput_bps"),
        ),
        Answer(
            "What is left of the goodput in fades, beside errors at all times?",
            "§8.3",
            None,
            "SACK, 320 ms: "
            + "; ".join(
                f"fades of {units.duration(fade)} multiply the goodput of"
                f" {channels.kept(runs, _KEY, fade, ALWAYS, recovery='sack', **long)}"
                for fade in (FADES[0], FADES[-1])
            )
            + f". With errors at all times and fades of {units.duration(FADES[-1])}, of the packets"
            " of TCP alone are corrupted"
            f" {corrupted} (shares).",
        ),
        _never_worse(runs),
        channels.oracle_bounds(runs, "fades"),
    ]


def _never_worse(runs: Runs) -> Answer:
    """With what delays Backward where it does worse."""
    fade, case = 0.2, {"one_way_delay_s": channels.SHORT, "bit_error_rate": HIGH}
    answer = channels.never_worse(runs, "fades")
    alone, notified = (
        _timeout_after_s(eten, fade, recovery="sack", **case) for eten in (NONE, "backward")
    )
    return replace(
        answer,
        why=f"{answer.why} Every notice that arrives restarts the retransmission timer, and so puts"
        " off the timeout that a lost one makes necessary: with SACK at 10 ms and fades of"
        f" {units.duration(fade)}, timeouts come {notified:.2f} s after a fade begins, and"
        f" {alone:.2f} s after it without ETEN (one run each).",
    )


def _timeout_after_s(eten: str, fade: float, **where: Any) -> float:
    """When in a period of fades, on average, the sender times out: in one run."""
    (cell,) = (
        cell for cell in cells() if {"eten": eten, _KEY: fade, **where}.items() <= cell.case.items()
    )
    run = lab.run(cell.build(1), settings={"duration": "30 s"}, events=True)
    assert run.events is not None
    times = run.events.filter(run.events["event"] == "timed-out")["t_s"]
    return statistics.fmean(time % (fade / FADED) for time in times)


STUDY = question(
    id="fade",
    title="Channel fades",
    asks="Does notification still help if the link is clean most of the time, and hardly anything"
    " gets"
    " through now and then?",
    where="§8.3",
    method=(
        "A bulk transfer of 120 s over one hop of 1.5 Mb/s, 320 or 10 ms one way, as in"
        " simulation 1.",
        "The link fades for a tenth of the time, in both directions: for 50 ms every 500 ms, up to"
        " 4 s every 40 s. In a fade 7.2 % or 69 % of data packets are corrupted, at other times"
        " none: averaged over time, as many as by single bit errors at 1.56e-6 or 1.56e-5.",
        "Fades come in regular periods; where in its period a fade begins differs from run to run.",
        "The mean is that of the channel. A sender that waits while it fades loses less.",
    ),
    cells=cells,
    collect=channels.collect,
    measures=channels.MEASURES,
    figure=lambda runs: channels.figure(runs, _KEY, "length of a fade", WORDS),
    caption="Goodput at the mean loss of single bit errors at 1.56e-5, by the length of fades.",
    answers=answers,
    keys={**channels.KEYS, _KEY: "fade, s"},
)
