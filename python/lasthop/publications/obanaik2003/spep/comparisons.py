"""SPEP beside other help for TCP on a wireless hop, which chapter 4 of obanaik2003 names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.obanaik2003.spep import bed, fig5_4
from lasthop.publications.obanaik2003.spep.bed import (
    DELAYS,
    END_TO_END,
    INTERVALS,
    LAN,
    NEWRENO,
    SCHEMES,
    SPEP,
    WAN,
)
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Verdict, above, every
from lasthop.publications.study.words import NEGLIGIBLE, phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What the hop does: it loses packets; its link layer repairs them, so that they come late; or the
#: mobile host is out of reach for a second in each ten, of which it is warned.
LOSSES, REPAIRS, ABSENCES = "losses", "repairs", "absences"
#: On hops with losses.
ON_LOSSES = (
    *(NEWRENO, SPEP, END_TO_END, "every-hole", "sack", "sack-spep", "sack-every-hole"),
    *("delayed-dupacks", "snoop-esp", "snoop-clear"),
)
ON_REPAIRS = (NEWRENO, SPEP, "delayed-dupacks", "snoop-esp", "snoop-clear")
ON_ABSENCES = (NEWRENO, SPEP, END_TO_END, "freeze", "spep-freeze", "snoop-clear")
#: Of the other hops.
_INTERVAL = INTERVALS[2]
#: How long a repair by the link layer takes, and how soon after the other packets it ends.
_REPAIR = "20 ms"
#: When the mobile host is out of reach, and how long before it knows.
_PERIOD_S, _AWAY_S = 10, 1
_WARNING = {LAN: "100 ms", WAN: "500 ms"}


def _absences(delay: float) -> dict[str, Any]:
    """The mobile host comes back to the same base station."""
    there = [
        {"to": "station", "start": f"{start} s", "end": f"{start + _PERIOD_S - _AWAY_S} s"}
        for start in range(0, 100, _PERIOD_S)
    ]
    return {"nodes.mobile.attached": {"at": there}, "nodes.mobile.warning": _WARNING[delay]}


def _repairs() -> dict[str, Any]:
    """As many packets are late as would be lost."""
    late = {"probability": round(bed.PACKET / _INTERVAL, 4), "delay": _REPAIR}
    return {"links.2.forward": {"reordering": late}}


def cells() -> list[Cell]:
    """Every scheme where it may help."""
    found = []
    for delay in DELAYS:
        found += [
            # Runs are cheap where errors are many.
            _on(LOSSES, bed.cell(scheme, delay, interval, quick=int(interval == INTERVALS[0])), {})
            for scheme in ON_LOSSES
            for interval in INTERVALS
        ]
        for scheme in ON_REPAIRS:
            found.append(_on(REPAIRS, bed.cell(scheme, delay, _INTERVAL, quick=1), _repairs()))
        for scheme in ON_ABSENCES:
            one = bed.cell(scheme, delay, _INTERVAL, quick=1)
            found.append(_on(ABSENCES, one, _absences(delay)))
    return found


def _on(hop: str, cell: Cell, settings: Mapping[str, Any]) -> Cell:
    """The same on a hop of this kind."""
    kept = {
        key: value
        for key, value in cell.settings.items()
        # Nothing is lost where the link layer repairs.
        if hop != REPAIRS or "bursts" not in key
    }
    case = cell.case.but(hop=hop)
    return Cell(case, cell.scenario, {**kept, **settings}, cell.seeds, cell.quick)


def _listed(runs: Runs, cases: Sequence[Case], to: str) -> str:
    return "; ".join(
        f"{DELAYS[case['one_way_delay_s']]}, {bed.interval_words(case['error_interval_bytes'])}:"
        f" {phrase(runs.ratio(case, case.but(scheme=to), 'payload_bps'))}"
        for case in cases
    )


def _holes(runs: Runs, scheme: str, to: str, claim: str) -> Answer:
    cases = runs.cases(hop=LOSSES, scheme=scheme)
    checks = [
        Check(runs.ratio(case, case.but(scheme=to), "payload_bps"), above(1 + NEGLIGIBLE))
        for case in cases
    ]
    claimed = every(checks)
    first = cases[0]
    return Answer(
        claim,
        "§6.3" if scheme.startswith("sack") else "beyond",
        claimed.verdict,
        f"Payload over that with {SCHEMES[to].name}: {_listed(runs, cases, to)}. {claimed.tally}",
        first,
        runs.ratio(first, first.but(scheme=to), "payload_bps"),
        effect_of="spep",
        criterion=claimed.criterion,
    )


def _same(runs: Runs) -> Answer:
    cases = runs.cases(hop=LOSSES, scheme="snoop-esp")
    equal = [
        runs.found[case]["payload_bps"] == runs.found[case.but(scheme=NEWRENO)]["payload_bps"]
        for case in cases
    ]
    return Answer(
        "Under ESP Snoop changes nothing.",
        "§4.1",
        Verdict.of(all(equal)),
        f"In {sum(equal)} of {len(cases)} cells every run has the same rate as without. In clear it"
        " has, over NewReno under ESP, in the payload:"
        f" {_listed(runs, runs.cases(hop=LOSSES, scheme='snoop-clear'), NEWRENO)}.",
        effect_of="none",
        criterion="every run the same",
    )


def _delayed(runs: Runs) -> Answer:
    scheme = "delayed-dupacks"
    parts = [
        f"{words}: {_listed(runs, runs.cases(hop=hop, scheme=scheme), NEWRENO)}"
        for hop, words in ((LOSSES, "where packets are lost"), (REPAIRS, "where they come late"))
    ]
    spep = _listed(runs, runs.cases(hop=REPAIRS, scheme=SPEP), NEWRENO)
    case = runs.case(hop=REPAIRS, scheme=scheme, one_way_delay_s=LAN)
    return Answer(
        "What do delayed duplicate acknowledgments do, with which the thesis would spare the sender"
        " a change?",
        "§6.3",
        None,
        f"Payload over that of NewReno, {'; '.join(parts)}. They hide no loss that no link layer"
        f" repairs. SPEP where packets come late, which it takes for corruption: {spep}.",
        case,
        runs.ratio(case, case.but(scheme=NEWRENO), "payload_bps"),
    )


def _freeze(runs: Runs) -> Answer:
    parts = [
        f"{SCHEMES[scheme].name} {_listed(runs, runs.cases(hop=ABSENCES, scheme=scheme), NEWRENO)}"
        for scheme in ON_ABSENCES
        if scheme != NEWRENO
    ]
    case = runs.case(hop=ABSENCES, scheme="freeze", one_way_delay_s=WAN)
    return Answer(
        "What does Freeze-TCP do where the mobile host is out of reach for a second in each ten?",
        "§4.1",
        None,
        f"Payload over that of NewReno: {'; '.join(parts)}.",
        case,
        runs.ratio(case, case.but(scheme=NEWRENO), "payload_bps"),
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What each is worth."""
    return [
        _holes(runs, "sack-every-hole", "sack", "With every hole named, SPEP improves SACK, too."),
        _holes(
            runs,
            "sack-every-hole",
            SPEP,
            "SACK with every hole named is better than the SPEP of the thesis.",
        ),
        _holes(
            runs,
            "sack-spep",
            SPEP,
            "SACK makes SPEP better, as the thesis expects.",
        ),
        _same(runs),
        _delayed(runs),
        _freeze(runs),
    ]


