"""The counterparts of the report's figures, and additional ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.cases import (
    GOODPUT,
    MODERN,
    NAMES,
    NONE,
    PERIOD,
    RECOVERIES,
    SIMULATED,
    WESTWOOD,
    WESTWOOD_PLUS,
    error_rates,
    gain_of,
    goodput_of,
    network,
    network_name,
    plain,
    sender_name,
)
from lasthop.publications.study import draw
from lasthop.publications.study.published import Number
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour and marker of a sender's ETEN, or of its congestion control if it is not AIMD.
LOOKS: Mapping[str, tuple[str, str]] = {
    NONE: (pictures.BLACK, "s"),
    "forward": (pictures.SKY, "v"),
    "forward-piggyback": (pictures.GREEN, "D"),
    "forward-marked": (pictures.PURPLE, "P"),
    "backward": (pictures.BLUE, "o"),
    "oracle": (pictures.ORANGE, "^"),
    "cumulative": (pictures.BLUE, "o"),
    "cumulative-loss-ratio": (pictures.GREEN, "D"),
    "cumulative-adaptive": (pictures.ORANGE, "v"),
    "cumulative-real": (pictures.SKY, "P"),
    WESTWOOD: (pictures.GREEN, "D"),
    WESTWOOD_PLUS: (pictures.PURPLE, "v"),
}


def _lines(senders: Sequence[Case]) -> list[draw.Line]:
    """A line for every sender; Reno's is dashed if SACK with the same notification is shown."""
    return [
        draw.Line(sender_name(of), of, *_look(of), "--" if hollow else "-", hollow)
        for of in senders
        for hollow in (of["recovery"] == "reno" and of.but(recovery="sack") in senders,)
    ]


def _look(of: Case) -> tuple[str, str]:
    return LOOKS[of.get("window", of["eten"])]


def _panel(
    runs: Runs,
    of: Case,
    title: str,
    lines: Sequence[draw.Line],
    stars: Sequence[draw.Star] = (),
    **query: Any,
) -> draw.Panel:
    """Goodput over the bit error rate for one network, in a unit that suits the hop's largest
    goodput, with the same scale for all queries."""
    most = max(goodput_of(runs, case).value for case in runs.cases(**of))
    scale, unit = (1e6, "Mb/s") if most >= 1e6 else (1e3, "kb/s")
    return draw.Panel(
        title,
        {**of, **query},
        goodput_of,
        f"goodput, {unit}",
        scale,
        top=1.08 * most / scale,
        lines=lines,
        stars=stars,
    )


def _drawn(runs: Runs, rows: Sequence[Sequence[draw.Panel]], inches: float) -> Figure:
    rates = error_rates(case for row in rows for panel in row for case in runs.cases(**panel.where))
    # All are 1.56 times a power of ten, which the axis's label says once.
    words = {rate: units.power_of_ten(rate).rpartition(units.TIMES)[2] for rate in rates}
    return draw.panels(runs, rows, "bit_error_rate", "bit error rate / 1.56", words, inches)


def panels(
    study: Study,
    runs: Runs,
    of: Case,
    senders: Sequence[Case],
    queries: Mapping[str, Mapping[str, Any]],
) -> Figure:
    """A panel for each query; published ratios are marked."""
    runs = study.judged(runs)
    lines = _lines(senders)
    row = [
        _panel(runs, of, title, lines, _published(study, runs, {**of, **query}), **query)
        for title, query in queries.items()
    ]
    return _drawn(runs, [row], 3.4)


def _published(study: Study, runs: Runs, where: Mapping[str, Any]) -> list[draw.Star]:
    """Published ratios, times the goodput that is measured without notification."""
    found = []
    for case in runs.cases(**where):
        number = study.published.number(case, "ratio")
        if number is not None:
            value = number.value * goodput_of(runs, plain(case)).value
            hollow = case["recovery"] == "reno"
            found.append(draw.Star(case["bit_error_rate"], value, _look(case)[0], hollow))
    return found


def all_networks(runs: Runs, senders: Sequence[Case], query: Mapping[str, Any]) -> Figure:
    """A small panel for every network: rates down, delays across."""
    lines = _lines(senders)
    rates = sorted({case["rate_bps"] for case in runs})
    delays = sorted({case["one_way_delay_s"] for case in runs})
    rows = [
        [
            _panel(runs, of, network_name(of), lines, **query)
            for of in (network(rate, delay) for delay in delays)
        ]
        for rate in rates
    ]
    return _drawn(runs, rows, 3.0)


def then_and_now(runs: Runs, networks: Sequence[Case]) -> Figure:
    """The report's stack and today's, with errors in both directions."""
    rows = []
    for recovery in RECOVERIES:
        lines = [
            draw.Line(
                f"{NAMES[eten]}, {profile}",
                {"recovery": recovery, "eten": eten, "profile": profile},
                *LOOKS[eten],
                style,
                profile == MODERN,
            )
            for eten in (NONE, *SIMULATED)
            for profile, style in ((PERIOD, "-"), (MODERN, ":"))
        ]
        rows.append(
            [
                _panel(runs, of, f"{NAMES[recovery]}: {network_name(of)}", lines, errors="both")
                for of in networks
            ]
        )
    return _drawn(runs, rows, 3.0)


def factors(study: Study, runs: Runs) -> Figure | None:
    """Each published ratio, the measured one, and the measured one with each factor changed."""
    numbers = [Number.read(of) for of in study.published.statements if "metric" in of]
    if not numbers or not runs.varied:
        return None
    assert study.factors is not None
    tried = [(of.name.removeprefix("an ").removeprefix("a "), of.id) for of in study.factors.tried]
    names = ["as reproduced", *(name for name, _ in tried), "today's stack (many factors)"]
    with pictures.figure(10.2, 4.8, {"axes.titlesize": 9, "font.size": 8.5}) as drawn:
        panels: Sequence[Axes] = drawn.subplots(1, len(numbers), sharey=True)
        for panel, of in zip(panels, numbers, strict=True):
            case = study.judged(runs).case(**of.case)
            gains = [gain_of(runs, case)]
            gains += [gain_of(runs.varied[id], case) for _, id in tried]
            gains.append(gain_of(runs, case.but(profile=MODERN)))
            single = runs.single_ratio(case, plain(case), GOODPUT)
            if single is not None:
                panel.axvspan(*single, color="#dfe9f3", linewidth=0)
            panel.axvline(gains[0].value, color=pictures.BLUE, linewidth=0.8)
            panel.axvline(of.value, color=pictures.ORANGE, linewidth=1.6)
            for y, gain in enumerate(gains):
                clear = y == 0 or gain.lo > gains[0].hi or gain.hi < gains[0].lo
                panel.errorbar(
                    [gain.value],
                    [y],
                    xerr=[[gain.value - gain.lo], [gain.hi - gain.value]],
                    fmt="D" if y == 0 else "o",
                    markersize=5,
                    color=pictures.BLUE if y == 0 else pictures.BLACK if clear else pictures.GREY,
                    elinewidth=1.2,
                )
            panel.set_title(f"{sender_name(case)}\n{network_name(case)}")
            panel.set_xlim(left=0)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        for panel in panels[1:]:
            panel.tick_params(left=False)
        drawn.supxlabel("goodput with ETEN over goodput without", fontsize=9)
    return drawn
