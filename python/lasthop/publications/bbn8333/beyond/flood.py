"""A blind flood of forged notices (bbn8333 §6.2, §7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop.publications.bbn8333.beyond import attacks
from lasthop.publications.bbn8333.beyond.attacks import (
    ALL,
    CONGESTION,
    DEFENCES,
    LINES,
    NAMES,
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
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/flood"
#: Packets a second, with the runs of each cell: the last has millions of packets in each.
RATES: Mapping[int, int] = {10: 20, 100: 20, 1000: 20, 10_000: 20, 100_000: 8}
WORDS: Mapping[Any, str] = {10: "10", 100: "100", 1000: "1,000", 10_000: "10⁴", 100_000: "10⁵"}
QUICK_SEEDS = 1
_KEY = "rate_per_s"


def cells() -> list[Cell]:
    """Notices and inert datagrams at every rate, against every defence and a plain sender."""
    found = []
    for path in PATHS.values():
        for rate, seeds in RATES.items():
            variants: list[tuple[str, str, str]] = [(NONE, NONE, "datagrams")]
            variants += [
                ("backward", name, sent) for name in DEFENCES for sent in ("datagrams", "notices")
            ]
            for eten, name, sent in variants:
                settings = {
                    **attacks.victim(path, None if eten == NONE else DEFENCES[name]),
                    "attacks.0.rate": rate,
                    "attacks.0.kind": sent,
                }
                case = attacks.case(path, eten, name, sent, rate_per_s=rate)
                found.append(Cell(case, SCENARIO, settings, seeds, QUICK_SEEDS))
    return found


def figure(runs: Runs) -> Figure:
    """What the flood costs, and how much is sent, over its rate."""
    titles = ("1.7 % corrupted", "bursts", "both")
    rows = [
        [
            draw.Panel(f"Goodput: {title}", path, attacks.over_inert, "over inert", lines=LINES)
            for title, path in zip(titles, PATHS.values(), strict=True)
        ],
        [
            draw.Panel(
                f"Segments: {title}", path, attacks.over_plain, "over plain", log=True, lines=LINES
            )
            for title, path in zip(titles, PATHS.values(), strict=True)
        ],
    ]
    return draw.panels(runs, rows, _KEY, "notices a second", WORDS)


def _at(case: Case) -> str:
    path = next(name for name, path in PATHS.items() if path.items() <= case.items())
    return f"{case[_KEY]:,} a second, {path}"


def answers(runs: Runs) -> Sequence[Answer]:
    """What a flood does, and what each defence makes of it."""
    undefended = runs.case(defences=NONE, sent="notices", rate_per_s=10_000, **CONGESTION)
    sent = attacks.over_plain(runs, undefended)
    own = {name: attacks.over_inert(runs, case) for name, case in _strong(runs, NONE).items()}
    assert sent is not None
    return [
        Answer(
            "Forged notices make a sender without defences aggressive.",
            "§7.1",
            (decides := Check(sent, above(1 + MARKED))).verdict,
            "At 10,000 notices a second it sends, beside bursts and without corruption,"
            f" {phrase(sent)} times the segments of a plain sender. Its goodput is multiplied by"
            f" {', '.join(f'{phrase(ratio)} ({name})' for name, ratio in own.items())}.",
            undefended,
            sent,
            effect_of="forging",
            criterion=decides.criterion,
        ),
        *(_alone(runs, name) for name in (ALL, "nonce", "trust", "limit")),
        _congestion(runs),
        _price(runs),
    ]


def _strong(runs: Runs, defences: str) -> Mapping[str, Case]:
    """The flood of 10,000 notices a second, by path."""
    return {
        name: runs.case(defences=defences, sent="notices", rate_per_s=10_000, **path)
        for name, path in PATHS.items()
    }


def _alone(runs: Runs, defences: str) -> Answer:
    """Whether a defence is enough for the victim's goodput."""
    forged = attacks.forged(runs, defences)
    found = held(runs, [(case, inert(case)) for case in forged], "goodput_bps", least=0.99)
    believed = max(sum(runs.values(case, "believed")) / runs.count(case) for case in forged)
    true = max(sum(runs.values(inert(c), "believed")) / runs.count(inert(c)) for c in forged)
    return Answer(
        f"With {NAMES[defences]}, a flood of forged notices costs at most 1 % more goodput than"
        " the same flood of inert datagrams.",
        "§7.1",
        found.verdict,
        f"Of {len(forged)} cells, goodput over that beside inert datagrams is least with"
        f" {phrase(found.ratio)} ({_at(found.case)}). At most {believed:,.0f} notices are believed"
        f" in a run, {true:,.0f} beside inert datagrams.",
        found.case,
        found.ratio,
        effect_of="none",
        criterion=found.criterion,
    )


