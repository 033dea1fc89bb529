"""The pictures: counterparts of the report's figures, and what it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.cases import (
    AIMD,
    MODERN,
    NAMES,
    NONE,
    PERIOD,
    WESTWOOD,
    WESTWOOD_PLUS,
    Case,
    Network,
    Runs,
    Variant,
)
from lasthop.publications.bbn8333.findings import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Entries of a legend that takes more than a row, and how many then stand side by side.
_LONG, _WIDE = 6, 4
_BIT_ERROR_RATE = "bit error rate / 1.56"
#: Colour and marker of what a sender is told, or of what sizes its window if it is no AIMD.
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


def _look(of: Case | Variant) -> tuple[str, str]:
    return LOOKS[of.eten if of.window == AIMD else of.window]


def panels(
    runs: Runs,
    of: Network,
    variants: Sequence[Variant],
    queries: Mapping[str, Mapping[str, Any]],
    ratios: Sequence[Mapping[str, Any]] = (),
) -> Figure:
    """Goodput over the bit error rate for one network, a panel for each query; published ratios
    are marked."""
    with pictures.figure(3.4 + 3 * len(queries), 3.9) as drawn:
        row: Sequence[Axes] = drawn.subplots(1, len(queries), sharey=True, squeeze=False)[0]
        scale, unit = _scale(runs, of)
        for panel, (title, query) in zip(row, queries.items(), strict=True):
            _variants(panel, runs, variants, scale, network=of, **query)
            panel.set_title(title)
            panel.set_xlabel(_BIT_ERROR_RATE)
            _published(panel, runs, of, query.get("errors"), ratios, scale)
        row[0].set_ylabel(f"goodput, {unit}")
        _legend(drawn, row)
    return drawn


def all_networks(runs: Runs, variants: Sequence[Variant], query: Mapping[str, Any]) -> Figure:
    """The same for every network, small, with one query."""
    return _matrix(
        runs,
        lambda panel, of, scale: _variants(panel, runs, variants, scale, network=of, **query),
    )


def _matrix(runs: Runs, draw: Callable[[Axes, Network, float], None]) -> Figure:
    """A panel for every network: rates down, delays across."""
    networks = runs.networks()
    rates = sorted({network.rate_bps for network in networks})
    delays = sorted({network.one_way_delay_s for network in networks})
    with pictures.figure(9.4, 8.4, {"font.size": 8, "axes.titlesize": 9}) as drawn:
        panels = drawn.subplots(len(rates), len(delays), squeeze=False)
        for row, rate in enumerate(rates):
            for column, delay in enumerate(delays):
                panel, of = panels[row][column], Network(rate, delay)
                scale, unit = _scale(runs, of)
                draw(panel, of, scale)
                panel.set_title(of.name)
                panel.set_ylabel(f"goodput, {unit}" if column == 0 else unit)
                if row == len(rates) - 1:
                    panel.set_xlabel(_BIT_ERROR_RATE)
        _legend(drawn, panels.flat)
    return drawn


def then_and_now(
    runs: Runs, networks: Sequence[Network], recoveries: Sequence[str], etens: Sequence[str]
) -> Figure:
    """The report's stack and today's, with errors in both directions."""
    with pictures.figure(9.4, 5.6) as drawn:
        panels = drawn.subplots(len(recoveries), len(networks), squeeze=False, sharey="col")
        for row, recovery in enumerate(recoveries):
            for column, of in enumerate(networks):
                panel = panels[row][column]
                scale, unit = _scale(runs, of)
                for eten in etens:
                    for profile, style in ((PERIOD, "-"), (MODERN, ":")):
                        _line(
                            panel,
                            runs,
                            runs.cases(
                                network=of,
                                recovery=recovery,
                                eten=eten,
                                errors="both",
                                profile=profile,
                            ),
                            scale,
                            label=f"{NAMES[eten]}, {profile}",
                            linestyle=style,
                        )
                panel.set_ylim(bottom=0)
                panel.set_title(f"{NAMES[recovery]}: {of.name}")
                panel.set_ylabel(f"goodput, {unit}" if column == 0 else unit)
        for panel in panels[-1]:
            panel.set_xlabel(_BIT_ERROR_RATE)
        _legend(drawn, panels.flat)
    return drawn


def factors(evidence: Evidence, ratios: Sequence[tuple[Case, float]]) -> Figure:
    """Each published ratio, what is measured, and what each single factor makes of it."""
    tried = [(v.name.removeprefix("an ").removeprefix("a "), v.id) for v in evidence.variations]
    names = ["as reproduced", *(name for name, _ in tried)]
    if evidence.modern is not None:
        names.append("today's stack (many factors)")
    with pictures.figure(10.2, 4.8, {"axes.titlesize": 9, "font.size": 8.5}) as drawn:
        panels: Sequence[Axes] = drawn.subplots(1, len(ratios), sharey=True)
        for panel, (case, published) in zip(panels, ratios, strict=True):
            gains = [evidence.runs.gain(case)]
            gains += [evidence.varied[id].gain(case) for _, id in tried]
            if evidence.modern is not None:
                gains.append(evidence.modern.gain(case.but(profile=MODERN)))
            lo, hi = evidence.runs.single_gain(case)
            panel.axvspan(lo, hi, color="#dfe9f3", linewidth=0)
            panel.axvline(gains[0].value, color=pictures.BLUE, linewidth=0.8)
            panel.axvline(published, color=pictures.ORANGE, linewidth=1.6)
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
            panel.set_title(f"{case.variant}\n{case.network.name}")
            panel.set_xlim(left=0)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        for panel in panels[1:]:
            panel.tick_params(left=False)
        drawn.supxlabel("goodput with ETEN over goodput without", fontsize=9)
    return drawn


def _legend(drawn: Figure, of: Iterable[Axes]) -> None:
    """One legend for all panels, below them; single points last.

    A long one has pairs of rows: for either recovery what is otherwise the same.
    """
    named = {
        label: handle
        for panel in of
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    labels = sorted(named, key=lambda label: not hasattr(named[label], "has_xerr"))
    rows = 1 if len(labels) < _LONG else 2 * math.ceil(len(labels) / (2 * _WIDE))
    drawn.legend(
        [named[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=math.ceil(len(labels) / rows),
    )


def _scale(runs: Runs, of: Network) -> tuple[float, str]:
    """Bits per second in a unit that suits the hop's largest goodput, and the unit."""
    most = max(runs.goodput(case).value for case in runs.cases(network=of))
    return (1e6, "Mb/s") if most >= 1e6 else (1e3, "kb/s")


