"""Notices of corruption through an encrypted tunnel (bbn8333 §7.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs, column
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, above, between, every
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/tunnel"
NODES = ("source", "left", "right", "sink")
#: By how many hops are inside: between which nodes packets are hidden.
TUNNELS: Mapping[int, tuple[str, str]] = {
    1: ("left", "right"),
    2: ("source", "right"),
    3: ("source", "sink"),
}
WORDS: Mapping[Any, str] = {0: "none", 1: "middle", 2: "first two", 3: "all"}
#: The hops inside.
_INSIDE = {0: (), 1: (1,), 2: (0, 1), 3: (0, 1, 2)}
#: The receivers of notices: none at all; and for packets that are corrupted inside: none, the
#: ingress, or the source itself, from nodes that can read inner packets.
ALONE, LOST, RESOLVE, READABLE = "alone", "lost", "resolve", "readable"
NOTICES = (ALONE, LOST, RESOLVE, READABLE)
#: Cumulative ETEN by loss ratio, whose fields are copied into the outer header, or are not.
HIDDEN, COPIED = "cumulative", "cumulative, copied"
#: Of every link, one way, in seconds.
DELAYS = (0.01, 0.1, 0.32)
SHORT, LONG = DELAYS[0], DELAYS[-1]
BIT_ERROR_RATES = (1.56e-7, 1.56e-6, 1.56e-5)
LOW, MEDIUM, HIGH = BIT_ERROR_RATES
#: Which links corrupt packets: all three, or those inside the tunnel alone.
EVERYWHERE, INSIDE = "everywhere", "inside"
#: By which way acknowledgments and notices come back: that of the data, or past the ingress.
SAME, ASIDE = "the same", "aside"
SEEDS, QUICK_SEEDS = 20, 2


def alone(case: Case) -> Case:
    """The same path and packets without ETEN."""
    return case.but(notices=ALONE)


def _eten(notices: str) -> Mapping[str, Any]:
    if notices in (HIDDEN, COPIED):
        return {"report": "cumulative", "strategy": "loss-ratio"}
    return {"report": "none" if notices == ALONE else "backward"}


def _tunnel(hops: int, notices: str) -> Mapping[str, Any]:
    if not hops:
        return {"tunnels": []}
    start, end = TUNNELS[hops]
    within = notices if notices in (RESOLVE, READABLE) else LOST
    copied = {"copy_fields": True} if notices == COPIED else {}
    return {"tunnels": [{"from": start, "to": end, "notices": within, **copied}]}


def _link(ends: tuple[str, str], delay: float, rate: float = 0.0) -> Mapping[str, Any]:
    return {
        "between": list(ends),
        "rate": "1.5 Mbit/s",
        "delay": f"{delay * 1e3:g} ms",
        "queue": "50 packets",
        "errors": {"bit": rate},
    }


def _links(hops: int, delay: float, rate: float, errors: str, back: str) -> Mapping[str, Any]:
    links = [
        _link(
            ends,
            SHORT if back == ASIDE and number != 1 else delay,
            rate if errors == EVERYWHERE or number in _INSIDE[hops] else 0.0,
        )
        for number, ends in enumerate(pairwise(NODES))
    ]
    if back == SAME:
        return {"links": links}
    # Of ways with as many links the first declared is taken, seen from the destination: to the
    # source that is the one aside, and to the sink that by the ingress.
    first, last = (_link(ends, SHORT) for ends in (("aside", "source"), ("right", "aside")))
    return {"nodes.aside": {}, "links": [first, *links, last]}


def _cell(hops: int, notices: str, delay: float, rate: float, errors: str, back: str) -> Cell:
    case = Case(
        recovery="sack",
        tunnel_hops=hops,
        notices=notices,
        rate_bps=1.5e6,
        one_way_delay_s=delay,
        bit_error_rate=rate,
        errors=errors,
        way_back=back,
    )
    settings = {
        **_links(hops, delay, rate, errors, back),
        **_tunnel(hops, notices),
        "flows.0.tcp.eten": _eten(notices),
    }
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS)


def cells() -> list[Cell]:
    """Every tunnel and every kind of notice; without a tunnel, with and without ETEN."""
    found = []
    for delay in DELAYS:
        for rate in BIT_ERROR_RATES:
            arms = {
                0: (ALONE, READABLE, HIDDEN),
                1: NOTICES,
                2: NOTICES,
                3: (*NOTICES, HIDDEN, COPIED),
            }
            found += [
                _cell(hops, notices, delay, rate, EVERYWHERE, SAME)
                for hops, who in arms.items()
                for notices in who
            ]
        found += [
            _cell(hops, notices, delay, HIGH, INSIDE, SAME)
            for hops in (1, 2)
            for notices in NOTICES
        ]
        found += [
            _cell(1, notices, delay, rate, INSIDE, ASIDE)
            for rate in (MEDIUM, HIGH)
            for notices in (ALONE, RESOLVE, READABLE)
        ]
    return found


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """The goodput of each run, and how many notices the sender heeded, of all and of each packet
    that was corrupted."""
    notices, corrupted = column("notices", "ftp")(rows), column("corrupted", "ftp")(rows)
    return {
        "goodput_bps": column("goodput_bps", "ftp")(rows),
        "notices": notices,
        "heeded_share": [
            a / b if a is not None and b else None for a, b in zip(notices, corrupted, strict=True)
        ],
    }


def _gain(runs: Runs, case: Case) -> Estimate | None:
    """Goodput over that of the same packets without ETEN."""
    return None if case["notices"] == ALONE else runs.ratio(case, alone(case), "goodput_bps")


LINES = (
    draw.Line("no ETEN", {"notices": ALONE}, pictures.BLACK, "s"),
    draw.Line("lost inside", {"notices": LOST}, pictures.ORANGE, "^"),
    draw.Line("readable inside", {"notices": READABLE}, pictures.SKY, "D"),
    draw.Line("resolved by the ingress", {"notices": RESOLVE}, pictures.BLUE, "o"),
)

#: The worst of the path of simulation 2.
_PATH: Mapping[str, Any] = {"bit_error_rate": HIGH, "errors": EVERYWHERE, "way_back": SAME}


def figure(runs: Runs) -> Figure:
    """Goodput over the extent of the tunnel at the high error rate, a panel for each delay."""
    panels = [
        draw.Panel(
            f"{units.duration(delay)} one way on each link",
            {**_PATH, "one_way_delay_s": delay},
            lambda runs, case: runs.mean(case, "goodput_bps"),
            "goodput, kb/s",
            1e3,
            lines=LINES,
        )
        for delay in DELAYS
    ]
    return draw.panels(runs, [panels], "tunnel_hops", "hops inside the tunnel", WORDS)


def _gains(runs: Runs, notices: str, **where: Any) -> str:
    """The gain by each tunnel, in words."""
    cases = (runs.case(tunnel_hops=hops, notices=notices, **where) for hops in TUNNELS)
    return ", ".join(phrase(_gain(runs, case)) for case in cases)


def _ratios(
    runs: Runs, cases: Sequence[Case], of: Callable[[Case], Estimate | None]
) -> list[tuple[Case, Estimate]]:
    """The cases that have such a ratio, with it."""
    return [(case, ratio) for case in cases if (ratio := of(case)) is not None]


def _left(runs: Runs) -> Answer:
    """The rest of the gain if corruption inside is not reported."""
    long, short = ({**_PATH, "one_way_delay_s": delay} for delay in (LONG, SHORT))

    def bare(where: Mapping[str, Any]) -> str:
        return phrase(_gain(runs, runs.case(tunnel_hops=0, notices=READABLE, **where)))

    case = runs.case(tunnel_hops=1, notices=LOST, **long)
    return Answer(
        "How much of Backward ETEN's gain is left if corruption inside a tunnel is not reported?",
        "§7.2",
        None,
        f"At {units.scientific(HIGH)} on all three links and 320 ms each, Backward multiplies the"
        f" goodput by {bare(long)} without a tunnel, and by {_gains(runs, LOST, **long)} with one"
        f" over the middle hop, the first two and all three; at 10 ms by {bare(short)}, and by"
        f" {_gains(runs, LOST, **short)}.",
        case,
        _gain(runs, case),
    )


def _nothing(runs: Runs) -> Answer:
    """Corruption of encrypted packets is not reported."""
    hidden = [*runs.cases(tunnel_hops=3, notices=LOST), *runs.cases(notices=LOST, errors=INSIDE)]
    heeded = sum(sum(runs.values(case, "notices")) for case in hidden)
    # Runs without ETEN, and with ETEN without notices, are the same to the packet.
    found = _ratios(runs, hidden, lambda case: _gain(runs, case))
    same = between(1 - NEGLIGIBLE, 1 + NEGLIGIBLE)
    checks = every([Check(ratio, same) for _, ratio in found])
    case, ratio = max(found, key=lambda pair: abs(pair[1].value - 1))
    return Answer(
        "IPsec renders per-packet notification useless for what is corrupted inside a tunnel.",
        "§6.4",
        checks.verdict,
        f"Where all links that corrupt packets are inside, the sender heeds {heeded:g} notices in"
        f" {sum(runs.count(case) for case in hidden)} runs, and the ratio of goodputs furthest from"
        f" 1 is {phrase(ratio)}. {checks.tally}",
        case,
        ratio,
        effect_of="none",
        criterion=checks.criterion,
    )


def _resolved(runs: Runs) -> Answer:
    """The suggestion works."""
    cases = runs.cases(notices=RESOLVE, bit_error_rate=HIGH, way_back=SAME)
    found = _ratios(runs, cases, lambda case: _gain(runs, case))
    checks = every([Check(ratio, above(1 + MARKED)) for _, ratio in found])
    case, smallest = min(found, key=lambda pair: pair[1].value)
    where = {**_PATH, "one_way_delay_s": LONG}
    return Answer(
        "The tunnel's endpoint may resolve from security association and sequence number which end"
        " system to notify: notices then come out of a tunnel.",
        "§7.2",
        checks.verdict,
        f"At {units.scientific(HIGH)} and 320 ms Backward multiplies the goodput by"
        f" {_gains(runs, RESOLVE, **where)} with a tunnel over the middle hop, the first two and"
        f" all three. Of all delays the smallest ratio is {phrase(smallest)}. {checks.tally}",
        case,
        smallest,
        effect_of="notices",
        criterion=checks.criterion,
    )


def _detour(runs: Runs) -> Answer:
    """What the way by the ingress costs where that lies on the way."""

    def direct(case: Case) -> Estimate | None:
        return runs.ratio(case, case.but(notices=READABLE), "goodput_bps")

    found = _ratios(runs, runs.cases(notices=RESOLVE, way_back=SAME), direct)
    same = between(1 - NEGLIGIBLE, 1 + NEGLIGIBLE)
    checks = every([Check(ratio, same) for _, ratio in found])
    case, ratio = max(found, key=lambda pair: abs(pair[1].value - 1))
    equal = sum(
        runs.values(case, "goodput_bps") == runs.values(case.but(notices=READABLE), "goodput_bps")
        for case, _ in found
    )
    return Answer(
        "The detour by the ingress costs nothing where that is on the notice's way to the source.",
        "§7.2",
        checks.verdict,
        "Against nodes that read the inner packets and notify the source themselves,"
        f" the goodputs of all runs are the same in {equal} of {len(found)} cells; the ratio"
        f" furthest from 1 is {phrase(ratio)}. {checks.tally}",
        case,
        ratio,
        effect_of="none",
        criterion=checks.criterion,
    )


def _aside(runs: Runs) -> Answer:
    """And where it does not."""

    def ratios(rate: float) -> str:
        cases = [
            runs.case(notices=RESOLVE, way_back=ASIDE, bit_error_rate=rate, one_way_delay_s=delay)
            for delay in DELAYS
        ]
        return ", ".join(
            f"{phrase(runs.ratio(case, case.but(notices=READABLE), 'goodput_bps'))} of"
            f" {phrase(_gain(runs, case.but(notices=READABLE)))}"
            for case in cases
        )

    case = runs.case(notices=RESOLVE, way_back=ASIDE, bit_error_rate=HIGH, one_way_delay_s=LONG)
    heeded = [runs.mean(of, "heeded_share") for of in (case, case.but(notices=READABLE))]
    shares = " and ".join("none" if share is None else percent(share.value) for share in heeded)
    return Answer(
        "What does the detour cost where the way back passes the ingress by?",
        "§7.2",
        None,
        "Acknowledgments, and notices to the source, take 20 ms over two other links; a notice to"
        " the ingress goes back over the hop inside the tunnel, of 10, 100 or 320 ms. Goodput over"
        " that of nodes that notify the source themselves, and what these gain: at"
        f" {units.scientific(MEDIUM)} {ratios(MEDIUM)}; at {units.scientific(HIGH)}"
        f" {ratios(HIGH)}. At the last of these the sender acts on notices about {shares} of the"
        " packets that are corrupted; a notice about a copy that has been sent again since comes to"
        " nothing.",
        case,
        runs.ratio(case, case.but(notices=READABLE), "goodput_bps"),
    )


def _cumulative(runs: Runs) -> Answer:
    """What the other kind of notification makes of a tunnel."""

    def gains(hops: int, notices: str) -> str:
        where = {**_PATH, "bit_error_rate": MEDIUM}
        cases = [
            runs.case(tunnel_hops=hops, notices=notices, one_way_delay_s=delay, **where)
            for delay in DELAYS
        ]
        return ", ".join(phrase(_gain(runs, case)) for case in cases)

    case = runs.case(
        **{**_PATH, "bit_error_rate": MEDIUM}, tunnel_hops=3, notices=COPIED, one_way_delay_s=LONG
    )
    return Answer(
        "Does Cumulative ETEN include links inside a tunnel?",
        "§7.2",
        None,
        "Its fields are in the inner header, where nodes inside cannot write. Goodput over that"
        f" without ETEN, by loss ratio, at {units.scientific(MEDIUM)} and 10, 100 and 320 ms:"
        f" {gains(0, HIDDEN)} without a tunnel, {gains(3, HIDDEN)} with one over all three hops,"
        f" and {gains(3, COPIED)} if the gateways copy the fields into the outer header and back.",
        case,
        _gain(runs, case),
    )


def _length(runs: Runs) -> Answer:
    """What the tunnel itself costs."""

    def costs(notices: str, rate: float, delay: float) -> str:
        where = {**_PATH, "bit_error_rate": rate, "one_way_delay_s": delay}
        case = runs.case(tunnel_hops=3, notices=notices, **where)
        bare = runs.case(tunnel_hops=0, notices=notices, **where)
        return phrase(runs.ratio(case, bare, "goodput_bps"))

    case = runs.case(tunnel_hops=3, notices=ALONE, **_PATH, one_way_delay_s=LONG)
    return Answer(
        "What does a tunnel over the whole path cost besides?",
        "§7.2",
        None,
        "Packets of 576 bytes are 632 bytes long inside, and corrupted as much more often. Goodput"
        f" over that without a tunnel: at {units.scientific(LOW)} and 10 ms, where the links are"
        f" nearly full, {costs(ALONE, LOW, SHORT)} without ETEN and {costs(READABLE, LOW, SHORT)}"
        f" with Backward that loses no notice to the tunnel; at {units.scientific(HIGH)} and 320 ms"
        f" {costs(ALONE, HIGH, LONG)} and {costs(READABLE, HIGH, LONG)}.",
        case,
        runs.ratio(case, case.but(tunnel_hops=0), "goodput_bps"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What is lost without help, whether the suggestion works, and what it costs."""
    return [
        _left(runs),
        _nothing(runs),
        _resolved(runs),
        _detour(runs),
        _aside(runs),
        _cumulative(runs),
        _length(runs),
    ]


