"""Error-correcting codes within packets (bbn8333 §5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond.attacks import held
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, above, between, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/per-packet-code"
BIT_ERROR_RATES = (0.0, 1.56e-7, 1.56e-6, 1.56e-5, 1.56e-4)
LOW, MEDIUM, HIGH, HIGHEST = BIT_ERROR_RATES[1:]
HOPS = (1, 3)
#: Wrong bytes that a code corrects in each packet.
STRENGTHS = ("1", "2", "4", "8")
STRONG = STRENGTHS[-1]
OFF, FOLLOWING = "off", "following"
#: The kinds of ETEN.
BACKWARD, CUMULATIVE = "backward", "cumulative"
#: Wrong bits one by one; fades in which nothing gets through; or the former beside an erasure code.
BITS, FADES, ERASURE = "bit errors", "fades", "bit errors, erasure code"
#: Bit error rates at which fades damage as many packets as single bit errors would.
FADED = (LOW, MEDIUM, HIGH)
SEEDS, QUICK_SEEDS = 10, 2
_MSS = 1000
_PACKET_BYTES = _MSS + 40
#: Bytes of redundancy for each wrong byte that is corrected.
_REDUNDANCY = 4
#: How long a fade lasts, seconds, and its bit error rate: more than half of the bytes are wrong.
_FADE_S, _FADE_BITS = 0.05, 0.1
_PHASES = 10

_LOOKS = {
    OFF: (pictures.BLACK, "s"),
    "1": (pictures.SKY, "v"),
    "2": (pictures.PURPLE, "<"),
    "4": (pictures.ORANGE, "^"),
    "8": (pictures.BLUE, "o"),
}
LINES = (
    *(
        draw.Line(
            "no code" if code == OFF else f"corrects {code}",
            {"code": code, "eten": NONE},
            colour,
            marker,
        )
        for code, (colour, marker) in _LOOKS.items()
    ),
    draw.Line("follows CETEN", {"code": FOLLOWING, "eten": CUMULATIVE}, pictures.GREEN, "D"),
)


def damaged(bit: float, corrects: int = 0) -> float:
    """The share of packets with more wrong bytes than their code corrects, over one hop."""
    byte = -math.expm1(8 * math.log1p(-bit))
    few = range(corrects + 1)
    return 1 - math.fsum(
        math.comb(_PACKET_BYTES, n) * byte**n * (1 - byte) ** (_PACKET_BYTES - n) for n in few
    )


def _fades(bit: float) -> tuple[Mapping[str, Any], Mapping[str, Sequence[str]]]:
    """Fades that damage as many packets as such a bit error rate: the last hop's errors, and where
    in its period a fade begins, which differs from run to run."""
    period = _FADE_S / damaged(bit)
    starts = [(period - _FADE_S) * phase / _PHASES for phase in range(_PHASES)]
    at = {"start": "0 ms", "end": _ms(_FADE_S), "bit": _FADE_BITS}
    span = "links.2.forward.errors.fades.at.0"
    return (
        {"fades": {"every": _ms(period), "at": [at]}},
        {
            f"{span}.start": [_ms(start) for start in starts],
            f"{span}.end": [_ms(start + _FADE_S) for start in starts],
        },
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


def _cell(channel: str, hops: int, bit: float, eten: str, code: str) -> Cell:
    strength: Any = {OFF: 0, FOLLOWING: CUMULATIVE}.get(code) if not code.isdigit() else int(code)
    coding: dict[str, Any] = {"per_packet": strength}
    if channel == ERASURE:
        coding |= {"strength": 0.1, "signal": "none"}
    settings: dict[str, Any] = {"flows.0.coding": coding, "flows.0.tcp.eten.report": eten}
    if eten == CUMULATIVE:
        settings["flows.0.tcp.eten.strategy"] = "loss-ratio"
    along: Mapping[str, Sequence[str]] = {}
    for link in range(3):
        settings[f"links.{link}.forward.errors.bit"] = bit if link >= 3 - hops else 0.0
    if channel == FADES:
        del settings["links.2.forward.errors.bit"]
        settings["links.2.forward.errors"], along = _fades(bit)
    case = Case(channel=channel, hops=hops, bit_error_rate=bit, eten=eten, code=code)
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS, along)


def _combinations() -> Iterator[tuple[str, str]]:
    """The kinds of ETEN and codes."""
    yield from ((NONE, code) for code in (OFF, *STRENGTHS))
    yield from ((CUMULATIVE, code) for code in (OFF, FOLLOWING))


def cells() -> list[Cell]:
    """Every code against single bit errors and against fades; and those with notices, or beside an
    erasure code."""
    found = [
        _cell(BITS, hops, bit, eten, code)
        for hops in HOPS
        for bit in BIT_ERROR_RATES
        for eten, code in (*_combinations(), (BACKWARD, OFF), (BACKWARD, "2"), (BACKWARD, STRONG))
    ]
    found += [_cell(FADES, 1, bit, eten, code) for bit in FADED for eten, code in _combinations()]
    found += [
        _cell(ERASURE, hops, bit, NONE, code)
        for hops in HOPS
        for bit in BIT_ERROR_RATES
        for code in (OFF, "2", STRONG)
    ]
    return found


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What the flow gets, and what its packets met on all hops."""
    return {
        name: column(name, "coded")(rows)
        for name in ("payload_bps", "corrected", "corrupted", "timeouts")
    }


