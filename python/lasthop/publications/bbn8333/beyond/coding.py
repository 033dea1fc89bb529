"""Erasure coding from end to end (bbn8333 §5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond.attacks import held
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, Verdict, above, below
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/coding"
#: Of the packets of 1040 bytes, on every hop that corrupts.
LOSSES = (0.0, 1e-4, 1e-3, 1e-2)
WORDS: Mapping[Any, str] = {loss: f"{100 * loss:g} %" if loss else "none" for loss in LOSSES}
HOPS = (1, 3)
#: One way in seconds over all three hops, with windows of segments: never less than the path needs.
DELAYS = {0.009: 400, 0.09: 400, 0.3: 1300}
MIDDLE = 0.09
SEEDS, QUICK_SEEDS = 20, 1
_PACKET_BITS = 1040 * 8
#: When the other begins: without errors runs differ in nothing else.
STARTS: Mapping[str, Sequence[str]] = {
    "flows.1.start": [f"{500 + 100 * n} ms" for n in range(SEEDS)]
}

#: The codes: strength, which losses are signalled to congestion control, the corruption reports.
CODES: Mapping[str, tuple[Any, str, str]] = {
    "off": (0.0, "all", NONE),
    "fixed, all signalled": (0.1, "all", NONE),
    "fixed, none signalled": (0.1, "none", NONE),
    "CETEN alone": (0.0, "all", "cumulative"),
    "CETEN, fixed": (0.1, "share", "cumulative"),
    "CETEN, following": ("cumulative", "share", "cumulative"),
}
_LOOKS = (
    (pictures.BLACK, "s"),
    (pictures.SKY, "v"),
    (pictures.PURPLE, "<"),
    (pictures.ORANGE, "^"),
    (pictures.BLUE, "o"),
    (pictures.GREEN, "D"),
)
LINES = tuple(
    draw.Line(code, {"code": code}, colour, marker)
    for code, (colour, marker) in zip(CODES, _LOOKS, strict=True)
)
FIXED_SIGNALLED, HIDDEN, UNCODED_CETEN, FOLLOWING = (
    "fixed, all signalled",
    "fixed, none signalled",
    "CETEN alone",
    "CETEN, following",
)


def _cell(recovery: str, competitors: int, delay: float, hops: int, loss: float, code: str) -> Cell:
    strength, signal, report = CODES[code]
    bit = -math.expm1(math.log1p(-loss) / _PACKET_BITS)
    window = f"{DELAYS[delay]} segments"
    settings: dict[str, Any] = {
        "flows.0.coding": {"strength": strength, "signal": signal},
        "flows.0.tcp.eten.report": report,
        "flows.1.traffic.size": "10 GB" if competitors else "1 kB",
    }
    for link in range(3):
        settings[f"links.{link}.delay"] = f"{delay / 3 * 1e3:g} ms"
        settings[f"links.{link}.forward.errors.bit"] = bit if link >= 3 - hops else 0.0
    for flow in range(2):
        settings[f"flows.{flow}.tcp.recovery"] = recovery
        settings[f"flows.{flow}.tcp.receive_window"] = window
    case = Case(
        recovery=recovery,
        rate_bps=10e6,
        one_way_delay_s=delay,
        hops=hops,
        competitors=competitors,
        loss=loss,
        code=code,
    )
    along = STARTS if competitors else {}
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS, along)


def cells() -> list[Cell]:
    """Every code at every error rate: with SACK over every delay, with Reno, beside another."""
    settings = [("sack", 0, delay) for delay in DELAYS]
    settings += [("reno", 0, MIDDLE), ("sack", 1, MIDDLE), ("reno", 1, MIDDLE)]
    return [
        _cell(recovery, competitors, delay, hops, loss, code)
        for recovery, competitors, delay in settings
        for hops in HOPS
        for loss in LOSSES
        for code in CODES
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What the coded flow gets, and what the other one."""
    own, other = (rows.filter(rows["flow"] == flow) for flow in ("coded", "beside"))
    return {
        "payload_bps": own["payload_bps"].to_list(),
        "others_payload_bps": other["payload_bps"].to_list(),
        "repairs": own["repairs"].to_list(),
        "rebuilt": own["rebuilt"].to_list(),
    }


def uncoded(case: Case) -> Case:
    """The same without coding; Cumulative ETEN stays."""
    return case.but(code=UNCODED_CETEN if case["code"].startswith("CETEN") else "off")


def gained(runs: Runs, case: Case) -> Estimate | None:
    """The payload over that without coding."""
    plain = uncoded(case)
    return None if plain == case else runs.ratio(case, plain, "payload_bps")