def figure(runs: Runs) -> Figure:
    """All of them over the error rate."""
    return fig5_4.rates(ON_LOSSES, runs.of(runs.cases(hop=LOSSES)), log=True)


def others(runs: Runs) -> Figure | None:
    """The other hops."""
    with pictures.figure(11, 5.2) as drawn:
        axes = drawn.subplots(2, 2, squeeze=False)
        for row, (hop, title) in zip(
            axes, ((REPAIRS, "repaired late"), (ABSENCES, "out of reach")), strict=True
        ):
            for ax, delay in zip(row, DELAYS, strict=True):
                cases = runs.cases(hop=hop, one_way_delay_s=delay)
                names = [SCHEMES[case["scheme"]].name for case in cases]
                values = [runs.mean(case, "payload_bps") for case in cases]
                found = [value for value in values if value is not None]
                ax.barh(
                    names,
                    [value.value / 1e6 for value in found],
                    xerr=[
                        [(value.value - value.lo) / 1e6 for value in found],
                        [(value.hi - value.value) / 1e6 for value in found],
                    ],
                    color=pictures.SKY,
                    ecolor=pictures.BLACK,
                    height=0.6,
                )
                ax.invert_yaxis()
                ax.set_xlim(0, None)
                ax.set_title(f"{DELAYS[delay]}, {title}")
        for ax in axes[-1]:
            ax.set_xlabel("payload, Mb/s")
    return drawn


def outcome(runs: Runs) -> str:
    """In a sentence."""
    case = runs.case(
        hop=LOSSES, scheme=SPEP, one_way_delay_s=WAN, error_interval_bytes=INTERVALS[0]
    )
    ratios = [
        f"{SCHEMES[scheme].name} {phrase(fig5_4.gain(runs, case.but(scheme=scheme)))}"
        for scheme in (SPEP, "sack-every-hole", "snoop-clear")
    ]
    return f"In the WAN with one error in 16 KiB, over NewReno: {', '.join(ratios)}."


STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/comparisons",
    title="SPEP beside other help for TCP",
    asks="What do the schemes do that chapter 4 of the thesis names, and SACK, which it leaves to"
    " others?",
    where="§4.1, §6.3, beyond",
    method=(
        *bed.METHOD,
        "Repairs: no packet is lost; as many as with one error in 64 KiB come 20 ms late, as when a"
        " link layer repairs them and does not keep their order. Delayed duplicates wait 100 ms.",
        "Absences: one error in 64 KiB, and the mobile host is out of reach in the last of each ten"
        " seconds. What is queued for it or on its hop then is lost. With Freeze-TCP it is warned"
        " 100 ms (LAN) or 500 ms (WAN) before.",
        "Every hole: acknowledgments name all corrupted holes in turn, by an option (beyond the"
        " thesis).",
    ),
    cells=cells,
    collect=bed.collect,
    measures=fig5_4.MEASURES,
    figures=(
        Drawn("A hop with losses: rates, with 95 % intervals.", figure),
        Drawn("Other hops: rates, with 95 % intervals.", others),
    ),
    answers=answers,
    keys={"hop": "hop", **bed.KEYS},
    words=bed.WORDS,
    outcome=outcome,
)
