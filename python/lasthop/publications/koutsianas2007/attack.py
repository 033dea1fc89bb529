"""Forged changes of connectivity (koutsianas2007 §3.6)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, above, every
from lasthop.publications.study.words import phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/attack"
SEEDS, QUICK_SEEDS = 15, 2
#: The attackers: none; one that knows addresses and ports; one that also guesses right every time,
#: seldom and often; one that sees all packets.
NO_ATTACK = "none"
ATTACKS: Mapping[str, Mapping[str, Any] | None] = {
    NO_ATTACK: None,
    "blind, 1000/s": {"at": "attacker", "knowledge": "blind", "aim": "anywhere", "rate": 1000},
    "always right, 1/s": {"at": "attacker", "knowledge": "blind", "aim": "window", "rate": 1},
    "always right, 20/s": {"at": "attacker", "knowledge": "blind", "aim": "window", "rate": 20},
    "on the path, 1 in 20": {"at": "router", "knowledge": "on-path", "every": 20},
    "on the path, all": {"at": "router", "knowledge": "on-path", "every": 1},
}
FORMS = ("published", "corrected")
#: Two segments in a round trip of 82 ms: what is left to who is held at the initial window.
HELD_BPS = 2 * 1500 * 8 / 0.082
_LINES = tuple(
    Line(
        f"{form}, {'limited' if limited else 'without the limit'}",
        {"form": form, "rate_limit": limited},
        colour,
        marker,
        "-" if limited else "--",
    )
    for form, colour, marker in zip(FORMS, (pictures.BLUE, pictures.GREEN), ("o", "D"), strict=True)
    for limited in (True, False)
)


def drawn(run: int) -> Mapping[str, Any]:
    """When the transfer begins."""
    start = random.Random(f"attack, run {run}").uniform(0.0, 1.0)
    return {"flows.0.start": schemes.seconds(start)}


def _cell(attack: str, form: str, limited: bool) -> Cell:
    (flow,) = schemes.flows(SCENARIO)
    rlci = {"mechanism": "rlci", "strict": form == FORMS[0], "rate_limit": limited}
    settings: dict[str, Any] = {"flows": [{**flow, "tcp": {**flow["tcp"], "mechanisms": [rlci]}}]}
    how = ATTACKS[attack]
    common = {"flow": flow["name"], "kind": "changes"}
    settings["attacks"] = [] if how is None else [{**common, **how}]
    case = Case(attack=attack, form=form, rate_limit=limited)
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS, drawn=drawn)


def cells() -> list[Cell]:
    """Every attack on both forms, with the limit and without."""
    return [
        _cell(attack, form, limited)
        for form in FORMS
        for limited in (True, False)
        for attack in ATTACKS
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What the transfer still gets."""
    return {
        "payload_bps": rows["payload_bps"].to_list(),
        "retransmissions": [float(count) for count in rows["retransmissions"]],
        "timeouts": [float(count) for count in rows["timeouts"]],
    }


def left(runs: Runs, case: Case) -> Estimate | None:
    """What is left of the goodput without an attack."""
    alone = case.but(attack=NO_ATTACK)
    return None if alone == case else runs.ratio(case, alone, "payload_bps")


def figure(runs: Runs) -> Figure:
    """What is left, by the attack."""
    panel = draw.Panel(
        "What is left of the transfer",
        {},
        lambda runs, case: left(runs, case) if case["attack"] != NO_ATTACK else None,
        "% of the goodput without",
        0.01,
        top=105,
        lines=_LINES,
    )
    words = {attack: attack.replace(", ", ",\n", 1) for attack in ATTACKS if attack != NO_ATTACK}
    return draw.panels(runs, [[panel]], "attack", "attacker", words, inches=9)


def _worst(runs: Runs, limited: bool) -> tuple[Case, Estimate]:
    found = []
    for case in runs.cases(rate_limit=limited):
        value = runs.mean(case, "payload_bps")
        if value is not None and case["attack"] != NO_ATTACK:
            found.append((case, value))
    return min(found, key=lambda pair: pair[1].value)


def _held(runs: Runs) -> Answer:
    summary = []
    for limited, words in ((True, "With the limit"), (False, "Without it")):
        case, value = _worst(runs, limited)
        summary.append(
            f"{words} the worst is \u201c{case['attack']}\u201d, the protocol {case['form']}:"
            f" it gets {value.value / HELD_BPS:.1f} times that rate, {phrase(left(runs, case))}"
            " times the goodput without an attack."
        )
    case, value = _worst(runs, True)
    cells = [
        Check(runs.mean(of, "payload_bps"), above(2 * HELD_BPS))
        for of in runs.cases(rate_limit=True)
        if of["attack"] != NO_ATTACK
    ]
    return Answer(
        "With the rate limit, no attacker that forges changes can hold a connection at its initial"
        " window.",
        "§3.6",
        (decides := every(cells)).verdict,
        f"An initial window in every round trip would be {HELD_BPS / 1e3:.0f} kb/s."
        f" {' '.join(summary)} Holds if it gets clearly more than twice that rate.",
        case,
        left(runs, case),
        effect_of="limit",
        criterion=decides.criterion,
    )


def _blind(runs: Runs) -> Answer:
    attack = "blind, 1000/s"
    parts = [
        f"{case['form']}, {'with' if case['rate_limit'] else 'without'} the limit"
        f" {phrase(left(runs, case))}"
        for case in runs.cases(attack=attack)
    ]
    case = runs.case(attack=attack, form="corrected", rate_limit=True)
    return Answer(
        "What can an attacker do that knows addresses and ports only?",
        "§3.6",
        None,
        "A thousand forged acknowledgments a second leave, of the goodput without:"
        f" {'; '.join(parts)}.",
        case,
        left(runs, case),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What the limit is worth."""
    return [_held(runs), _blind(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    with_limit, without = (_worst(runs, limited) for limited in (True, False))
    return (
        f"With the limit the worst forger leaves {phrase(left(runs, with_limit[0]))} of the"
        f" goodput, without it {phrase(left(runs, without[0]))}."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="attack",
    title="Forged changes of connectivity",
    asks="An attacker that makes a sender believe that its path has changed again and again keeps"
    " it in slow start. How much does a rate limit help?",
    where="§3.6, beyond",
    method=(
        "One upload for 120 s over 6 Mb/s with a round trip of 82 ms, profile ns2-2007, window of"
        " 100 segments, RLCI at both ends. All the time the attacker sends acknowledgments in the"
        " server's name, each with a new indication.",
        "A blind attacker guesses sequence numbers, acknowledgment numbers and timestamps among all"
        " 2^32; one that is always right takes those of the last acknowledgment; one on the path"
        " follows every acknowledgment, or one in twenty, with a forged one.",
        "The limit: one new probe in ten round trips, and four a minute.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("payload_bps", "bit/s", "goodput, kb/s", 1e3),
        Measure("ratio", "1", "of that without", left),
        mean("retransmissions", "1", "sent again"),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(Drawn("What attackers leave of a transfer.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"attack": "attacker", "form": "protocol", "rate_limit": "limited"},
)
