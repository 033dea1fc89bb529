"""Which remedies would help on a path, and by how much.

Everything that there is gets simulated, each remedy by itself beside the path as it is, with the
same errors; nothing is looked up. What comes to the engine's tables comes here by itself: settings
of the flow's TCP, and boxes in the nodes between its ends.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from lasthop import hops, lab, terminal, units
from lasthop.errors import UserError, unknown
from lasthop.results import Progress
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, mean_interval, ratio_interval
from lasthop.variants import ATTACHMENTS, BEFORE, FLOW, HOST, Change, document, is_hidden, variants

SEEDS = 20
#: A gain below this is not worth a change.
WORTH = 1.05
#: The most nodes that are named in a sentence.
_MOST_NAMED = 4
_BOXES = "boxes = ["


@dataclass(frozen=True)
class Path:
    """A path as engineers know it: TOML's quantities for rate, delay and queue.

    >>> Path(rate="2 Mbit/s", delay="300 ms", bit_errors=1e-6)
    """

    rate: str
    #: One way.
    delay: str
    #: The share of packets that vanish: one by one, or `burst` in a row on average.
    loss: float = 0.0
    burst: float | None = None
    #: The probability that a bit is damaged. The end of the link detects it and can report it.
    bit_errors: float = 0.0
    #: How long the path is away, on average, and how long it is there in between.
    outage: str | None = None
    between_outages: str = "60 s"
    #: What the queue holds; else what the path holds in a round trip, and 20 packets at least.
    queue: str | None = None
    #: The transfer; without, one that never ends.
    size: str | None = None

    def scenario(self) -> Scenario:
        """The path with one transfer, and TCP as today's RFCs have it."""
        probe = Scenario.from_toml(self._text(duration_s=60, queue="1 packet"), str(self))
        probe.outline()  # Errors in the quantities are reported before they are used.
        rate_bps, delay_s = units.parse(self.rate), units.parse(self.delay)
        in_flight = rate_bps * 2 * delay_s / 8 / 1500
        queue = self.queue or f"{max(20, round(in_flight))} packets"
        # A hundred round trips, and thousands of packets if that does not take for ever.
        packets_s = 2000 * 1500 * 8 / rate_bps
        duration_s = max(30.0, 100 * 2 * delay_s, min(packets_s, 300.0))
        if self.outage:
            cycle_s = units.parse(self.outage) + units.parse(self.between_outages)
            duration_s = max(duration_s, 10 * cycle_s)
        if self.size is not None:
            duration_s = 3600.0  # It ends before, unless nothing gets through.
        return Scenario.from_toml(self._text(duration_s=round(duration_s), queue=queue), str(self))

    def __str__(self) -> str:
        words = [f"{self.rate}, {self.delay} one way"]
        if self.loss:
            rows = f" in rows of {self.burst:g}" if self.burst else ""
            words.append(f"{self.loss:.3g} of the packets lost{rows}")
        if self.bit_errors:
            words.append(f"bit errors {units.power_of_ten(self.bit_errors)}")
        if self.outage:
            words.append(f"away for {self.outage} after {self.between_outages}")
        if self.size:
            words.append(f"a transfer of {self.size}")
        return ", ".join(words)

    def _text(self, *, duration_s: float, queue: str) -> str:
        if self.burst is None:
            errors = f"{{ bit = {self.bit_errors!r}, packet = {self.loss!r} }}"
        elif self.bit_errors:
            raise UserError("bursts are of lost packets: expected no bit errors beside them")
        else:
            errors = f"{{ gilbert-elliott = {{ loss = {self.loss!r}, burst = {self.burst!r} }} }}"
        outages = (
            f'outages = {{ mean_up = "{self.between_outages}", mean_down = "{self.outage}" }}'
            if self.outage
            else ""
        )
        traffic = f'{{ size = "{self.size}" }}' if self.size else '"bulk"'
        return f"""\
title    = "{self}"
duration = "{duration_s} s"

[nodes]
sender   = {{}}
receiver = {{}}

[[links]]
between = ["sender", "receiver"]
rate    = "{self.rate}"
delay   = "{self.delay}"
queue   = "{queue}"
errors  = {errors}
{outages}

[[flows]]
name    = "transfer"
from    = "sender"
to      = "receiver"
traffic = {traffic}
tcp     = {{ receive_window = "16 MB" }}
"""


