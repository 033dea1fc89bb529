"""Notices forged on the path (bbn8333 §7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.bbn8333.beyond import attacks
from lasthop.publications.bbn8333.beyond.attacks import (
    ALL,
    CONGESTION,
    DEFENCES,
    PATHS,
    held,
    inert,
    plain,
)
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.verdict import Check, above
from lasthop.publications.study.words import NEGLIGIBLE, phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/forged"
#: Of how many packets one is said to be corrupted.
EVERY = (1000, 100, 30, 10, 1)
WORDS: Mapping[Any, str] = {every: f"1/{every:,}" if every > 1 else "all" for every in EVERY}
SEEDS, QUICK_SEEDS = 20, 1
#: Where a difference of less than a hundredth is asked for, and bursts make runs differ.
CLOSE_SEEDS = 300
_KEY = "every"

#: Nonces are no defence against who sees them: limits of many sizes are.
_LIMITS = (100, 10, 1)
OWN_DEFENCES: Mapping[str, Mapping[str, Any]] = {
    NONE: {},
    **{f"limit {limit}": {"limit": limit} for limit in _LIMITS},
    "trust": {"trust": True},
    ALL: DEFENCES[ALL],
}
_COLOURS = (
    pictures.BLACK,
    pictures.PURPLE,
    pictures.BLUE,
    pictures.SKY,
    pictures.ORANGE,
    pictures.GREEN,
)
LINES = tuple(
    draw.Line(label, {"defences": name, "sent": "notices"}, colour, marker, style)
    for name, label, colour, marker, style in zip(
        OWN_DEFENCES,
        ("no defence", *(f"a limit of {limit}" for limit in _LIMITS), "trust", "all three"),
        _COLOURS,
        "sv<o^D",
        ("-", "--", "-.", ":", "-", "--"),
        strict=True,
    )
)
#: Nothing is lost but to the sender's own queue.
_NEITHER = {"bit_error_rate": 0.0, "bursts_bps": 0}
_PATHS: Mapping[str, Mapping[str, Any]] = {"neither": _NEITHER, **PATHS}


def cells() -> list[Cell]:
    """Notices and inert datagrams about every n-th packet, against every defence."""
    found = []
    for path in _PATHS.values():
        for every in EVERY:
            variants: list[tuple[str, str, str]] = [(NONE, NONE, "datagrams")]
            variants += [
                ("backward", name, sent)
                for name in OWN_DEFENCES
                for sent in ("datagrams", "notices")
            ]
            for eten, name, sent in variants:
                settings = {
                    **attacks.victim(path, None if eten == NONE else OWN_DEFENCES[name]),
                    "attacks.0.every": every,
                    "attacks.0.kind": sent,
                }
                case = attacks.case(path, eten, name, sent, every=every)
                close = path is CONGESTION and (name == ALL or eten == NONE)
                seeds = CLOSE_SEEDS if close else SEEDS
                found.append(Cell(case, SCENARIO, settings, seeds, QUICK_SEEDS))
    return found


def figure(runs: Runs) -> Figure:
    """What is forged costs, and how much is sent, over how much is forged."""
    titles = ("neither errors nor bursts", "1.7 % corrupted", "bursts", "both")
    rows = [
        [
            draw.Panel(f"Goodput: {title}", path, attacks.over_inert, "over inert", lines=LINES),
            draw.Panel(
                f"Segments: {title}", path, attacks.over_plain, "over plain", log=True, lines=LINES
            ),
        ]
        for title, path in zip(titles, _PATHS.values(), strict=True)
    ]
    return draw.panels(runs, rows, _KEY, "packets said to be corrupted", WORDS)


def _at(case: Case) -> str:
    path = next(name for name, path in _PATHS.items() if path.items() <= case.items())
    return f"{WORDS[case[_KEY]]}, {path}"


def answers(runs: Runs) -> Sequence[Answer]:
    """What an attacker on the path does, and what each defence makes of it."""
    every = runs.case(defences=NONE, sent="notices", every=1, **CONGESTION)
    gained, sent = attacks.over_inert(runs, every), attacks.over_plain(runs, every)
    assert gained is not None
    return [
        Answer(
            "Without defences, an attacker that sees the packets makes the sender send more than is"
            " right in congestion.",
            "§7.1",
            (decides := Check(gained, above(1 + NEGLIGIBLE))).verdict,
            "If all packets are said to be corrupted, its goodput beside bursts is multiplied by"
            f" {phrase(gained)}, for {phrase(sent)} times the segments of a plain sender.",
            every,
            gained,
            effect_of="forging",
            criterion=decides.criterion,
        ),
        _cost(runs, 0.0, "nothing is corrupted"),
        _cost(runs, attacks.BIT_ERROR_RATE, "1.7 % of packets are corrupted"),
        _congestion(runs),
        _limits(runs),
    ]


def _cost(runs: Runs, errors: float, words: str) -> Answer:
    forged = attacks.forged(runs, ALL, bit_error_rate=errors)
    found = held(runs, [(case, inert(case)) for case in forged], "goodput_bps", least=0.99)
    believed = max(sum(runs.values(case, "believed")) / runs.count(case) for case in forged)
    return Answer(
        f"With all three defences, where {words}, what is forged costs at most 1 % more goodput"
        " than inert datagrams.",
        "§7.1",
        found.verdict,
        f"Of {len(forged)} cells, goodput over that beside inert datagrams is least with"
        f" {phrase(found.ratio)} ({_at(found.case)}). At most {believed:.1f} notices are believed"
        " in a run.",
        found.case,
        found.ratio,
        effect_of="none",
        criterion=found.criterion,
    )


def _congestion(runs: Runs) -> Answer:
    forged = attacks.forged(runs, ALL, **CONGESTION)
    most = 1 + NEGLIGIBLE
    found = held(runs, [(case, plain(case)) for case in forged], "segments", most=most)
    return Answer(
        "With all three, the victim never sends more than a plain sender in congestion.",
        "§7.1",
        found.verdict,
        "Beside bursts and without corruption, segments over those of a plain sender are at most"
        f" {phrase(found.ratio)} ({_at(found.case)}).",
        found.case,
        found.ratio,
        effect_of="defences",
        criterion=found.criterion,
    )


def _limits(runs: Runs) -> Answer:
    """What a limit by itself is worth."""
    words = []
    for limit in _LIMITS:
        case = runs.case(defences=f"limit {limit}", sent="notices", every=1, **CONGESTION)
        honest = inert(case.but(**PATHS["corruption"]))
        price = runs.ratio(honest, honest.but(defences=NONE), "goodput_bps")
        goodput = runs.ratio(case, plain(case), "goodput_bps")
        timeouts = runs.mean(case, "timeouts")
        words.append(
            f"a limit of {limit}: {phrase(attacks.over_plain(runs, case))}, {phrase(goodput)},"
            f" {phrase(timeouts)}; and {phrase(price)}"
        )
    case = runs.case(defences="limit 1", sent="notices", every=1, **CONGESTION)
    return Answer(
        "What is a limit by itself worth, and what does it cost?",
        "§7.1",
        None,
        "Beside bursts, if all packets are said to be corrupted, segments and goodput over those of"
        " a plain sender, and timeouts in a run; and goodput over that without defences where 1.7 %"
        f" are corrupted and no notice is forged: {'. '.join(words)}.",
        case,
        attacks.over_plain(runs, case),
    )


STUDY = question(
    id="forged",
    title="Notices forged on the path",
    asks="An attacker on the path sees the packets, nonces and all, and claims of some of them that"
    " they were corrupted, although they go on their way. What remains of the defences?",
    where="§7.1",
    method=(
        "A SACK connection with segments of 1000 bytes and the profile of today over a bottleneck"
        " of 10 Mb/s with room for 50 packets, a round trip of 44 ms, and Backward ETEN; 30 s."
        " The bottleneck corrupts nothing or 1.7 % of full-sized packets, without other traffic or"
        " beside bursts of 12 Mb/s for 20 ms and none for 20 ms.",
        "The attacker sits before the bottleneck. What it sends takes the way back; inert datagrams"
        " of the same size at the same times show what that costs. A plain sender is one without"
        " ETEN.",
        "Defences: limits of believed notices in a round trip; trust, which false notices cost; and"
        f" nonces, trust and a limit of {attacks.LIMIT} together.",
        attacks.BOUNDS,
    ),
    cells=cells,
    collect=attacks.collect,
    measures=attacks.MEASURES,
    figure=figure,
    caption=attacks.CAPTION,
    answers=answers,
    keys=attacks.keys(_KEY, "one of"),
)
