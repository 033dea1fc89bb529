"""What the fixed host notices of a handoff (§2.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Panel
from lasthop.publications.study.published import Answer, Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, below, every
from lasthop.publications.study.words import NEGLIGIBLE, phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import FIXED, LOSSES, MOBILE, PAUSES_S, SENDERS
from lasthop.publications.yavatkar1994.schemes import CUBIC, FREEZE, MTCP, RLCI, SRP, TCP
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES: Sequence[str] = (*schemes.ENABLED, CUBIC, RLCI, FREEZE)
SEEDS, QUICK_SEEDS = 100, 2
_COLOURS = (
    pictures.BLACK,
    pictures.BLUE,
    pictures.ORANGE,
    pictures.GREEN,
    pictures.PURPLE,
    pictures.SKY,
)


def cells() -> list[Cell]:
    """Every scheme, sender, pause and loss; the Internet loses nothing."""
    return [
        path.cell(
            scheme,
            loss,
            pause,
            seeds=SEEDS,
            quick=QUICK_SEEDS,
            sends=sends,
            more={f"links.{path.INTERNET}.errors": {}},
        )
        for sends in SENDERS
        for scheme in SCHEMES
        for pause in PAUSES_S
        for loss in LOSSES
    ]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What happened to the connection at the fixed host."""
    result, all_events = path.logged(scenario, seed, FIXED)
    opened = next((n for n, event in enumerate(all_events) if event.get("to") == "established"), 0)
    opening = Counter(event["event"] for event in all_events[:opened])
    events = all_events[opened:]
    kinds = Counter(event["event"] for event in events)
    again = sum(event["event"] == "sent" and event["again"] for event in events)
    # Data that is not the next is answered with an acknowledgment that repeats the last one.
    outside = sum(event.get("why") == "outside-window" for event in events)
    return {
        "transfer_s": result.rows["completed_s"][0],
        "changes": float(kinds["timed-out"] + kinds["reset"]),
        "timeouts": float(kinds["timed-out"]),
        "resets": float(kinds["reset"]),
        "retransmissions": float(again),
        "duplicate_acks": float(kinds["duplicate-ack"] + kinds["out-of-order"] + outside),
        "window_probes": float(kinds["probed"]),
        "opening_timeouts": float(opening["timed-out"]),
    }


_METRICS = {
    "timeouts": "timeouts",
    "resets": "resets",
    "retransmissions": "retransmissions",
    "duplicate_acks": "duplicate ACKs",
    "window_probes": "window probes",
    "opening_timeouts": "timeouts of a SYN",
}


def unchanged(scheme: str) -> Test:
    """Timeouts and resets at the fixed host, in every cell with a handoff."""

    def test(runs: Runs) -> Judgement:
        cases = [case for case in runs.cases(scheme=scheme) if case["pause_s"]]
        checks = [Check(runs.mean(case, "changes"), below(NEGLIGIBLE)) for case in cases]
        without = [case for case in runs.cases(scheme=scheme) if not case["pause_s"]]
        why = (
            "Timeouts and resets of established connections at the fixed host, whether it sends or"
            f" receives, with every pause and loss; fewer than {NEGLIGIBLE:g} a transfer are none."
            f" The most of any run: {_most(runs, cases)}; without a handoff:"
            f" {_most(runs, without)}."
        )
        return every(checks).judged(why)

    return test


def _most(runs: Runs, cases: Sequence[Case]) -> str:
    return ", ".join(
        f"{words} {max((max(runs.values(case, metric)) for case in cases), default=0.0):g}"
        for metric, words in _METRICS.items()
    )


TESTS: Mapping[str, Test] = {f"fixed-host-{scheme}": unchanged(scheme) for scheme in (MTCP, SRP)}


def figure(runs: Runs) -> Figure:
    """Counts at the fixed host over the pause."""
    lines = schemes.lines(SCHEMES, _COLOURS)
    rows = [
        [
            Panel(
                f"{words}, losses of {100 * loss:g} %",
                {"sends": sends, "loss": loss},
                lambda runs, case, metric=metric: runs.mean(case, metric),  # type: ignore[misc]
                f"{_METRICS[metric]} at the fixed host",
                lines=lines,
            )
            for loss in LOSSES
        ]
        for sends, words in SENDERS.items()
        for metric in ["timeouts" if sends == FIXED else "duplicate_acks"]
    ]
    words = {pause: f"{pause:g}" for pause in PAUSES_S}
    return draw.panels(runs, rows, "pause_s", "handoff pause, s", words)


def _beside(runs: Runs, sends: str) -> Answer:
    where = {"sends": sends, "loss": 0.0, "pause_s": 2.8}
    metric = "timeouts" if sends == FIXED else "duplicate_acks"
    parts = [
        f"{schemes.name(scheme)}"
        f" {phrase(runs.mean(runs.case(scheme=scheme, **where), 'retransmissions'))} and"
        f" {phrase(runs.mean(runs.case(scheme=scheme, **where), metric))}"
        for scheme in SCHEMES
    ]
    case = runs.case(scheme=TCP, **where)
    return Answer(
        f"What does the fixed host notice of a pause of 2.8 s when {SENDERS[sends]}, without"
        " losses?",
        "§2.4",
        None,
        f"Retransmissions and {_METRICS[metric]} there: {'; '.join(parts)}.",
        case,
        runs.mean(case, metric),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What the other schemes leave to it."""
    return [_beside(runs, sends) for sends in (FIXED, MOBILE)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    where = {"sends": FIXED, "loss": 0.0, "pause_s": 2.8}
    counts = [
        phrase(runs.mean(runs.case(scheme=scheme, **where), "timeouts")) for scheme in (TCP, MTCP)
    ]
    return (
        "When it sends and the mobile host is away for 2.8 s, the fixed host has"
        f" {counts[0]} timeouts with TCP, {counts[1]} with MTCP."
    )


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="fixed",
    title="What the fixed host notices",
    asks="Does the fixed host observe no changes in the state of its connection but for some"
    " retransmissions, whether it sends or receives?",
    where="§2.4",
    method=(
        *path.METHOD[:-1],
        "The Internet loses nothing here, so that all that the fixed host notices comes from the"
        " wireless hop and the handoff. Either the mobile host sends the 100 kB, or the fixed host."
        " Counted are events of the connection at the fixed host: timeouts, resets,"
        " retransmissions, probes of a closed window, and duplicate ACKs, those that it gets and"
        " those with which it answers data that is not the next; all from the time at which the"
        " connection is established. Timeouts of a SYN before are counted by themselves.",
        "CUBIC, with and without RLCI and Freeze-TCP, has the profile modern at both ends. With"
        " Freeze-TCP the mobile host is warned 200 ms before the pause; it can close its window"
        " only, which has no effect while it is the sender. 100 runs.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        *(mean(metric, "1", words) for metric, words in _METRICS.items()),
        path.MEASURES[0],
        path.MEASURES[1],
    ),
    figures=(Drawn("Counts at the fixed host, the mean of a transfer.", figure),),
    answers=answers,
    outcome=outcome,
    tests=TESTS,
    keys={"scheme": "scheme", "sends": "sender", "loss": "loss", "pause_s": "pause, s"},
    words=path.WORDS,
)