STUDY = question(
    id="tunnel",
    title="Notices through a tunnel",
    asks="IPsec hides whose packet was corrupted. The report suggests that a node inside a tunnel"
    " names the packet to the tunnel's endpoint by what it can read. Does that work, and what does"
    " it cost?",
    where="§7.2",
    method=(
        "A bulk transfer of SACK with Backward ETEN over three hops as in simulation 2, each of"
        " 1.5 Mb/s and 10, 100 or 320 ms one way, a window of 20 segments, notices of 180 bytes;"
        " 120 s.",
        "A tunnel over the middle hop, the first two or all three: ESP of AES-GCM-16, outer headers"
        " of IPv4, 632 bytes for 576. Errors in both directions, on all three links, or on those"
        " inside alone.",
        "Notices about what is corrupted inside: lost; resolved by the ingress, to which nodes"
        " inside send SPI, sequence number and initialization vector; or, to compare, sent to the"
        " source by nodes that can read the same packets, since these are authenticated but not"
        " encrypted.",
        "And another way back: acknowledgments and notices to the source go over two links of 10 ms"
        " past the ingress; only the hop inside the tunnel corrupts packets.",
        "And Cumulative ETEN by loss ratio, with its fields in the inner header, or copied.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
        Measure("ratio", "1", "with ETEN / without", _gain),
        mean("notices", "1", "notices heeded a run"),
        mean("heeded_share", "1", "of packets corrupted, %", 0.01),
    ),
    figure=figure,
    caption="Goodput at 1.56e-5 on all three links, by what the tunnel covers.",
    answers=answers,
    keys={
        "tunnel_hops": "hops inside",
        "notices": "notices",
        "one_way_delay_s": "delay, s",
        "bit_error_rate": "bit errors",
        "errors": "errors",
        "way_back": "way back",
    },
)
