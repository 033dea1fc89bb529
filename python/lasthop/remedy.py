"""What limits a flow, and a remedy with what came of it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lasthop import toml
from lasthop.stats import Estimate
from lasthop.variants import FLOW, LINK, TCP, Change

#: A gain below this is not worth a change.
WORTH = 1.05
#: The share of today's goodput that is left, at the least, by what shortens the round trip.
KEPT = 0.9
#: Of needs, who must change.
PARTIES = frozenset({"sender", "receiver", "middlebox", "host agent"})
#: The others: what else has to be known of a remedy before it is chosen.
MARKS = {
    "clear headers": "needs clear headers: not with IPsec",
    "both directions": "both directions must pass there",
    "split connection": "ends the connection: an acknowledgment no longer means that the receiver"
    " has the data",
    "hop transport": "the hop must be the host's own: its transport has no congestion control",
    "warning": "the host must be warned before it moves",
    "ipsec": "IPsec in transport mode between the hosts, over IPv6",
}
_RESEARCH = "research-only: no operating system has it, and no mode of lasthopd"
#: The most nodes that are named in a line.
_MOST_NAMED = 4


class Goal(StrEnum):
    """What is to become better."""

    GOODPUT = "goodput"
    LATENCY = "latency"
    PAGE = "page"


@dataclass(frozen=True)
class Limit:
    """What limits a flow today."""

    #: One or two words; "rate" is what the rate of the slowest link takes.
    cause: str
    #: What is otherwise without it.
    removed: str
    #: The share of today's time (for a byte, or for a transfer) or round trip that goes with it.
    share: Estimate
    #: Without it; None of the rate.
    value: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "cause": self.cause,
            "removed": self.removed,
            "share": numbers(self.share),
            "value": numbers(self.value),
        }


@dataclass(frozen=True)
class Remedy:
    """One remedy on a path."""

    #: What the literature calls it, if its settings do not say so.
    name: str | None
    #: Its settings: in the flow's TCP, in nodes, or in a queue.
    changes: tuple[Change, ...]
    #: How many times better than the path as it is, over pairs of runs.
    gain: Estimate
    #: With it, in bits per second or (of a transfer that ends, and of round trips) in seconds.
    value: Estimate
    #: Who must change, and what else it takes.
    needs: tuple[str, ...]
    #: False for what shows how much knowing every error at once would gain, and cannot be built.
    buildable: bool
    #: How the parties change: by a "setting" of operating systems, or by other "code".
    means: str
    #: The modes of `lasthopd` that do what nodes or agents have to do.
    modes: tuple[str, ...]
    #: No operating system has it, and no mode of `lasthopd`.
    research: bool
    #: The round trip under load, in seconds, and how many times shorter it is than today; None if
    #: nothing was acknowledged in some run.
    rtt: Estimate | None
    rtt_gain: Estimate | None
    #: Its goodput over that of today.
    goodput_gain: Estimate
    goal: Goal = Goal.GOODPUT

    @property
    def verdict(self) -> str:
        """What the interval of the gain says.

        "helps": it is above `WORTH`; "harms": likewise below the inverse; "makes no difference": it
        is in between; "undecided": it reaches beyond one of them; "changes nothing": all runs are
        the same. For the goal latency "costs goodput" is what helps, but leaves less than `KEPT`.
        """
        if self.gain.lo == self.gain.hi == 1.0:
            return "changes nothing"
        if self.gain.lo >= WORTH:
            costs = self.goal is Goal.LATENCY and self.goodput_gain.value < KEPT
            return "costs goodput" if costs else "helps"
        if self.gain.hi <= 1 / WORTH:
            return "harms"
        if self.gain.lo > 1 / WORTH and self.gain.hi < WORTH:
            return "makes no difference"
        return "undecided"

    @property
    def shortens(self) -> bool:
        """Whether it shortens the round trip under load, and leaves the goodput."""
        helps = self.rtt_gain is not None and self.rtt_gain.lo >= WORTH
        return helps and self.goodput_gain.value >= KEPT

    @property
    def effort(self) -> tuple[bool, bool, int]:
        """Orders remedies by what they ask of people: settings before code, and fewer parties
        first."""
        parties = len(PARTIES & {*self.needs})
        return self.research, self.means != "setting", parties

    @property
    def who(self) -> str:
        """Who would have to change what: of a short list of parties."""
        is_setting = self.means == "setting"
        parties = []
        ends = [end for end in ("sender", "receiver") if end in self.needs]
        if len(ends) == 2:
            parties.append("a sysctl at both ends" if is_setting else "both ends")
        elif ends:
            parties.append(f"a sysctl at the {ends[0]}" if is_setting else f"the {ends[0]}'s TCP")
        if self.modes:
            parties.append(f"lasthopd in mode {' and '.join(self.modes)} at the hop")
        elif "middlebox" in self.needs:
            parties.append("the queue at the hop" if is_setting else "a box at the hop")
            parties += ["an agent in the host"] * ("host agent" in self.needs)
        return listed(parties)

    @property
    def marks(self) -> list[str]:
        """What else has to be known before it is chosen."""
        found = [words for need, words in MARKS.items() if need in self.needs]
        return found + [_RESEARCH] * self.research

    @property
    def lines(self) -> list[str]:
        """Its name, if it has one, and its settings, one in each."""
        indent = "  " if self.name else ""
        settings = (f"{indent}{_where(of)}{line}" for of in self.changes for line in _lines(of))
        return [*([self.name] if self.name else []), *settings]

    @property
    def setting(self) -> str:
        """Its settings in words of TOML, those of nodes with the names of these."""
        settings = "; ".join(f"{_where(of)}{', '.join(_lines(of))}" for of in self.changes)
        return f"{self.name} ({settings})" if self.name else settings

    @property
    def short(self) -> str:
        """A few words: its name, or its settings without those of its boxes and mechanisms."""
        return self.name or " and ".join(words for of in self.changes for words in _short(of))

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "name": self.name,
            "settings": [
                {
                    "place": change.place,
                    "nodes": list(change.nodes),
                    "setting": tomllib.loads(change.setting),
                }
                for change in self.changes
            ],
            "verdict": self.verdict,
            "gain": numbers(self.gain),
            "value": numbers(self.value),
            "rtt": numbers(self.rtt),
            "rtt_gain": numbers(self.rtt_gain),
            "goodput_gain": numbers(self.goodput_gain),
            "who": self.who,
            "marks": self.marks,
            "needs": list(self.needs),
            "means": self.means,
            "modes": list(self.modes),
            "research": self.research,
            "buildable": self.buildable,
        }


def numbers(estimate: Estimate | None) -> dict[str, float] | None:
    """For other programs."""
    if estimate is None:
        return None
    return {"value": estimate.value, "lo": estimate.lo, "hi": estimate.hi, "n": estimate.n}


def listed(parts: Sequence[str]) -> str:
    """A list in a sentence; a comma before its "and" if a part has an "and" of its own."""
    *first, last = parts
    comma = "," * any(" and " in part for part in parts)
    return f"{', '.join(first)}{comma} and {last}" if first else last


def named(nodes: Sequence[str]) -> str:
    """Nodes in a line; "" is a gateway that is assumed."""
    names = ["a gateway" if node == "" else node for node in nodes]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more"]
    return listed(names)


def _where(change: Change) -> str:
    """The place of a setting, before it in its line."""
    if change.place == LINK:
        return f"{'->'.join(change.nodes)}: "
    if change.place == FLOW:
        return "flow: "
    return "" if change.place == TCP else f"{named(change.nodes)}: "


def _short(change: Change) -> list[str]:
    """The settings of a place, of boxes and mechanisms only their names."""
    found: list[str] = []
    for line in change.setting.splitlines():
        said = tomllib.loads(line)
        if "mechanisms" in said:
            found += [of["mechanism"] for of in said["mechanisms"]]
        elif "boxes" in said:
            found += [
                f"{of['box']}{' with the rate' * ('rate' in of)} in {named(change.nodes)}"
                for of in said["boxes"]
            ]
        else:
            found.append(f"{_where(change)}{line}")
    return found


def _lines(change: Change) -> list[str]:
    """The settings of a place: of a single box its keys, of several each in braces."""
    found: list[str] = []
    for line in change.setting.splitlines():
        boxes = tomllib.loads(line).get("boxes")
        if boxes is None:
            found.append(line)
        elif len(boxes) == 1:
            found.append(toml.inline(boxes[0]).removeprefix("{ ").removesuffix(" }"))
        else:
            found += map(toml.inline, boxes)
    return found