def uncoded(case: Case) -> Case:
    """The same without a code, with the same ETEN."""
    return case.but(code=OFF)


def gained(runs: Runs, case: Case) -> Estimate | None:
    """The payload over that without a code."""
    plain = uncoded(case)
    return None if plain == case else runs.ratio(case, plain, "payload_bps")


def figure(runs: Runs) -> Figure:
    """Payload over the bit error rate, by code."""

    def panel(title: str, **where: Any) -> draw.Panel:
        return draw.Panel(
            title,
            where,
            lambda runs, case: runs.mean(case, "payload_bps"),
            "Mb/s",
            1e6,
            lines=LINES,
        )

    rows = [
        [
            panel("bit errors on one of 3 hops", channel=BITS, hops=1),
            panel("on each of 3 hops", channel=BITS, hops=3),
        ]
    ]
    words = {rate: f"{rate:g}" if rate else "none" for rate in BIT_ERROR_RATES}
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate", words)


# --- What comes of it ---


def _at(case: Case) -> str:
    """A cell in words."""
    hops = "one hop" if case["hops"] == 1 else "three hops"
    code = "no code" if case["code"] == OFF else f"code {case['code']}"
    return f"{code}, {units.scientific(case['bit_error_rate'])} on {hops}"


def answers(runs: Runs) -> Sequence[Answer]:
    """What a code gains, what it costs, and what it does not help against."""
    return [
        _gains(runs),
        _as_if_clean(runs),
        _cost(runs),
        _follows(runs),
        _fades_remain(runs),
        _notices(runs),
        _erasures(runs),
    ]


def _gains(runs: Runs) -> Answer:
    errors = (MEDIUM, HIGH, HIGHEST)
    pairs = [
        (case, uncoded(case))
        for case in runs.cases(channel=BITS, eten=NONE, code=STRONG, bit_error_rate=errors)
    ]
    found = held(runs, pairs, "payload_bps", least=1 + SMALL)
    lines = []
    for code in STRENGTHS:
        ratios = [
            phrase(
                gained(
                    runs, runs.case(channel=BITS, eten=NONE, code=code, hops=1, bit_error_rate=b)
                )
            )
            for b in errors
        ]
        lines.append(f"corrects {code}: {', '.join(ratios)}")
    return Answer(
        f"Where {units.scientific(errors[0])} of the bits are wrong or more, a code that corrects"
        f" {STRONG} bytes in a packet gains SACK more than {percent(SMALL)}.",
        "§5",
        found.verdict,
        f"Payload over that without a code, one lossy hop, by bit error rate"
        f" ({', '.join(units.scientific(b) for b in errors)}): {'; '.join(lines)}. The least with"
        f" {STRONG} is {phrase(found.ratio)} ({_at(found.case)}). {found.cells.tally}",
        found.case,
        found.ratio,
        effect_of="coding",
        criterion=found.criterion,
    )


def _as_if_clean(runs: Runs) -> Answer:
    """What is left of the payload on a path without errors."""

    def of(bit: float) -> list[tuple[Case, Case]]:
        coded = runs.cases(channel=BITS, eten=NONE, code=STRONG, bit_error_rate=bit)
        return [(case, uncoded(case).but(bit_error_rate=0.0)) for case in coded]

    found = held(
        runs, [pair for bit in (MEDIUM, HIGH) for pair in of(bit)], "payload_bps", least=1 - SMALL
    )
    highest = held(runs, of(HIGHEST), "payload_bps")
    return Answer(
        f"With it, SACK gets within {percent(SMALL)} of what it gets without errors, up to"
        f" {units.scientific(HIGH)} on every hop.",
        "§5",
        found.verdict,
        f"The least is {phrase(found.ratio)} of that ({_at(found.case)}). At"
        f" {units.scientific(HIGHEST)}, where {percent(damaged(HIGHEST))} of packets have a wrong"
        f" byte on a hop and {damaged(HIGHEST, int(STRONG)):.1g} more than {STRONG}, it is"
        f" {phrase(highest.ratio)} ({_at(highest.case)}). {found.cells.tally}",
        found.case,
        found.ratio,
        effect_of="coding",
        criterion=found.criterion,
    )