@dataclass(frozen=True)
class Remedy:
    """One remedy on a path."""

    #: What the literature calls it, if its settings do not say so.
    name: str | None
    #: Its settings: in the flow's TCP, or in nodes.
    changes: tuple[Change, ...]
    #: How many times better than the path as it is, over pairs of runs.
    gain: Estimate
    #: With it, in bits per second or (of a transfer that ends) in seconds.
    value: Estimate
    #: Who must change.
    needs: tuple[str, ...]
    #: False for what shows how much there is to be won, and cannot be built.
    buildable: bool

    @property
    def setting(self) -> str:
        """Its settings in words of TOML, those of nodes with the names of these."""
        settings = _settings(self.changes)
        return f"{self.name} ({settings})" if self.name else settings

    @property
    def verdict(self) -> str:
        """One of "helps", "harms", "changes nothing" and "makes no difference"."""
        if self.gain.lo == self.gain.hi == 1.0:
            return "changes nothing"
        if self.gain.lo > 1.0 and self.gain.value >= WORTH:
            return "helps"
        if self.gain.hi < 1.0 and self.gain.value <= 1 / WORTH:
            return "harms"
        return "makes no difference"


@dataclass(frozen=True)
class Advice:
    """What there is to say about a path."""

    title: str
    #: "goodput_bps", or "completed_s" where transfers end.
    metric: str
    #: The TCP that the remedies are compared with.
    tcp: str
    #: The path as it is.
    today: Estimate
    #: The share of the slowest link's rate that is used; None where transfers end.
    used: float | None
    #: The best first.
    remedies: Sequence[Remedy]
    #: Whether IPsec hides the flow's TCP headers. Remedies that read them are not tried then.
    hidden: bool = False

    @property
    def helping(self) -> list[Remedy]:
        """Those that help and can be had."""
        return [r for r in self.remedies if r.verdict == "helps" and r.buildable]

    @property
    def bound(self) -> Remedy | None:
        """The best of what cannot be built, if it would help."""
        return next((r for r in self.remedies if r.verdict == "helps" and not r.buildable), None)

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "title": self.title,
            "metric": self.metric,
            "tcp": self.tcp,
            "today": _numbers(self.today),
            "used": self.used,
            "hidden": self.hidden,
            "remedies": [
                {
                    "name": remedy.name,
                    "settings": [
                        {
                            "place": change.place,
                            "nodes": list(change.nodes),
                            "setting": tomllib.loads(change.setting),
                        }
                        for change in remedy.changes
                    ],
                    "verdict": remedy.verdict,
                    "gain": _numbers(remedy.gain),
                    "value": _numbers(remedy.value),
                    "needs": list(remedy.needs),
                    "buildable": remedy.buildable,
                }
                for remedy in self.remedies
            ],
        }


