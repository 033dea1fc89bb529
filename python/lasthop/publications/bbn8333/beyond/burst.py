"""Errors in bursts (bbn8333 §8.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lasthop import units
from lasthop.publications.bbn8333.beyond import channels
from lasthop.publications.bbn8333.beyond.channels import HIGH, LONG, MEDIUM, SHORT, packet_loss
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.words import percent, phrase

#: Corrupted packets in a row, on average; 0 are single bit errors.
SINGLE = 0
BURSTS = (2, 5, 10, 20)
WORDS: Mapping[Any, str] = {SINGLE: "bit errors", **{burst: str(burst) for burst in BURSTS}}
_KEY = "burst_packets"


def _pattern(burst: int) -> Callable[[float], Mapping[str, Any]]:
    def of(rate: float) -> Mapping[str, Any]:
        errors: Mapping[str, Any] = {"bit": rate}
        if burst != SINGLE:
            channel = {"loss": packet_loss(rate), "burst": burst, "damage": "corruption"}
            errors = {"gilbert-elliott": channel}
        return {"links.0.forward.errors": errors, "links.0.backward.errors": {"bit": rate}}

    return of


def cells() -> list[Cell]:
    """Single bit errors, and bursts of every length."""
    patterns = {burst: _pattern(burst) for burst in (SINGLE, *BURSTS)}
    return channels.cells("bbn8333/beyond/burst", _KEY, patterns)


def answers(runs: Runs) -> Sequence[Answer]:
    """What bursts do to the gain, and to the goodput that is left."""
    long = {"one_way_delay_s": LONG, "bit_error_rate": HIGH, "recovery": "sack"}
    case = runs.case(eten="backward", **{_KEY: BURSTS[-1]}, **long)
    lengths = ", ".join(str(burst) for burst in BURSTS)

    def gains(eten: str, **where: Any) -> str:
        return channels.gains(runs, _KEY, (SINGLE, *BURSTS), eten, **where)

    def growth(recovery: str, delay: float) -> str:
        where = {**long, "recovery": recovery, "one_way_delay_s": delay}
        of = runs.case(eten=NONE, **{_KEY: BURSTS[-1]}, **where)
        return phrase(runs.ratio(of, of.but(**{_KEY: SINGLE}), "goodput_bps"))

    def alone(metric: str, delay: float) -> str:
        where = {**long, "one_way_delay_s": delay}
        return channels.alone(runs, metric, _KEY, (SINGLE, BURSTS[-1]), **where)

    return [
        Answer(
            "How does the gain by ETEN change if errors come in bursts?",
            "§8.3",
            None,
            f"SACK, 320 ms, {percent(packet_loss(HIGH))} of packets corrupted: with single bit"
            f" errors and bursts of {lengths} packets, Backward multiplies the goodput by"
            f" {gains('backward', **long)}; Oracle by {gains('oracle', **long)}. At"
            f" {percent(packet_loss(MEDIUM))}: Backward"
            f" {gains('backward', **{**long, 'bit_error_rate': MEDIUM})}. At 10 ms and"
            f" {percent(packet_loss(HIGH))}: Backward"
            f" {gains('backward', **{**long, 'one_way_delay_s': SHORT})}.",
            case,
            runs.ratio(case, case.but(eten=NONE), "goodput_bps"),
        ),
        Answer(
            "What do bursts do to TCP without ETEN?",
            "§8.3",
            None,
            f"At {units.scientific(HIGH)}, bursts of {BURSTS[-1]} packets instead of single errors"
            f" multiply the goodput of Reno by {growth('reno', LONG)} at 320 ms and by"
            f" {growth('reno', SHORT)} at 10 ms, and that of SACK by {growth('sack', LONG)} and"
            f" {growth('sack', SHORT)}. With single errors and in such bursts, SACK answers with a"
            f" reduction or a timeout every {alone('corrupted_per_answer', LONG)} corrupted packets"
            f" at 320 ms, and has {alone('timeouts', SHORT)} timeouts a run at 10 ms.",
        ),
        channels.never_worse(runs, "bursts"),
        channels.oracle_bounds(runs, "bursts"),
    ]


STUDY = question(
    id="burst",
    title="Errors in bursts",
    asks="The simulations have single bit errors alone. Does notification still help if as many"
    " packets"
    " are corrupted, but in bursts?",
    where="§8.3",
    method=(
        "A bulk transfer of 120 s over one hop of 1.5 Mb/s, 320 or 10 ms one way, as in"
        " simulation 1.",
        "Data packets are corrupted by a Gilbert-Elliott channel, whose mean loss is that of single"
        " bit errors at 1.56e-6 or 1.56e-5 and whose bursts are 2 to 20 packets long on average"
        " (geometric). Acknowledgments and notices always meet single bit errors.",
        "The channel moves on with every packet, not with time: a sender that waits does not"
        " outlast a burst.",
    ),
    cells=cells,
    collect=channels.collect,
    measures=channels.MEASURES,
    figure=lambda runs: channels.figure(runs, _KEY, "packets in a burst, mean", WORDS),
    caption="Goodput at the mean loss of single bit errors at 1.56e-5, by the length of bursts.",
    answers=answers,
    keys={**channels.KEYS, _KEY: "burst"},
)