def _cost(runs: Runs) -> Answer:
    """What redundancy costs where it is of no use."""
    checks, lines = [], []
    for code in STRENGTHS:
        expected = 1 - _REDUNDANCY * int(code) / _MSS
        case = runs.case(channel=BITS, eten=NONE, code=code, hops=1, bit_error_rate=0.0)
        ratio = gained(runs, case)
        exact = Check(ratio, between(expected - NEGLIGIBLE, expected + NEGLIGIBLE), exact=True)
        checks.append(exact)
        lines.append(f"{code}: {phrase(ratio)} ({expected:.3f})")
    cells = every(checks)
    return Answer(
        "Where nothing is corrupted, a fixed code costs the bytes that it takes, and nothing else.",
        "§5",
        cells.verdict,
        "Payload over that without a code, by the number of bytes that it corrects (and the share"
        f" of {_MSS} bytes that is left): {'; '.join(lines)}. {cells.tally}",
        case,
        ratio,
        effect_of="coding",
        criterion=cells.criterion,
    )


def _follows(runs: Runs) -> Answer:
    """Whether a code that follows finds the strength that a path wants."""
    over_best, over_none = [], []
    for case in runs.cases(channel=BITS, code=FOLLOWING):
        fixed = [case.but(code=code, eten=NONE) for code in (OFF, *STRENGTHS)]
        best = max(fixed, key=lambda of: sum(runs.values(of, "payload_bps")))
        over_best.append((case, runs.ratio(case, best, "payload_bps")))
        if case["bit_error_rate"] >= MEDIUM:
            over_none.append((case, gained(runs, case)))
    cells = every(
        [
            *(Check(ratio, above(1 - SMALL)) for _, ratio in over_best),
            *(Check(ratio, above(1 + SMALL)) for _, ratio in over_none),
        ]
    )
    least = min(over_best, key=lambda found: found[1].lo if found[1] else 0.0)
    gain = min(over_none, key=lambda found: found[1].lo if found[1] else 0.0)
    return Answer(
        "A code that follows Cumulative ETEN gets within"
        f" {percent(SMALL)} of the best fixed one at every error rate, without errors too, and from"
        f" {units.scientific(MEDIUM)} on {percent(SMALL)} more than Cumulative ETEN"
        " alone.",
        "§5",
        cells.verdict,
        f"The least is {phrase(least[1])} of the payload with the best of no code and of codes that"
        f" correct {', '.join(STRENGTHS)} ({_at(least[0])}), and {phrase(gain[1])} of that with"
        f" Cumulative ETEN alone ({_at(gain[0])}). {cells.tally}",
        *least,
        effect_of="coding",
        criterion=cells.criterion,
    )


def _fades_remain(runs: Runs) -> Answer:
    """A code that corrects bytes does nothing about fades."""
    pairs = [(case, uncoded(case)) for case in runs.cases(channel=FADES, eten=NONE, code=STRENGTHS)]
    found = held(runs, pairs, "payload_bps", most=1 + SMALL)
    lines = [
        f"{units.scientific(bit)}: "
        + ", ".join(
            phrase(gained(runs, runs.case(channel=FADES, bit_error_rate=bit, eten=NONE, code=code)))
            for code in STRENGTHS
        )
        for bit in FADED
    ]
    following = " and ".join(
        phrase(gained(runs, runs.case(channel=FADES, bit_error_rate=bit, code=FOLLOWING)))
        for bit in FADED
    )
    return Answer(
        "Against fades that damage as many packets, no code gains anything:"
        f" nowhere {percent(SMALL)}.",
        "§5",
        found.verdict,
        "Payload over that without a code, for codes that correct"
        f" {', '.join(STRENGTHS)} bytes: {'; '.join(lines)}. The highest is {phrase(found.ratio)}"
        f" ({_at(found.case)}). {found.cells.tally} One that follows gets {following} of the"
        " payload with Cumulative ETEN alone.",
        found.case,
        found.ratio,
        effect_of="none",
        criterion=found.criterion,
    )