def advise(
    path: Path | Scenario | str,
    *,
    settings: Mapping[str, object] | None = None,
    flow: str | None = None,
    seeds: int = SEEDS,
    threads: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Simulates every remedy on a path, or for a flow of a scenario (else its only one).

    Gains are ratios over pairs of runs with the same errors, with intervals of 95 %.
    """
    if seeds < 2:
        raise UserError("one run says nothing about the spread: expected 2 seeds or more")
    if isinstance(path, Path):
        scenario = path.scenario()
    else:
        scenario = path if isinstance(path, Scenario) else Scenario.load(path)
    scenario = scenario.set(settings) if settings else scenario
    outline = scenario.outline()
    if outline.points > 1:
        raise UserError(
            f"advice is for one path, and this scenario has {outline.points}:"
            " set the keys that it sweeps, such as --set links.0.errors.bit=1e-6"
        )
    index = _flow(outline.flows, flow)
    name = outline.flows[index]
    tried = variants(scenario, index)
    first = lab.sweep(scenario, seeds=seeds, threads=threads)
    if all(len(set(values)) == 1 for values in _column(first.rows, name).values()):
        seeds = 2  # Chance has no part in it: more runs would all be the same.
    # Some are compared with the same path at another time.
    others: list[Scenario] = []
    others += (v.today for v in tried if v.today not in (scenario, *others))
    known = [scenario, *others]
    scenarios = [*known, *(variant.scenario for variant in tried)]
    sweeps = lab.sweeps(scenarios, seeds=seeds, threads=threads, progress=progress)
    columns = [_column(sweep.rows, name) for sweep in sweeps]
    # A transfer that does not end in time has only its goodput.
    ends = all(value is not None for column in columns for value in column["completed_s"])
    metric = "completed_s" if ends else "goodput_bps"
    values = [[float(v) for v in column[metric] if v is not None] for column in columns]
    found = [
        Remedy(
            name=variant.remedy["name"],
            changes=variant.changes,
            gain=_gain(own, values[known.index(variant.today)], faster_is_less=ends),
            value=mean_interval(own),
            needs=tuple(variant.remedy["needs"]),
            buildable=variant.remedy["buildable"],
        )
        for variant, own in zip(tried, values[len(known) :], strict=True)
    ]
    found.sort(key=lambda remedy: -remedy.gain.value)
    rate = hops.slowest(document(scenario), index)
    mean = mean_interval(values[0])
    used = None if ends or rate is None else mean.value / rate
    tcp, hidden = _tcp(scenario, index), is_hidden(scenario, index)
    return Advice(outline.title, metric, tcp, mean, used, found, hidden)


def _gain(values: list[float], today: list[float], *, faster_is_less: bool) -> Estimate:
    if values == today:
        return Estimate(1.0, 1.0, 1.0, len(values))
    if min(sum(values), sum(today)) <= 0:
        raise UserError("nothing gets through on this path: there is nothing to compare")
    return ratio_interval(today, values) if faster_is_less else ratio_interval(values, today)


def _flow(flows: list[str], wanted: str | None) -> int:
    if wanted is None:
        if len(flows) != 1:
            raise UserError(f"which flow? There are {', '.join(flows)}: give one with --flow")
        return 0
    if wanted not in flows:
        raise unknown("flow", wanted, flows)
    return flows.index(wanted)


def _column(rows: Any, flow: str) -> dict[str, list[float | None]]:
    own = rows.filter(rows["flow"] == flow)
    return {name: own[name].to_list() for name in ("goodput_bps", "completed_s")}


#: What the profiles set, as far as a remedy may replace it.
_PROFILES: dict[str, dict[str, Any]] = {
    "modern": {
        "congestion": "cubic",
        "hystart": True,
        "recovery": "rack",
        "reduction": "prr",
        "frto": True,
    },
    "ns2-2001": {"congestion": "aimd", "recovery": "sack"},
    "ns2-2007": {"congestion": "aimd", "recovery": "sack"},
    "sunos-1994": {"congestion": "aimd", "recovery": "tahoe"},
}
_WORDS = {
    "cubic": "CUBIC",
    "aimd": "AIMD",
    "bbr": "BBR",
    "rack": "RACK-TLP",
    "sack": "SACK",
    "newreno": "NewReno",
    "reno": "Reno",
    "tahoe": "Tahoe",
}


def _tcp(scenario: Scenario, flow: int) -> str:
    """Congestion control and recovery of a flow, in words."""
    said = document(scenario)
    own = said["flows"][flow]
    profile = own.get("profile", said.get("profile", "modern"))
    has = {**_PROFILES[profile], **own.get("tcp", {})}
    parts = [_WORDS.get(has["congestion"], has["congestion"])]
    if has.get("hystart") and has["congestion"] != "bbr":
        parts[0] += " with HyStart++"
    parts.append(_WORDS.get(has["recovery"], has["recovery"]))
    parts += ["F-RTO"] * bool(has.get("frto")) + ["PRR"] * (has.get("reduction") == "prr")
    return f"{', '.join(parts)} (profile {profile})"


def _numbers(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "lo": estimate.lo, "hi": estimate.hi, "n": estimate.n}


# --- for people ---

_NEEDS = {
    "sender": "the sender",
    "receiver": "the receiver",
    "middlebox": "a node on the path",
    "host agent": "the host behind the hop",
}
_COSTS = {
    "host agent": "an agent in the host",
    "hop transport": "it ends the host's TCP; the hop must be the host's own, for its transport"
    " has no congestion control",
    "both directions": "both directions must pass there",
    "clear headers": "TCP headers are read: not with IPsec",
    "split connection": "acknowledgments no longer come from the receiver",
    "warning": "the host is warned before it moves",
    "ipsec": "IPsec in transport mode between the hosts, over IPv6",
}


def show(advice: Advice) -> None:
    """Prints advice as a table and a few sentences."""
    show_value = _rate if advice.metric == "goodput_bps" else _time
    used = "" if advice.used is None else f", {advice.used:.0%} of the path's rate"
    terminal.out().print(
        f"[bold]{escape(advice.title)}[/]\n\nas it is, with {escape(advice.tcp)}:"
        f" {show_value(advice.today)}{used}"
    )
    if advice.helping:
        terminal.out().print(_table(advice, show_value))
    else:
        terminal.out().print("[bold]Nothing here would help.[/]")
    if advice.hidden:
        terminal.out().print(
            "IPsec hides this flow's TCP headers: what reads them on the path was not tried."
        )
    bound = advice.bound
    if bound is not None:
        terminal.out().print(
            f"At most {_times(bound.gain)} could be won by knowing every error at once"
            f" ({bound.setting}), which cannot be built."
        )
    for verdict, words in (
        ("makes no difference", "Makes no difference worth a change"),
        ("changes nothing", "Changes nothing (in use already, or there is nothing to do for it)"),
        ("harms", "Makes it worse"),
    ):
        found = [r for r in advice.remedies if r.verdict == verdict and r.buildable]
        if found:
            settings = ", ".join(
                r.setting + (f" ({_times(r.gain)})" if verdict == "harms" else "") for r in found
            )
            terminal.out().print(f"[dim]{words}: {escape(settings)}.[/]")
    terminal.say(
        "[dim]Each remedy alone, for one flow. What comes after the name of a node goes into that"
        " node's table, a box into its `boxes`; what comes after `flow` into the flow's table, and"
        " all else into the flow's `tcp` table. Means of"
        f" {advice.today.n} runs with the same errors, gains with 95 % confidence.[/]"
    )


def _table(advice: Advice, show_value: Callable[[Estimate], str]) -> Table:
    shown = terminal.table("Would help")
    shown.add_column("gain", no_wrap=True)
    shown.add_column("goodput" if show_value is _rate else "time", no_wrap=True, justify="right")
    # In one column, so that both have room in a narrow terminal.
    shown.add_column("setting, and what takes a change", overflow="fold")
    for remedy in advice.helping:
        who = _listed([_who(need, remedy.changes) for need in remedy.needs if need in _NEEDS])
        costs = "; ".join(words for need, words in _COSTS.items() if need in remedy.needs)
        needs = f"{who} ({costs})" if costs else who
        shown.add_row(
            _times(remedy.gain),
            show_value(remedy.value),
            f"{escape(remedy.setting)}\n[dim]{needs}[/]",
        )
    return shown


def _who(need: str, changes: Sequence[Change]) -> str:
    """The party that must change, by the names of its nodes."""
    places = {"middlebox": (BEFORE, ATTACHMENTS), "host agent": (HOST,)}.get(need, ())
    nodes = [node for change in changes if change.place in places for node in change.nodes]
    if not nodes:
        return _NEEDS[need]
    if nodes == [""]:
        return "a gateway before the link"
    if need == "host agent":
        return f"the host {escape(_named(nodes))}"
    return f"the node{'s' * (len(nodes) > 1)} {escape(_named(nodes))}"


def _named(nodes: Sequence[str]) -> str:
    named = ["a gateway" if node == "" else node for node in nodes]
    if len(named) > _MOST_NAMED:
        named = [*named[: _MOST_NAMED - 1], f"{len(named) - _MOST_NAMED + 1} more"]
    return _listed(named)


def _listed(parts: Sequence[str]) -> str:
    """A list in a sentence; a comma before its "and" if a part has an "and" of its own."""
    *first, last = parts
    comma = "," * any(" and " in part for part in parts)
    return f"{', '.join(first)}{comma} and {last}" if first else last


def _settings(changes: Sequence[Change]) -> str:
    """Settings in a line, each with the nodes that have it; of several boxes, each in braces."""
    lines = []
    for change in changes:
        line = change.setting.replace("\n", ", ")
        if line.startswith(_BOXES):
            line = line.removeprefix(_BOXES).removesuffix("]")
            if len(tomllib.loads(change.setting)["boxes"]) == 1:
                line = line.removeprefix("{ ").removesuffix(" }")
        where = _named(change.nodes) if change.nodes else "flow" * (change.place == FLOW)
        lines.append(f"{where}: {line}" if where else line)
    return "; ".join(lines)


def _times(gain: Estimate) -> str:
    value = f"{units.significant(gain.value, 3)} {units.TIMES}"
    if not gain.half:
        return value
    return f"{value} ({units.significant(gain.lo, 3)} to {units.significant(gain.hi, 3)})"


def _rate(value: Estimate) -> str:
    return terminal.rate(value)


def _time(value: Estimate) -> str:
    return f"{terminal.number(value)} s"