def harm(runs: Runs, case: Case) -> Estimate | None:
    """What the other gets, over what it gets beside plain TCP."""
    plain = case.but(code="off")
    alone = plain == case or not case["competitors"]
    return None if alone else runs.ratio(case, plain, "others_payload_bps")


def figure(runs: Runs) -> Figure:
    """Payload over the error rate, by path and delay."""

    def panel(title: str, metric: str = "payload_bps", **where: Any) -> draw.Panel:
        return draw.Panel(
            title, where, lambda runs, case: runs.mean(case, metric), "Mb/s", 1e6, lines=LINES
        )

    rows = [
        [
            panel(
                f"SACK, {units.duration(delay)}, {hops} of 3 hops",
                recovery="sack",
                competitors=0,
                one_way_delay_s=delay,
                hops=hops,
            )
            for delay in DELAYS
        ]
        for hops in HOPS
    ]
    beside: Mapping[str, Any] = {"recovery": "sack", "competitors": 1, "hops": 1}
    rows.append(
        [
            panel("Reno, 90 ms, 1 of 3 hops", recovery="reno", competitors=0, hops=1),
            panel("SACK beside another", **beside),
            panel("The other SACK", "others_payload_bps", **beside),
        ]
    )
    return draw.panels(runs, rows, "loss", "packets corrupted on a hop", WORDS)


# --- What comes of it ------------------------------------------------------------------------


def _at(case: Case) -> str:
    """A cell in words."""
    hops = "one hop" if case["hops"] == 1 else "three hops"
    who = "beside another" if case["competitors"] else "alone"
    name = {"reno": "Reno", "sack": "SACK"}[case["recovery"]]
    delay = units.duration(case["one_way_delay_s"])
    return f"{name} {who}, {delay}, {WORDS[case['loss']]} of {hops}"


def answers(runs: Runs) -> Sequence[Answer]:
    """When coding pays, when it does not, and who pays for it."""
    return [
        _pays(runs, FOLLOWING, "a code that follows corruption, beside Cumulative ETEN"),
        _pays(runs, "CETEN, fixed", "a fixed code, beside Cumulative ETEN"),
        _delay(runs),
        _clean(runs),
        _all_signalled(runs),
        _hidden(runs, HIDDEN, "Coding that hides losses takes from others", harms=True),
        _hidden(runs, FOLLOWING, "A code that follows corruption takes nothing", harms=False),
    ]


def _pays(runs: Runs, code: str, words: str) -> Answer:
    """Where a code gains, and where it costs."""
    lines = []
    alone = runs.cases(code=code, competitors=0, recovery="sack", one_way_delay_s=MIDDLE)
    for loss in LOSSES:
        ratios = [phrase(gained(runs, case)) for case in alone if case["loss"] == loss]
        lines.append(f"{WORDS[loss]}: {' and '.join(ratios)}")
    known = [(case, gained(runs, case)) for case in runs.cases(code=code)]
    ratios_ = [(case, ratio) for case, ratio in known if ratio is not None]
    more = sum(_clearly_more(ratio) for _, ratio in ratios_)
    less = sum(ratio.hi < 1 - NEGLIGIBLE for _, ratio in ratios_)
    best, most = max(ratios_, key=lambda found: found[1].value)
    worst, least = min(ratios_, key=lambda found: found[1].value)
    return Answer(
        f"Where does {words}, pay?",
        "§5",
        None,
        f"Payload over that without coding for SACK alone, corrupted on one hop and on three:"
        f" {'; '.join(lines)}. Of all {len(ratios_)} cells it is clearly more in {more} and clearly"
        f" less in {less}; the most is {phrase(most)} ({_at(best)}), the least {phrase(least)}"
        f" ({_at(worst)}).",
        best,
        most,
    )


def _delay(runs: Runs) -> Answer:
    words = []
    where = {"code": FOLLOWING, "recovery": "sack", "competitors": 0, "loss": LOSSES[-1]}
    for delay in DELAYS:
        ratios = [
            phrase(gained(runs, runs.case(**where, one_way_delay_s=delay, hops=hops)))
            for hops in HOPS
        ]
        words.append(f"{units.duration(delay)}: {' and '.join(ratios)}")
    case = runs.case(**where, one_way_delay_s=max(DELAYS), hops=HOPS[0])
    return Answer(
        "What has the delay to do with it?",
        "§5",
        None,
        f"With {WORDS[LOSSES[-1]]} corrupted, on one hop and on three, payload with a code that"
        f" follows corruption over Cumulative ETEN alone, by one-way delay: {'; '.join(words)}.",
        case,
        gained(runs, case),
    )