def _congestion(runs: Runs) -> Answer:
    """Whether more is sent than by a plain sender, where only queues lose packets."""
    forged = attacks.forged(runs, ALL, **CONGESTION)
    most = 1 + NEGLIGIBLE
    found = held(runs, [(case, plain(case)) for case in forged], "segments", most=most)
    others = ", ".join(
        f"{phrase(runs.ratio(case, plain(case), 'segments'))} with {NAMES[name]}"
        for name in ("nonce", "trust", "limit")
        for case in [_strong(runs, name)["congestion"]]
    )
    return Answer(
        "With all three, a flood never makes the victim send more than a plain sender in"
        " congestion.",
        "§7.1",
        found.verdict,
        f"Beside bursts and without corruption, segments over those of a plain sender are at most"
        f" {phrase(found.ratio)} ({_at(found.case)}). With one defence alone, at 10,000 a second:"
        f" {others}.",
        found.case,
        found.ratio,
        effect_of="defences",
        criterion=found.criterion,
    )


def _price(runs: Runs) -> Answer:
    """The cost of the defences without an attack."""
    case = runs.case(defences=ALL, sent="datagrams", rate_per_s=min(RATES), **PATHS["corruption"])
    words = ", ".join(
        f"{phrase(runs.ratio(case.but(defences=name), case.but(defences=NONE), 'goodput_bps'))}"
        f" with {NAMES[name]}"
        for name in ("nonce", "limit", "trust", ALL)
    )
    return Answer(
        "What do the defences cost without an attack?",
        "§7.1",
        None,
        f"Goodput over that without defences, 1.7 % of packets corrupted: {words}.",
        case,
        runs.ratio(case, case.but(defences=NONE), "goodput_bps"),
    )


STUDY = question(
    id="flood",
    title="A blind flood of forged notices",
    asks="An attacker that knows a connection's addresses and ports can send notices of corruption."
    " What is their effect on the sender, and how much do defences help?",
    where="§7.1",
    method=(
        "A SACK connection with segments of 1000 bytes and the profile of today over a bottleneck"
        " of 10 Mb/s with room for 50 packets, a round trip of 44 ms, and Backward ETEN; 30 s."
        " The bottleneck corrupts 1.7 % of full-sized packets, or carries bursts of 12 Mb/s for"
        " 20 ms and none for 20 ms, or both.",
        "The attacker has a link of 1 Gb/s of its own to the sender, so that what is measured is"
        " the reaction and not the load. All its guesses of sequence numbers lie in flight, the"
        " strongest that it can hope for; where packets have nonces it guesses one each time.",
        "For comparison: inert datagrams of the same size at the same times, and a plain sender"
        " without ETEN.",
        f"Defences: nonces; trust, which false notices cost; a limit of {attacks.LIMIT} believed"
        " notices in a round trip; all three.",
        attacks.BOUNDS,
    ),
    cells=cells,
    collect=attacks.collect,
    measures=attacks.MEASURES,
    figure=figure,
    caption=attacks.CAPTION,
    answers=answers,
    keys=attacks.keys(_KEY, "a second"),
)