def _notices(runs: Runs) -> Answer:
    """What notices add to a code, and a code to notices."""
    lines = []
    for code in (OFF, "2", STRONG):
        ratios = []
        for bit in (MEDIUM, HIGH, HIGHEST):
            case = runs.case(channel=BITS, hops=1, bit_error_rate=bit, eten=BACKWARD, code=code)
            ratios.append(phrase(runs.ratio(case, case.but(eten=NONE), "payload_bps")))
        lines.append(f"{'no code' if code == OFF else f'corrects {code}'}: {', '.join(ratios)}")
    case = runs.case(channel=BITS, hops=1, bit_error_rate=HIGH, eten=BACKWARD, code=OFF)
    strong = case.but(eten=NONE, code=STRONG)
    rates = ", ".join(units.scientific(bit) for bit in (MEDIUM, HIGH, HIGHEST))
    over = runs.ratio(strong, case, "payload_bps")
    return Answer(
        "Does Backward ETEN add anything to a code?",
        "§5",
        None,
        "Payload with Backward ETEN over that without, one lossy hop, by bit error rate"
        f" ({rates}): {'; '.join(lines)}. At {units.scientific(HIGH)} a code that corrects"
        f" {STRONG}, without ETEN, gets {phrase(over)} times what Backward ETEN gets without a"
        " code.",
        strong,
        over,
    )


def _erasures(runs: Runs) -> Answer:
    """A code within packets beside one across packets, and in its place."""
    lines = []
    for bit in (LOW, MEDIUM, HIGH, HIGHEST):
        plain = runs.case(channel=BITS, hops=1, bit_error_rate=bit, eten=NONE, code=OFF)
        across, both, within = (
            phrase(runs.ratio(case, plain, "payload_bps"))
            for case in (
                plain.but(channel=ERASURE),
                plain.but(channel=ERASURE, code="2"),
                plain.but(code="2"),
            )
        )
        lines.append(f"{units.scientific(bit)}: {across}, {both}, {within}")
    case = runs.case(channel=ERASURE, hops=1, bit_error_rate=HIGH, code="2")
    return Answer(
        "Within packets, across packets, or both?",
        "§5",
        None,
        "Payload over that without any code, one lossy hop, with an erasure code that adds a tenth"
        " (two repair packets for 20, losses hidden from congestion control), with both, and with a"
        f" code that corrects two bytes in each packet alone: {'; '.join(lines)}.",
        case,
        gained(runs, case),
    )


STUDY = question(
    id="per-packet-code",
    title="Error-correcting codes within packets",
    asks="Each packet carries a code of its own, by which every node corrects wrong bytes before it"
    " forwards the packet. What does that gain, and what does it cost?",
    where="§5",
    method=(
        "SACK alone over three hops of 10 Mb/s, 90 ms one way in all; the last hop or all three"
        " have bit errors in the direction of the data; a window of 260 kB, which fills the path,"
        " and room for 300 packets at each hop, so that no queue overflows; 60 s.",
        "A code that corrects t wrong bytes takes 4 t bytes of each data packet. Packets have 1040"
        " bytes at most with their code: a segment has 1000 - 4 t. The code that follows is the"
        " weakest with which no more than one packet in a million is damaged beyond repair, by the"
        " reports of Cumulative ETEN (CETEN; loss-ratio); segments leave room for the strongest,"
        " which corrects 15.",
        f"Fades of {units.duration(_FADE_S)} in regular periods, on the last hop alone: in a fade"
        " one bit in ten is wrong, at other times none, and on average as many packets are"
        " damaged as by single bit errors. Where in its period a fade begins differs from run to"
        " run.",
        "The erasure code adds two repair packets for 20, and hides losses from congestion"
        " control.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("payload_bps", "bit/s", "payload, Mb/s", 1e6),
        Measure("payload_over_uncoded", "1", "over no code", gained),
        mean("corrected", "1", "packets corrected"),
        mean("corrupted", "1", "packets damaged"),
        mean("timeouts", "1", "timeouts"),
    ),
    figure=figure,
    caption="Payload by bit error rate and by the wrong bytes that a packet's code corrects.",
    answers=answers,
    keys={
        "channel": "channel",
        "hops": "lossy hops",
        "bit_error_rate": "bit errors",
        "eten": "ETEN",
        "code": "code",
    },
)