def _clean(runs: Runs) -> Answer:
    """Whether a code that has nothing to do changes nothing."""
    clean = runs.cases(code=FOLLOWING, loss=0.0)
    same = all(runs.found[case] == runs.found[uncoded(case)] for case in clean)
    fixed = runs.case(
        code=HIDDEN, loss=0.0, recovery="sack", competitors=0, one_way_delay_s=MIDDLE, hops=1
    )
    cost = gained(runs, fixed)
    return Answer(
        "Where nothing is corrupted, a code that follows corruption costs nothing.",
        "§5",
        Verdict.of(same),
        f"{'All' if same else 'Not all'} runs of {len(clean)} cells are those without coding. A"
        f" fixed code of a tenth leaves {phrase(cost)} of the payload there (SACK alone).",
        clean[0],
        gained(runs, clean[0]),
        effect_of="none",
        criterion="every run the same",
    )


def _all_signalled(runs: Runs) -> Answer:
    """Whether a code helps if all losses are signalled to congestion control."""
    coded = [(case, uncoded(case)) for case in runs.cases(code=FIXED_SIGNALLED)]
    found = held(runs, coded, "payload_bps", most=1 + SMALL)
    more = [case for case, to in coded if _clearly_more(runs.ratio(case, to, "payload_bps"))]
    return Answer(
        "If corruption cannot be distinguished from congestion, a code cannot pay, because every"
        f" loss must be signalled to congestion control: nowhere does it gain {percent(SMALL)}.",
        "§5",
        found.verdict,
        f"The payload is clearly more than without coding in {len(more)} of {len(coded)} cells; the"
        f" highest interval is {phrase(found.ratio)} ({_at(found.case)}).",
        found.case,
        found.ratio,
        effect_of="none",
        criterion=found.criterion,
    )


def _clearly_more(ratio: Estimate | None) -> bool:
    return ratio is not None and ratio.lo > 1 + NEGLIGIBLE


def _hidden(runs: Runs, code: str, claim: str, *, harms: bool) -> Answer:
    """What is left for others."""
    case = runs.case(code=code, loss=0.0, recovery="sack", competitors=1, hops=1)
    ratio = harm(runs, case)
    others = []
    for loss in LOSSES[1:]:
        other = harm(runs, case.but(loss=loss))
        others.append(f"{phrase(other)} at {percent(loss)}")
    assert ratio is not None
    band = below(1 - NEGLIGIBLE) if harms else above(1 - NEGLIGIBLE)
    return Answer(
        f"{claim} where nothing is corrupted.",
        "§5",
        (decides := Check(ratio, band)).verdict,
        f"Payload of another SACK connection over that beside plain TCP: {phrase(ratio)}; with"
        f" corruption on one hop {', '.join(others)}.",
        case,
        ratio,
        effect_of="coding" if harms else "none",
        criterion=decides.criterion,
    )


STUDY = question(
    id="coding",
    title="Erasure coding from end to end",
    asks="The sending host adds repair packets, and the receiving one rebuilds what was lost. When"
    " does that pay, and who pays for it?",
    where="§5",
    method=(
        "Three hops of 10 Mb/s with room for 50 packets each, 9, 90 or 300 ms one way in all, of"
        " which the last or all three corrupt up to one packet in a hundred, in one direction;"
        " segments of 1000 bytes, windows of 400 segments (1300 at 300 ms), 60 s.",
        "Fixed codes have two repair packets for a block of 20. All losses, repaired or not, are"
        " signalled to congestion control, or none. With Cumulative ETEN (CETEN; loss-ratio) the"
        " share that congestion caused is signalled, and the code is off, fixed, or as strong as"
        " the reported corruption requires.",
        "SACK alone over every delay, Reno alone at 90 ms, and both there beside another of their"
        " kind without coding.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("payload_bps", "bit/s", "payload, Mb/s", 1e6),
        Measure("payload_over_uncoded", "1", "over no coding", gained),
        mean("others_payload_bps", "bit/s", "the other's, Mb/s", 1e6),
        Measure("others_over_plain", "1", "the other's over plain", harm),
        mean("repairs", "1", "repair packets"),
        mean("rebuilt", "1", "rebuilt"),
    ),
    figure=figure,
    caption="Payload by error rate, one-way delay and code.",
    answers=answers,
    keys={
        "recovery": "TCP",
        "competitors": "others",
        "one_way_delay_s": "one way, s",
        "hops": "lossy hops",
        "loss": "corrupted",
        "code": "code",
    },
)
