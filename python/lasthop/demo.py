"""The demonstration: what a noisy satellite hop does to TCP, and what notification wins back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from lasthop import lab, library, pictures, terminal, units
from lasthop.publications.study.published import published
from lasthop.results import Sweep
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, ratio_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lasthop.results import Result

_ERRORS, _ETEN = "links.0.errors.bit", "flows.0.tcp.eten"
_GOODPUT = "goodput_bps"
_NAMES = {"none": "SACK", "backward": "SACK + ETEN", "oracle": "SACK + oracle"}
_STYLES = {"none": "", "backward": "blue", "oracle": "yellow"}
_COLOURS = {"none": pictures.BLACK, "backward": pictures.BLUE, "oracle": pictures.ORANGE}
_MARKERS = {"none": "s", "backward": "o", "oracle": "^"}
#: TCP of today in its place, with nothing else changed.
_TODAY = {"profile": "modern", "flows.0.tcp": {}, _ETEN: "none"}
#: The published cell nearest to the demo's: its delay, at a higher rate.
_NEAREST = {"recovery": "sack", "rate_bps": 100e6, "one_way_delay_s": 0.32}


def show(picture: Path, seeds: int | None, *, force: bool = False) -> None:
    """Runs the demo's sweep; prints a table and writes a picture."""
    scenario = Scenario.load("demo")
    with terminal.progress("a noisy satellite hop") as progress:
        sweep = lab.sweep(scenario, seeds=seeds, progress=progress)
        today = lab.sweep(scenario.set(_TODAY), seeds=seeds, progress=progress)
        traces = {eten: lab.run(scenario, settings={_ETEN: eten}, trace=True) for eten in _NAMES}
    terminal.out().print(_table(sweep))
    terminal.say(
        "This is TCP as it was in 2001. Plain TCP of today (CUBIC, RACK-TLP, an automatic receive "
        "window) on"
        f" the same path: {_rates(today)}.\n"
    )
    terminal.say(
        "[dim]Backward ETEN: the far end of the link reports each corrupted packet to its sender in"
        " a small packet, which may get lost, too. Oracle: the sender knows at once; this cannot be"
        " built. A window of 20 segments allows 144 kb/s at most.\n"
        "Published: BBN Technical Report 8333 (2002), §3.3, for 100 Mb/s and the same delay, one"
        " run a point; it finds the same for 1.5 Mb/s, since the delay decides. To reproduce all"
        " of it: [/][bold]lasthop reproduce bbn8333/sim1[/]"
    )
    terminal.written(pictures.save(_picture(sweep, traces), picture, force=force), "picture")


def _rates(sweep: Sweep) -> str:
    """Goodput at each bit error rate, in words."""
    found = sweep.estimates(_GOODPUT, [_ERRORS])
    return ", ".join(
        f"{goodput.value / 1e3:.0f} kb/s at {errors:g}" for (errors,), goodput in found.items()
    )


def _table(sweep: Sweep) -> Table:
    goodputs, gains = sweep.estimates(_GOODPUT, [_ERRORS, _ETEN]), _gains(sweep)
    largest = max(goodput.value for goodput in goodputs.values())
    shown = terminal.table(
        "Goodput of one TCP transfer over a satellite hop (1.5 Mb/s, 320 ms one way)",
        f"mean of {max(goodput.n for goodput in goodputs.values())} runs of 120 s, with the 95 %"
        " confidence interval; where there is none, all runs are alike",
    )
    shown.add_column("bit errors", no_wrap=True)
    shown.add_column("", no_wrap=True)
    shown.add_column("goodput", justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    shown.add_column("gain", justify="right", no_wrap=True)
    shown.add_column("published gain", style="italic magenta", no_wrap=True)
    # What a terminal of 80 columns has left, or more.
    bar = max(10, min(terminal.out().width - 70, 28))
    before = None
    for (errors, eten), goodput in goodputs.items():
        if before is not None and errors != before:
            shown.add_row()
        gain = gains.get((errors, eten))
        shown.add_row(
            "" if errors == before else units.power_of_ten(errors) if errors else "none",
            _NAMES[eten],
            terminal.rate(goodput),
            terminal.bar(goodput.value / largest, bar, _STYLES[eten]),
            "" if gain is None else f"{units.significant(gain.value, 2)} {units.TIMES}",
            _published(errors, eten),
        )
        before = errors
    return shown


def _gains(sweep: Sweep) -> dict[tuple[float, str], Estimate]:
    """Goodput over that of plain SACK, by bit error rate and kind of notification."""
    runs: dict[tuple[float, str], list[float]] = {}
    for errors, eten, goodput in sweep.rows.select(_ERRORS, _ETEN, _GOODPUT).iter_rows():
        runs.setdefault((errors, eten), []).append(goodput)
    return {
        (errors, eten): ratio_interval(values, runs[errors, "none"])
        for (errors, eten), values in runs.items()
        if eten != "none"
    }


def _published(errors: float, eten: str) -> str:
    """What bbn8333 says of the nearest cell, if anything."""
    wanted = {**_NEAREST, "bit_error_rate": errors, "eten": eten}
    for stated in library.published("bbn8333")["sim1"]["statement"]:
        case: dict[str, Any] = stated.get("case", {})
        if wanted.items() <= case.items():
            return f"{published(stated).words} {units.TIMES}"
    return ""


def _picture(sweep: Sweep, traces: dict[str, Result]) -> Figure:
    goodputs = sweep.estimates(_GOODPUT, [_ERRORS, _ETEN])
    rates = list(dict.fromkeys(errors for errors, _ in goodputs))
    with pictures.figure(10, 6.6) as drawn:
        grid = drawn.add_gridspec(len(_NAMES), 2, width_ratios=(1, 1.15))
        left = drawn.add_subplot(grid[:, 0])
        right = [drawn.add_subplot(grid[row, 1]) for row in range(len(_NAMES))]
        for eten, name in _NAMES.items():
            points = [goodputs[errors, eten] for errors in rates]
            left.errorbar(
                range(len(rates)),
                [point.value / 1e3 for point in points],
                yerr=[point.half / 1e3 for point in points],
                color=_COLOURS[eten],
                marker=_MARKERS[eten],
                markersize=5,
                capsize=3,
                label=name,
            )
        left.set_xticks(
            range(len(rates)), [units.power_of_ten(rate) if rate else "none" for rate in rates]
        )
        left.set_ylim(bottom=0)
        left.set_xlabel("bit error rate")
        left.set_ylabel("goodput, kb/s")
        left.set_title("What the receiver gets")
        left.legend(loc="lower left")
        for (eten, result), panel in zip(traces.items(), right, strict=True):
            rows = result.series()
            panel.step(
                rows["t_s"].to_numpy(),
                rows["cwnd_bytes"].to_numpy() / 536,
                where="post",
                color=_COLOURS[eten],
                linewidth=1.2,
            )
            panel.set_xlim(0, 120)
            panel.set_ylim(bottom=0)
            panel.set_ylabel("segments")
            panel.set_title(f"Congestion window: {_NAMES[eten]}")
        worst = units.power_of_ten(rates[-1])
        right[-1].set_xlabel(f"time, s (one run at {worst})")
    return drawn