def _positions(rates: Sequence[float]) -> dict[float, int]:
    """Where the error rates are drawn: decades evenly, and no errors at all to their left."""
    return {rate: i for i, rate in enumerate(sorted(rates))}


def _variants(
    panel: Axes, runs: Runs, variants: Sequence[Variant], scale: float, **query: Any
) -> None:
    sack = {variant.eten for variant in variants if variant.recovery == "sack"}
    for variant in variants:
        cases = runs.cases(**variant.keys, **query)
        if not cases:
            continue
        # Reno beside SACK that is told the same; what was built on Reno is not a variant of it.
        hollow = variant.recovery == "reno" and variant.window == AIMD and variant.eten in sack
        style = "--" if hollow else "-"
        _line(panel, runs, cases, scale, label=variant.name, linestyle=style)
    panel.set_ylim(bottom=0)


def _line(
    panel: Axes, runs: Runs, cases: Sequence[Case], scale: float, *, label: str, linestyle: str
) -> None:
    cases = sorted(cases, key=lambda case: case.bit_error_rate)
    positions = _positions([case.bit_error_rate for case in cases])
    goodputs = [runs.goodput(case) for case in cases]
    colour, marker = _look(cases[0])
    panel.errorbar(
        list(positions.values()),
        [goodput.value / scale for goodput in goodputs],
        yerr=[
            [(goodput.value - goodput.lo) / scale for goodput in goodputs],
            [(goodput.hi - goodput.value) / scale for goodput in goodputs],
        ],
        color=colour,
        label=label,
        linestyle=linestyle,
        marker=marker,
        markersize=4.5,
        markerfacecolor=colour if linestyle == "-" else "white",
        elinewidth=1,
        capsize=2,
        capthick=1,
        zorder=3 if linestyle == "-" else 2,
    )
    # All are 1.56 times a power of ten, which the axis's label says once.
    labels = [units.power_of_ten(rate).rpartition(units.TIMES)[2] for rate in positions]
    panel.set_xticks(list(positions.values()), labels)


def _published(
    panel: Axes,
    runs: Runs,
    of: Network,
    errors: str | None,
    ratios: Sequence[Mapping[str, Any]],
    scale: float,
) -> None:
    """Published ratios, times the goodput that is measured without notification."""
    for ratio in ratios:
        case = Case(**ratio["case"], profile=PERIOD)
        if case.network != of or case.errors != errors:
            continue
        plain = runs.goodput(case.but(eten=NONE)).value
        positions = _positions(runs.error_rates(of))
        colour, _ = _look(case)
        panel.plot(
            [positions[case.bit_error_rate] + 0.13],
            [ratio["value"] * plain / scale],
            marker="*",
            markersize=11,
            linestyle="none",
            color=colour,
            markerfacecolor=colour if case.recovery == "sack" else "white",
            markeredgewidth=0.9,
            label="published ratio",
        )
