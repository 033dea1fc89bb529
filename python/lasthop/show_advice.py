"""Advice for people: what limits a flow, what would help, and who would have to change what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from lasthop import terminal, units
from lasthop.advice import Advice
from lasthop.remedy import Goal, Remedy
from lasthop.stats import Estimate

#: The most parties that are named as those who could shorten the round trip.
_MOST_WAYS = 2
#: The most remedies of a table.
_MOST_SHOWN = 8
_AIMS = {
    "goodput_bps": "raise the goodput",
    "completed_s": "shorten the transfer",
    "rtt_s": "shorten the round trip",
}
_HEADS = {"goodput_bps": "goodput", "completed_s": "time", "rtt_s": "goodput"}


def show(advice: Advice) -> None:
    """Prints advice: sentences and tables that fit 80 columns."""
    out = terminal.out().print
    out(f"[bold]{escape(advice.title)}[/]\n\ntoday, with {escape(advice.tcp)}:")
    out(_today(advice))
    if advice.is_bloated and advice.goal is not Goal.LATENCY:
        out(_bloat(advice))
    if advice.limits:
        out(_limits(advice))
    else:
        out("\nNo cause that is known takes 5 % or more.")
    if advice.helping:
        out(_best(advice))
        out("\n[bold]What would help[/]")
        for part in _remedies(advice, advice.helping[:_MOST_SHOWN]):
            out(part)
        if rest := advice.helping[_MOST_SHOWN:]:
            out(f"\n[dim]Helps less: {_named(rest, gains=True)}.[/]")
    else:
        out(f"\n[bold]Nothing here would {_AIMS[advice.metric]}.[/]")
    if advice.hidden:
        out("\nIPsec hides this flow's TCP headers: what reads them on the path was not tried.")
    if advice.oracle is not None:
        out(
            "\nThe same TCP with an oracle that knows every error at once, which cannot be built:"
            f" {_times(advice.oracle.gain)}. What gains more changes more than the reaction to"
            " errors."
        )
    for verdict, words in (
        ("costs goodput", "Shortens the round trip, but costs more than 10 % of the goodput"),
        ("undecided", "Undecided: the interval reaches beyond 5 %; more --seeds narrow it"),
        ("makes no difference", "Makes no difference of 5 % or more"),
        ("changes nothing", "Changes nothing (in use already, or there is nothing to do for it)"),
        ("harms", "Makes it worse"),
    ):
        found = [r for r in advice.remedies if r.verdict == verdict and r.buildable]
        if found:
            gains = verdict in ("costs goodput", "undecided", "harms")
            out(f"\n[dim]{words}: {_named(found, gains=gains)}.[/]")
    terminal.say(
        "\n[dim]Each remedy alone, for one flow, with its defaults. Settings go into the flow's"
        " `tcp` table; after `flow` into the flow's own, after a direction of a link into that of"
        f" the link, after a node into the node's. Means of {advice.today.n} pairs of runs with"
        " the same errors, on paths within 3 % of this one; intervals of 95 %.[/]"
    )


def _today(advice: Advice) -> str:
    is_rate = advice.metric == "goodput_bps"
    show = terminal.rate if is_rate else _seconds
    what = "round trip under load " if advice.goal is Goal.LATENCY else ""
    parts = [f"{what}{show(advice.today)}"]
    if advice.used is not None:
        parts.append(f"{_percent(advice.used)} of the path's rate")
    if advice.rtt is not None and advice.rtt_min is not None:
        empty = f"{_time(advice.rtt_min)} with empty queues"
        loaded = f"round trip under load {_time(advice.rtt)} ({empty})"
        parts.append(loaded if advice.goal is not Goal.LATENCY else empty)
    return ", ".join(parts)


def _bloat(advice: Advice) -> str:
    """That the queue is the problem, and what would shorten it."""
    assert advice.rtt is not None
    assert advice.rtt_min is not None
    times = units.significant(advice.rtt.value / advice.rtt_min.value, 2)
    words = (
        f"\n[bold]The delay is a problem (bufferbloat):[/] the queue holds more than the path. The"
        f" round trip under load is {times} {units.TIMES} that of the empty path."
    )
    # The shortest round trip of each party that would have to change, those that ask least first.
    parties: dict[str, Remedy] = {}
    for remedy in sorted(advice.shortening, key=lambda of: of.effort):
        if not remedy.research:
            parties.setdefault(remedy.who, remedy)
    ways = [
        f"\n    {_time(remedy.rtt)} by {escape(remedy.short)} ({who})"
        for who, remedy in parties.items()
        if remedy.rtt is not None
    ]
    if ways:
        words += " It would be" + ",".join(ways[:_MOST_WAYS]) + "\nand --goal latency says more."
    return words


def _limits(advice: Advice) -> Table:
    shown = terminal.table("\nWhat limits it today")
    shown.add_column("share", no_wrap=True, justify="right")
    shown.add_column("without", no_wrap=True, justify="right")
    shown.add_column("cause (and what is instead)", overflow="fold")
    for limit in advice.limits:
        if limit.value is None:
            words = "rate (sending over the slowest link takes this share of the time)"
        else:
            words = f"{limit.cause} ({limit.removed})"
        value = "" if limit.value is None else _value(advice, limit.value)
        shown.add_row(_percent(limit.share.value), value, words)
    return shown


def _best(advice: Advice) -> str:
    best, easiest = advice.best, advice.easiest
    assert best is not None
    assert easiest is not None
    words = f"\nBest: {escape(best.short)}, {_times(best.gain)}: {best.who}."
    if easiest is not best:
        words += (
            f" Least to change: {escape(easiest.short)}, {_times(easiest.gain)}: {easiest.who}."
        )
    return words


def _remedies(advice: Advice, remedies: Sequence[Remedy]) -> Iterator[RenderableType]:
    """A line of numbers for each remedy, with who has to change what; below it the settings and
    what else has to be known, over the whole width."""
    latency = advice.goal is Goal.LATENCY
    heads = (_HEADS[advice.metric], "RTT", "who would have to change what")
    yield _line("gain", *heads, style="bold")
    for remedy in remedies:
        value = _percent(remedy.goodput_gain.value) if latency else _value(advice, remedy.value)
        rtt = "" if remedy.rtt is None else _time(remedy.rtt)
        yield _line(_times(remedy.gain), value, rtt, remedy.who)
        yield Padding("\n".join(map(escape, remedy.lines)), (0, 0, 0, 4), expand=False)
        if remedy.marks:
            marks = "\n".join(f"- {words}" for words in remedy.marks)
            yield Padding(marks, (0, 0, 0, 4), style="dim", expand=False)


def _line(gain: str, value: str, rtt: str, who: str, style: str = "") -> Table:
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=22, no_wrap=True)
    line.add_column(width=9, no_wrap=True, justify="right")
    line.add_column(width=7, no_wrap=True, justify="right")
    line.add_column(overflow="fold")
    line.add_row(gain, value, rtt, who, style=style)
    return line


def _named(remedies: Sequence[Remedy], *, gains: bool = False) -> str:
    """Remedies in a sentence."""
    named = [
        escape(of.short) + f" ({units.significant(of.gain.value, 3)} {units.TIMES})" * gains
        for of in remedies
    ]
    return ", ".join(dict.fromkeys(named))


def _value(advice: Advice, value: Estimate) -> str:
    if advice.metric == "goodput_bps":
        return units.rate(value.value)
    return _time(value)


def _times(gain: Estimate) -> str:
    value = f"{units.significant(gain.value, 3)} {units.TIMES}"
    if not gain.half:
        return value
    return f"{value} ({units.significant(gain.lo, 3)} to {units.significant(gain.hi, 3)})"


def _seconds(value: Estimate) -> str:
    return f"{terminal.number(value)} s"


def _time(value: Estimate) -> str:
    """With three digits."""
    return units.duration(float(f"{value.value:.3g}"))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
