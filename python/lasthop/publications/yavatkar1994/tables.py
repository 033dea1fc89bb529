"""Tables 1 to 3 (§3.3): the transfer time by scheme, loss and handoff pause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Panel, Star
from lasthop.publications.study.published import Section, Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, below, every, most
from lasthop.publications.study.words import NEGLIGIBLE, phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import LOSSES, PAUSES_S
from lasthop.publications.yavatkar1994.schemes import MTCP, SRP, TCP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS: Mapping[str, int] = {TCP: 1, MTCP: 2, SRP: 3}
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.ORANGE)
#: A cell that 40 runs leave undecided is run with as many as it takes, up to this.
MOST_SEEDS = 400
#: What is calibrated, and not predicted.
CALIBRATED = {"loss": 0.0, "pause_s": 0.0}


def shown(scheme: str) -> Sequence[str]:
    """The schemes of a table: the published ones up to this."""
    return tuple(of for of in NUMBERS if NUMBERS[of] <= NUMBERS[scheme] and of in schemes.ENABLED)


def cells(scheme: str) -> list[Cell]:
    """Every loss and every pause, with this scheme and those of the tables before."""
    return [
        path.cell(of, loss, pause) for of in shown(scheme) for pause in PAUSES_S for loss in LOSSES
    ]


# --- Statements ------------------------------------------------------------------------------


def _mean(runs: Runs, case: Case) -> str:
    return phrase(path.transfer(runs, case))


def loss_hurts(runs: Runs) -> Judgement:
    """With loss over without, at each pause."""
    cases = [case for case in runs.cases(scheme=TCP) if case["loss"]]
    checks = [
        Check(runs.ratio(case, case.but(loss=0.0), "transfer_s"), above(1 + NEGLIGIBLE))
        for case in cases
    ]
    case = runs.case(scheme=TCP, loss=max(LOSSES), pause_s=0.0)
    why = (
        "Transfer times with losses over those without, at every pause. Without a pause it takes"
        f" {_mean(runs, case.but(loss=0.0))} s, with losses of 5 %"
        f" {_mean(runs, case.but(loss=0.05))} s, with 10 % {_mean(runs, case)} s."
    )
    return every(checks).judged(why)


def pause_hurts(runs: Runs) -> Judgement:
    """With a pause over without, at each loss."""
    cases = [case for case in runs.cases(scheme=TCP) if case["pause_s"]]
    checks = [
        Check(runs.ratio(case, case.but(pause_s=0.0), "transfer_s"), above(1 + NEGLIGIBLE))
        for case in cases
    ]
    times = ", ".join(
        f"{_mean(runs, runs.case(scheme=TCP, loss=0.0, pause_s=pause))} s" for pause in PAUSES_S
    )
    why = f"Transfer times with a pause over those without, at every loss. Without losses: {times}."
    return every(checks).judged(why)


def more_than_the_pause(runs: Runs) -> Judgement:
    """What a pause adds, less the pause, without losses."""
    checks, parts = [], []
    for case in runs.cases(scheme=TCP, loss=0.0):
        if case["pause_s"]:
            added = runs.difference(case, case.but(pause_s=0.0), "transfer_s")
            checks.append(Check(added, above((1 + NEGLIGIBLE) * case["pause_s"])))
            parts.append(f"{phrase(added)} s by one of {case['pause_s']:g} s")
    why = f"Without losses, a pause makes the transfer longer: {', '.join(parts)}."
    return every(checks).judged(why)


def _faster(scheme: str, than: str) -> Test:
    def test(runs: Runs) -> Judgement:
        cases = runs.cases(scheme=scheme)
        checks = [
            Check(runs.ratio(case, case.but(scheme=than), "transfer_s"), below(1 - NEGLIGIBLE))
            for case in cases
        ]
        times = [check.effect.value for check in checks if check.effect]
        why = (
            f"Transfer times of {schemes.name(scheme)} over those of {schemes.name(than)}:"
            f" {min(times):.2f} to {max(times):.2f}."
        )
        # A scheme "can be" faster than the other split one, and is faster than the plain one.
        joined = every(checks) if than == TCP else most(checks)
        return joined.judged(why)

    return test


def _loss_costs_less(runs: Runs) -> Judgement:
    checks = []
    for case in runs.cases(scheme=MTCP):
        if case["loss"]:
            plain = case.but(scheme=TCP)
            added, of_plain = (
                runs.difference(of, of.but(loss=0.0), "transfer_s") for of in (case, plain)
            )
            checks.append(
                Check(added, below((1 - NEGLIGIBLE) * of_plain.value if of_plain else 0.0))
            )
    return every(checks).judged("What losses add to the transfer time, at every pause.")


TESTS: Mapping[str, Mapping[str, Test]] = {
    TCP: {
        "loss-hurts": loss_hurts,
        "pause-hurts": pause_hurts,
        "more-than-the-pause": more_than_the_pause,
    },
    MTCP: {"split-improves": _faster(MTCP, TCP), "loss-costs-less": _loss_costs_less},
    SRP: {"srp-improves": _faster(SRP, TCP), "srp-above-mtcp": _faster(SRP, MTCP)},
}


# --- Pictures --------------------------------------------------------------------------------


def _stars(loss: float, of: Sequence[str]) -> list[Star]:
    return [
        Star(number.case["pause_s"], number.value, colour)
        for scheme, colour in zip(NUMBERS, _COLOURS, strict=True)
        if scheme in of
        for number in Section.of(path.PUBLICATION, f"table{NUMBERS[scheme]}").numbers
        if number.case["loss"] == loss
    ]


def figure(runs: Runs, of: Sequence[str]) -> Figure:
    """Transfer times over the pause, by loss."""
    lines = [line for line in schemes.lines([*NUMBERS], _COLOURS) if line.where["scheme"] in of]
    row = [
        Panel(
            f"Losses of {100 * loss:g} %",
            {"loss": loss},
            path.transfer,
            "transfer time, s",
            lines=lines,
            stars=_stars(loss, of),
        )
        for loss in LOSSES
    ]
    words = {pause: f"{pause:g}" for pause in PAUSES_S}
    return draw.panels(runs, [row], "pause_s", "handoff pause, s", words)


# --- The studies -----------------------------------------------------------------------------


def _outcome(scheme: str, runs: Runs) -> str:
    predicted = [
        (case, number)
        for case in runs.cases(scheme=scheme)
        if not CALIBRATED.items() <= dict(case).items()
        for number in [
            Section.of(path.PUBLICATION, f"table{NUMBERS[scheme]}").number(case, "transfer_s")
        ]
        if number is not None
    ]
    factors = [
        value.value / number.value
        for case, number in predicted
        for value in [path.transfer(runs, case)]
        if value is not None
    ]
    if not factors:
        return "No transfer was measured."
    return (
        f"{schemes.name(scheme)}: {len(factors)} cells predicted, measured over published"
        f" {min(factors):.2f} to {max(factors):.2f}."
    )


def study(scheme: str) -> Study:
    """The study of a scheme's table."""
    of = shown(scheme)
    number = NUMBERS[scheme]
    return Study(
        publication=path.PUBLICATION,
        experiment=f"table{number}",
        title=f"Table {number}: {schemes.name(scheme)}",
        asks=f"How long does a transfer of 100 kB take with {schemes.name(scheme)}, by the losses"
        " of the wireless hop and the length of one handoff pause?",
        where=f"§3.3, table {number}",
        method=path.METHOD,
        cells=lambda: cells(scheme),
        observe=path.observe,
        measures=path.MEASURES,
        figures=(
            Drawn(
                "Mean transfer time with its interval of 95 %; stars: published.",
                lambda runs: figure(runs, of),
            ),
        ),
        keys=path.KEYS,
        words=path.WORDS,
        tests=TESTS[scheme],
        most_seeds=MOST_SEEDS,
        outcome=lambda runs: _outcome(scheme, runs),
    )


def enabled(scheme: str) -> Study | None:
    """The study, if the build has the scheme."""
    return study(scheme) if scheme in schemes.ENABLED else None
