"""obanaik2003's fairness experiments: their tables in the book."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studies import Column, Row, Shown, Table, factor, number

from lasthop.publications.obanaik2003 import factors
from lasthop.publications.obanaik2003.window import NO_LIMIT
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case

PUBLICATION = "obanaik2003"
POLICIES = {
    "standard": "standard",
    "increase-by-k": "increase-by-K",
    "constant-rate": "constant rate",
    "canit": "CANIT",
    "auto": "auto",
}
LINKS = {"slow": "slow link", "ltn": "LTN"}
ENABLED = {"all": "all", "others": "the others"}


def _policy(case: Mapping[str, Any]) -> str:
    constant = f", c = {case['c']:g}" if case.get("c") else ""
    cap = ", capped" if case.get("cap") else ""
    round_trip = ", propagation" if case.get("rtt") == "propagation" else ""
    return f"{POLICIES[case['policy']]}{constant}{cap}{round_trip}"


#: What a line is called: heads, and words of a case.
Keys = Mapping[str, Callable[[Mapping[str, Any]], str]]
_POLICY: Keys = {"policy": _policy}
_BOTH: Keys = {"last hop": lambda case: LINKS[case["link"]], **_POLICY}


@dataclass(frozen=True)
class SideBySide:
    """A line for every case: published values beside measured ones, where there are any."""

    part: str
    keys: Keys
    #: Words, metric, and what to divide by.
    columns: Sequence[tuple[str, str, float]]

    @property
    def all(self) -> Mapping[str, Shown]:
        """There is no other."""
        return {"numbers": self}

    def shows(self, row: Row) -> bool:
        """Whether a row is in it."""
        return row["metric"] in [metric for _, metric, _ in self.columns]

    def markdown(self, rows: Sequence[Row]) -> str:
        """As the book has it; published values that are misprints are marked."""
        shown = [row for row in rows if row["metric"] != "finding" and self.shows(row)]
        published = {row["metric"] for row in shown if row["published"] is not None}
        heads = list(self.keys)
        for words, metric, _ in self.columns:
            heads += (
                [f"{words}: published", "measured", "error factor"]
                if metric in published
                else [words]
            )
        values = len(heads) - len(self.keys)
        lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(self.keys)}{' ---: |' * values}"]
        cases = list(dict.fromkeys(Case(**row["case"]) for row in shown))
        for case in cases:
            found = {row["metric"]: row for row in shown if row["case"] == dict(case)}
            cells = [of(case) for of in self.keys.values()]
            for _, metric, scale in self.columns:
                row = found.get(metric)
                if metric in published:
                    cells.append("" if row is None else self._published(case, row, scale))
                cells.append("" if row is None else number(row, scale))
                if metric in published:
                    cells.append("" if row is None else factor(row))
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def _published(self, case: Case, row: Row, scale: float) -> str:
        if row["published"] is None:
            return ""
        of = Section.of(PUBLICATION, f"fairness/{self.part}").number(case, row["metric"])
        mark = "\\*" if of is not None and of.misprint else ""
        return f"{row['published'] / scale:g}{mark}"


GOODPUT, PAYLOAD = ("goodput, kb/s", "goodput_bps", 1e3), ("goodput, kb/s", "payload_bps", 1e3)
LOSSES = ("losses", "losses_packets", 1.0)
SHARE = ("lost, %", "loss_share", 0.01)
TIMEOUTS = ("timeouts", "timeouts", 1.0)
FAIRNESS = (
    ("Jain's index", "fairness", 1.0),
    ("long round trips' share, %", "long_share", 0.01),
    ("all five, kb/s", "all_payload_bps", 1e3),
)


def _window(case: Mapping[str, Any]) -> str:
    return f"{case['receive_window_bytes'] / 1024:g} KiB"


def _policies() -> list[Column]:
    return [
        Column(f"{name}, {words}, kb/s", "goodput_bps", {"link": link, "policy": policy}, 1e3)
        for link, words in LINKS.items()
        for policy, name in POLICIES.items()
        if policy != "auto"
    ]


def _buffers() -> list[Column]:
    found = _policies()
    for link, words in LINKS.items():
        where = {"link": link, "policy": "standard"}
        found.append(Column(f"round trip, {words}, s", "rtt_s", where))
    return found


TABLES: Mapping[str, SideBySide | Table] = {
    "slow": SideBySide("slow", _POLICY, (GOODPUT, LOSSES, TIMEOUTS)),
    "ltn": SideBySide("ltn", _POLICY, (GOODPUT, LOSSES, TIMEOUTS)),
    "disabled": SideBySide(
        "disabled", {**_BOTH, "policy on": lambda case: ENABLED[case["enabled"]]}, (GOODPUT,)
    ),
    "window": SideBySide(
        "window",
        {"path": lambda case: str(case["path"]), **_BOTH, "window": _window},
        (GOODPUT, LOSSES),
    ),
    "buffers": Table("buffer_packets", "buffer", {}, _buffers()),
    "testbed": SideBySide("testbed", _BOTH, (PAYLOAD, SHARE, LOSSES, TIMEOUTS)),
    "testbed-buffers": SideBySide(
        "testbed-buffers",
        {**_BOTH, "buffer": lambda case: str(case["buffer_packets"])},
        (PAYLOAD, ("round trip, s", "rtt_s", 1.0)),
    ),
    "testbed-window": SideBySide(
        "testbed-window", {**_BOTH, "window": _window}, (PAYLOAD, SHARE, LOSSES)
    ),
    "testbed-disabled": SideBySide(
        "testbed-disabled",
        {**_BOTH, "policy on": lambda case: ENABLED[case["enabled"]]},
        (PAYLOAD,),
    ),
    "factors": Table(
        "factor",
        "factor",
        {
            "path": factors.SIMULATION,
            "enabled": "all",
            "receive_window_bytes": NO_LIMIT,
            "runs": factors.FOUND,
        },
        _policies(),
        only=factors.singles(factors.SIMULATION),
    ),
    "fast": SideBySide("fast", {"path": lambda case: str(case["path"]), **_POLICY}, FAIRNESS),
    "auto": SideBySide(
        "auto",
        {
            "path": lambda case: str(case["path"]),
            **_POLICY,
            "policy on": lambda case: str(case["enabled"]),
        },
        (GOODPUT, LOSSES, *FAIRNESS),
    ),
}


# --- The calibration -------------------------------------------------------------------------

Kept = Mapping[str, Any]
_GOODPUT_IS = {"goodput_bps": "counts headers", "payload_bps": "without headers"}


def calibrated(kept: Kept) -> str:
    """What was calibrated: chosen, and the range."""
    chosen, grid = kept["chosen"], kept["grid"]
    lines = ["| calibrated | chosen | grid |", "| --- | --- | --- |"]
    for key, words, unit in (
        ("recovery", "recovery of all", ""),
        ("buffer_packets", "buffer before the shared link", " packets"),
        ("short_ms", "delay of sources 1 and 2", " ms"),
        ("long_ms", "delay of sources 3, 4 and 5", " ms"),
    ):
        range_ = ", ".join(str(value) for value in grid[key])
        lines.append(f"| {words} | {chosen[key]}{unit} | {range_}{unit} |")
    readings = ", ".join(_GOODPUT_IS[reading] for reading in grid["reading"])
    lines.append(f"| goodput | {_GOODPUT_IS[kept['reading']]} | {readings} |")
    return "\n".join(lines)


def recoveries(kept: Kept) -> str:
    """The best point of each recovery, and what it makes of the policies."""
    reading = kept["reading"]
    lines = [
        "| best with | buffer | delays, ms | slow link, kb/s / losses | LTN | standard rows off by"
        " | policies' rows: all | goodputs |",
        f"|{' --- |' * 5}{' ---: |' * 3}",
    ]
    for point in kept["by_recovery"]:
        means = [
            f"{of[reading] / 1e3:.2f} / {of['losses_packets']:.1f}"
            for of in (point["means"]["slow"], point["means"]["ltn"])
        ]
        worth = point["policies_error"]
        lines.append(
            f"| {point['recovery']} | {point['buffer_packets']} | {point['short_ms']},"
            f" {point['long_ms']} | {' | '.join(means)} | {point['error'][reading]:.2f} |"
            f" {worth['all']:.2f} | {worth['goodput']:.2f} |"
        )
    return "\n".join(lines)


def unsearched(kept: Kept) -> str:
    """What was set without a search, and what the standard rows are with other values."""
    reading = kept["reading"]
    lines = [
        "| set without a search | as set | tried | slow link, kb/s / losses | LTN | standard rows"
        " off by |",
        f"|{' --- |' * 5} ---: |",
    ]
    chosen = {**kept["chosen"], "parameter": "nothing", "set": "", "tried": ""}
    for of in (chosen, *kept["set"]):
        means = [
            f"{link[reading] / 1e3:.2f} / {link['losses_packets']:.1f}"
            for link in (of["means"]["slow"], of["means"]["ltn"])
        ]
        error = of["error"][reading] if of is chosen else of["error"]
        lines.append(
            f"| {of['parameter']} | {of['set']} | {of['tried']} | {' | '.join(means)}"
            f" | {error:.2f} |"
        )
    return "\n".join(lines)


CALIBRATION: Mapping[str, Callable[[Kept], str]] = {
    "calibration": calibrated,
    "calibration-recoveries": recoveries,
    "calibration-set": unsearched,
}
