"""RLCI where the connection is not stalled: what each part does (koutsianas2007 §3.5, §4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.koutsianas2007 import fig4_4, schemes, windows
from lasthop.publications.koutsianas2007.schemes import RLCI
from lasthop.publications.koutsianas2007.windows import FEW, LIKELY
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, Joint, Judgement, above, below, between, every
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, NOTHING, SMALL, percent
from lasthop.stats import Estimate, mean_interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = fig4_4.SCENARIO
#: Shorter than the RTO, and long enough for every connection to be stalled.
SHORT, LONG = 0.15, 8.0
LENGTHS = (0.02, SHORT, LONG)
SEEDS, QUICK_SEEDS = 30, 3


@dataclass(frozen=True)
class Arm:
    """RLCI to the letter, with one thing different."""

    name: str
    words: str
    #: Settings of the mechanism, and of TCP.
    rlci: Mapping[str, Any] = field(default_factory=dict)
    tcp: Mapping[str, Any] = field(default_factory=dict)
    #: The server is notified of the same change, at the same time.
    both: bool = False


PUBLISHED = Arm("published", "as published")
NO_TRANSMIT = Arm(
    "no-limited-transmit", "no modified limited transmit", {"limited_transmit": False}
)
NO_KEEP = Arm("no-kept-threshold", "threshold not kept", {"keep_ssthresh": False})
NEITHER = Arm("neither", "neither of the two", {**NO_TRANSMIT.rlci, **NO_KEEP.rlci})
PIPE = Arm("pipe", "pipe of all that is not reported", tcp={"pipe": "unreported"})
RESEND = Arm("resend", "everything goes again", {"resend": True})
RTO = Arm("rto", "initial RTO of 1 s instead of 3 s", tcp={"rto": {"initial": "1 s"}})
TEN = Arm("window-10", "initial window of 10 instead of 2", tcp={"initial_window": 10})
PATH = Arm("window-40", "initial window of 40, the path's", tcp={"initial_window": 40})
BOTH = Arm("both", "both ends are notified", both=True)
SUPPRESSED = Arm("both-suppressed", "both, and one probe", {"suppress": True}, both=True)
ARMS = (
    *(PUBLISHED, NO_TRANSMIT, NO_KEEP, NEITHER, PIPE, RESEND, RTO, TEN, PATH, BOTH, SUPPRESSED),
)
#: Those that may move the bump: each differs in one thing from what was published.
FACTORS = (NO_TRANSMIT, NO_KEEP, PIPE, RESEND, RTO, TEN, PATH)


def drawn(both: bool, disconnection: float, run: int) -> Mapping[str, Any]:
    """As in figure 4.4. To notify the server, its link is down for a microsecond."""
    settings = dict(fig4_4.drawn(disconnection, run))
    if both:
        back = settings[schemes.ATTACHED][1]["start"]
        moment = float(back.removesuffix(" us")) / 1e6
        settings["nodes.server.attached.at"] = [
            {"to": "router", "start": "0 s", "end": schemes.seconds(moment - 1e-6)},
            {"to": "router", "start": back},
        ]
    return settings


def _cell(arm: Arm, window: int, length: float) -> Cell:
    (flow,) = schemes.flows(SCENARIO)
    tcp = {**schemes.tcp(flow["tcp"], RLCI), **windows.setting(window), **arm.tcp}
    (rlci,) = tcp["mechanisms"]
    tcp["mechanisms"] = [{**rlci, **arm.rlci}]
    return Cell(
        Case(arm=arm.name, window=window, disconnection_s=length),
        SCENARIO,
        {"flows": [{**flow, "tcp": tcp}]},
        SEEDS,
        QUICK_SEEDS,
        drawn=partial(drawn, arm.both, length),
    )


def cells() -> list[Cell]:
    """Every arm with every window and length."""
    return [_cell(arm, window, length) for window in FEW for arm in ARMS for length in LENGTHS]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """How long it takes, without the disconnection, and what happens meanwhile."""
    found: dict[str, list[float | None]] = {**fig4_4.collect(rows), "reprobes": []}  # type: ignore[dict-item]
    for run in apart(rows):
        found["reprobes"].append(float(run["reprobes"][0]))
    return found


def _of(runs: Runs, arm: Arm, window: int, length: float = SHORT) -> Case:
    return runs.case(arm=arm.name, window=window, disconnection_s=length)


def _bumps(runs: Runs, arm: Arm, window: int) -> list[float]:
    """By run, how much longer it takes after a short disconnection than after a long one."""
    short, long = (
        runs.values(_of(runs, arm, window, length), "net_duration_s") for length in (SHORT, LONG)
    )
    return [a - b for a, b in zip(short, long, strict=True)]


def bump(runs: Runs, case: Case) -> Estimate | None:
    """Its mean, of the arm and the window of a case."""
    if case["disconnection_s"] != SHORT:
        return None
    arm = next(arm for arm in ARMS if arm.name == case["arm"])
    return mean_interval(_bumps(runs, arm, case["window"]))


def taken(runs: Runs, arm: Arm, window: int, share: float = 0.0) -> Estimate:
    """By how much an arm's bump is less than the published one's, beyond a share of that."""
    pairs = zip(_bumps(runs, PUBLISHED, window), _bumps(runs, arm, window), strict=True)
    return mean_interval([(1 - share) * own - other for own, other in pairs])


def _times(runs: Runs, arm: Arm, to: Arm, window: int, length: float = SHORT) -> Estimate | None:
    """The net duration over that of another arm."""
    one, other = (_of(runs, of, window, length) for of in (arm, to))
    return runs.ratio(one, other, "net_duration_s")


def _over_long(runs: Runs, arm: Arm, window: int) -> Estimate | None:
    """The net duration after a short disconnection over that after a long one."""
    short, long = (_of(runs, arm, window, length) for length in (SHORT, LONG))
    return runs.ratio(short, long, "net_duration_s")


def figure(runs: Runs) -> Figure:
    """The bump of every arm over the window."""
    colours = (
        *(pictures.BLACK, pictures.ORANGE, pictures.SKY, pictures.GREEN, pictures.BLUE),
        *(pictures.PURPLE, pictures.GREY),
    )

    def panel(arms: Sequence[Arm], title: str) -> draw.Panel:
        lines = [
            Line(arm.words, {"arm": arm.name, "disconnection_s": SHORT}, colour, marker)
            for arm, colour, marker in zip(
                (PUBLISHED, *arms), colours, ("o", "s", "D", "^", "v", "x"), strict=False
            )
        ]
        return draw.Panel(title, {}, bump, "seconds", lines=lines, signed=True)

    rows = [
        [
            panel((NO_TRANSMIT, NO_KEEP, PIPE), "Longer than after 8 s: of §3.5.3 and §4.1"),
            panel((RESEND, RTO, TEN, PATH), "Longer than after 8 s: other factors"),
        ]
    ]
    return draw.panels(runs, rows, "window", "receive window, segments", {w: str(w) for w in FEW})


# --- What the report says ---------------------------------------------------------------------


def _by_window(
    held: Mapping[int, Joint], why: str, case: Case, value: Estimate | None
) -> Judgement:
    return windows.joined(held, why, measured=value, case=case)


def _summary(runs: Runs, arm: Arm, metric: str, unit: str = "") -> str:
    values = []
    for window in FEW:
        value = runs.mean(_of(runs, arm, window), metric)
        assert value is not None
        values.append(f"{value.value:.1f}" if metric == "timeouts" else f"{value.value:.2f}")
    return f"{arm.words} {', '.join(values)}{unit}"


_ORDER = f"with windows of {', '.join(map(str, FEW))} segments"
_AFTER = f"After {units.duration(SHORT)},"


def _stalls(runs: Runs) -> Judgement:
    held = {
        window: every(
            [
                Check(runs.mean(_of(runs, NEITHER, window), "timeouts"), above(0.5)),
                Check(_over_long(runs, NEITHER, window), above(1 + MARKED)),
            ]
        )
        for window in FEW
    }
    case = _of(runs, NEITHER, LIKELY[0])
    return _by_window(
        held,
        f"{_AFTER} {_ORDER}, timeouts a run: {_summary(runs, NEITHER, 'timeouts')}; net duration:"
        f" {_summary(runs, NEITHER, 'net_duration_s', ' s')}. It is to be {percent(MARKED)} longer"
        f" than after {LONG:g} s, and half of the runs are to have a timeout.",
        case,
        _over_long(runs, NEITHER, LIKELY[0]),
    )


def _solution(runs: Runs) -> Judgement:
    held = {
        window: every(
            [
                Check(_over_long(runs, RESEND, window), between(1 - SMALL, 1 + SMALL)),
                Check(_times(runs, PUBLISHED, RESEND, window), above(1 + NEGLIGIBLE)),
            ]
        )
        for window in FEW
    }
    case = _of(runs, RESEND, LIKELY[0])
    return _by_window(
        held,
        f"{_AFTER} {_ORDER}, net duration: {_summary(runs, PUBLISHED, 'net_duration_s', ' s')};"
        f" {_summary(runs, RESEND, 'net_duration_s', ' s')}. It is to be shorter, and that after"
        f" {LONG:g} s give or take {percent(SMALL)}.",
        case,
        _times(runs, PUBLISHED, RESEND, LIKELY[0]),
    )


def _found(runs: Runs) -> Judgement:
    held = {
        window: every(
            [
                Check(
                    runs.difference(
                        _of(runs, PUBLISHED, window), _of(runs, NO_TRANSMIT, window), "timeouts"
                    ),
                    below(-0.5),
                )
            ]
        )
        for window in FEW
    }
    same = [
        window
        for window in FEW
        if _bumps(runs, PUBLISHED, window) == _bumps(runs, NO_TRANSMIT, window)
    ]
    case = _of(runs, PUBLISHED, LIKELY[-1])
    return _by_window(
        held,
        f"{_AFTER} {_ORDER}, timeouts a run: {_summary(runs, PUBLISHED, 'timeouts')};"
        f" {_summary(runs, NO_TRANSMIT, 'timeouts')}. It is to spare half of the runs one. With"
        f" windows of {windows.stretches(same, FEW)} segments it makes no difference in any run.",
        case,
        runs.difference(case, _of(runs, NO_TRANSMIT, LIKELY[-1]), "timeouts"),
    )


def _slower(runs: Runs, arm: Arm) -> Judgement:
    """Without something it takes longer."""
    held = {
        window: every([Check(_times(runs, arm, PUBLISHED, window), above(1 + NEGLIGIBLE))])
        for window in FEW
    }
    case = _of(runs, arm, LIKELY[-1])
    return _by_window(
        held,
        f"{_AFTER} {_ORDER}, net duration: {_summary(runs, PUBLISHED, 'net_duration_s', ' s')};"
        f" {_summary(runs, arm, 'net_duration_s', ' s')}. It is to be more than"
        f" {percent(NEGLIGIBLE)} longer.",
        case,
        _times(runs, arm, PUBLISHED, LIKELY[-1]),
    )


def _twice(runs: Runs) -> Judgement:
    held = {
        window: every(
            [
                Check(
                    _times(runs, BOTH, SUPPRESSED, window, length),
                    between(1 - NOTHING, 1 + NOTHING),
                )
                for length in LENGTHS
            ]
        )
        for window in FEW
    }
    case = _of(runs, BOTH, LIKELY[0])
    counts = [
        f"{arm.words} {value.value:.1f}"
        for arm in (BOTH, SUPPRESSED)
        for value in [runs.mean(_of(runs, arm, LIKELY[0]), "reprobes")]
        if value is not None
    ]
    return _by_window(
        held,
        f"The sender begins anew, times a run: {', '.join(counts)}. {_AFTER} {_ORDER}, net"
        f" duration: {_summary(runs, BOTH, 'net_duration_s', ' s')};"
        f" {_summary(runs, SUPPRESSED, 'net_duration_s', ' s')}. After every length they are to be"
        f" the same, give or take {percent(NOTHING)}.",
        case,
        _times(runs, BOTH, SUPPRESSED, LIKELY[0]),
    )


def _by_initial_window(runs: Runs) -> Judgement:
    held = {}
    for window in FEW:
        case = _of(runs, PUBLISHED, window)
        held[window] = every(
            [
                Check(_over_long(runs, PUBLISHED, window), above(1 + SMALL)),
                Check(taken(runs, PATH, window, MARKED), above(0.0)),
                # What a timeout repairs, no fast recovery does.
                Check(runs.mean(case, "timeouts"), below(0.5)),
            ]
        )
    case = _of(runs, PATH, LIKELY[-1])
    return _by_window(
        held,
        f"{_AFTER} {_ORDER}, net duration: {_summary(runs, PUBLISHED, 'net_duration_s', ' s')};"
        f" {_summary(runs, TEN, 'net_duration_s', ' s')};"
        f" {_summary(runs, PATH, 'net_duration_s', ' s')}; timeouts a run:"
        f" {_summary(runs, PUBLISHED, 'timeouts')}. There is to be a bump of {percent(SMALL)}, the"
        f" larger initial window is to take {percent(MARKED)} of it away, and most runs are to have"
        " no timeout.",
        case,
        taken(runs, PATH, LIKELY[-1]),
    )


def _causes(runs: Runs, window: int) -> str:
    own = mean_interval(_bumps(runs, PUBLISHED, window))
    moved = []
    for arm in FACTORS:
        less, more = taken(runs, arm, window, MARKED), taken(runs, arm, window, -MARKED)
        # Clearly a quarter of it less, or more.
        if less.lo > 0 or more.hi < 0:
            moved.append(f"{arm.words} ({-taken(runs, arm, window).value:+.2f} s)")
    return (
        f"with {window} segments it is {own.value:.2f} s; moved by"
        f" {', '.join(moved) if moved else 'none'}"
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What causes the bump of figure 4.5: what moves it."""
    shown = "; ".join(_causes(runs, window) for window in LIKELY)
    case = _of(runs, PUBLISHED, LIKELY[0])
    return [
        Answer(
            "What moves the bump of figure 4.5?",
            "§4.2",
            None,
            f"How much longer the transfer takes after {units.duration(SHORT)} than after"
            f" {LONG:g} s, and what changes that clearly by {percent(MARKED)} or more, one factor"
            f" at a time: {shown}.",
            case,
            bump(runs, case),
            "s",
        )
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""

    def share(arm: Arm, window: int) -> str:
        own = mean_interval(_bumps(runs, PUBLISHED, window)).value
        return percent(round(taken(runs, arm, window).value / own, 2)) if own else "nothing"

    return (
        "Of the bump at short disconnections, sending everything again takes away"
        f" {share(RESEND, 50)} with a window of 50 segments and {share(RESEND, 200)} with 200, an"
        f" initial RTO of 1 s {share(RTO, 50)} and {share(RTO, 200)}."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="steady-state",
    title="What each part does where the connection is not stalled",
    asks="A disconnection shorter than the RTO costs segments, and RLCI begins anew. What do the"
    " modified limited transmit, the kept threshold, the pipe of SACK and a second probe do then,"
    " and what causes the bump of figure 4.5?",
    where="§3.5, §4.1, §4.2",
    method=(
        "The network and the draws of figure 4.4; disconnections of"
        f" {', '.join(units.duration(length) for length in LENGTHS)}, receive windows of"
        f" {', '.join(map(str, FEW))} segments.",
        "RLCI to the letter with the modified limited transmit and the kept threshold, and arms"
        " that differ from it in one thing each, and one that has neither of the two.",
        "Where both ends are notified, the server's link is down for the microsecond before the"
        " phone is back.",
        "The bump is the net duration after 150 ms less that after 8 s, of the same arm.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("net_duration_s", "s", "net duration, s"),
        Measure("bump_s", "s", "longer than after 8 s, s", bump),
        mean("timeouts", "1", "timeouts"),
        mean("reprobes", "1", "begins anew"),
    ),
    figures=(Drawn("The bump, over the receive window.", figure),),
    tests={
        "stalls": _stalls,
        "possible-solution": _solution,
        "found-by-duplicates": _found,
        "threshold-kept": partial(_slower, arm=NO_KEEP),
        "second-probe": _twice,
        "pipe": partial(_slower, arm=PIPE),
        "bump-by-initial-window": _by_initial_window,
    },
    answers=answers,
    outcome=outcome,
    keys={
        "arm": "arm",
        "window": "window, segments",
        "disconnection_s": "disconnection, s",
    },
)
