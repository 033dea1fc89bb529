"""CUBIC over a lossy satellite link: lasthop's settings beside Linux, and what each does elsewhere.

python bench/satellite.py               everything; needs root, and ten minutes
python bench/satellite.py --lab         only what the lab runs; Linux's runs stay as they were kept
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import peers
import record
import runs
import tabular
import worlds

SATELLITE = record.RESULTS / "satellite.json"
SCENARIO = worlds.SCENARIOS / "06-geo-lossy.toml"

#: Seeds with which Linux runs, and the lab.
LINUX_RUNS = 72
LAB_RUNS = 3000
#: Runs of a scenario with other timers, and of the other scenarios.
TIMER_RUNS = 1000
WORLD_RUNS = 200
#: Runs on the testbed at a time. Nearly all of their time is waiting.
PARALLEL = 3

SETTINGS: dict[str, Mapping[str, str]] = {
    "default": {},
    '`restart = "retransmission"`': {"rto.restart": "retransmission"},
    '`hystart_round_end = "passed"`': {"hystart_round_end": "passed"},
}
#: Those of the retransmission timer, of which the scenario has the last.
TIMERS: dict[str, Mapping[str, str]] = {
    "`modern`": {"minimum": "1 s", "minimum_variance": "0 s"},
    '`minimum = "200 ms"`': {"minimum": "200 ms", "minimum_variance": "0 s"},
    "`minimum` and `minimum_variance` of 200 ms, as in Linux": {},
}


def linux() -> Iterator[record.Row]:
    """A row for each run by Linux."""

    def run(seed: int) -> record.Row:
        return runs.run(SCENARIO, runs.linux("cubic"), seed, ["payload_bps", "timeouts"])

    with ThreadPoolExecutor(PARALLEL) as pool:
        for row in pool.map(run, range(1, LINUX_RUNS + 1)):
            record.say(f"{row}")
            yield {"part": "linux"} | row | {"payload_bps": round(row["payload_bps"])}


def lab(name: str, settings: Mapping[str, str], seeds: int) -> Any:
    """The rows of one of the worlds, by seed."""
    import lasthop

    scenario = lasthop.Scenario.load(worlds.SCENARIOS / f"{name}.toml")
    over = {f"flows.0.tcp.{key}": [value] for key, value in settings.items()}
    # A sweep needs a dimension.
    over["flows.0.tcp.congestion"] = ["cubic"]
    return lasthop.sweep(scenario, over=over, seeds=seeds).rows.sort("seed")


def beside(own: Sequence[float], other: Sequence[float]) -> record.Row:
    """By how much the mean of `own` is above that of `other`, with the same seeds, percent."""
    mean = statistics.fmean(other)
    percent = [100 * (here - there) / mean for here, there in zip(own, other, strict=True)]
    low, high = peers.interval95(percent) or (percent[0], percent[0])
    ci95 = [round(low, 2), round(high, 2)]
    return {"percent": round(statistics.fmean(percent), 2), "ci95_percent": ci95}


def summary(rows: Any) -> record.Row:
    """Means, and in how many runs a timer expired."""
    return {
        "runs": len(rows),
        "payload_bps": round(rows["payload_bps"].mean()),
        "retransmissions": round(rows["retransmissions"].mean(), 1),
        "runs_with_timeouts": int((rows["timeouts"] > 0).sum()),
    }


def settings(kernel: Sequence[record.Row]) -> Iterator[record.Row]:
    """The satellite link with each setting, beside the default and beside Linux."""
    reference = [row["payload_bps"] for row in kernel]
    default = None
    for name, values in SETTINGS.items():
        rows = lab(SCENARIO.stem, values, LAB_RUNS)
        rates = rows["payload_bps"].to_list()
        default = default or rates
        yield {
            "part": "settings",
            "settings": name,
            **summary(rows),
            "beside_default": beside(rates, default),
            "beside_linux": beside(rates[: len(reference)], reference),
        }


def timers() -> Iterator[record.Row]:
    """The satellite link with other retransmission timers."""
    for (name, values), restart in itertools.product(TIMERS.items(), ("retransmission", "sack")):
        rto = {f"rto.{key}": value for key, value in values.items()} | {"rto.restart": restart}
        rows = lab(SCENARIO.stem, rto, TIMER_RUNS)
        yield {"part": "timers", "timer": name, "restart": restart, **summary(rows)}


def elsewhere() -> Iterator[record.Row]:
    """Every world with each setting, beside the default."""
    for file in sorted(worlds.SCENARIOS.glob("*.toml")):
        default = None
        for name, values in SETTINGS.items():
            rows = lab(file.stem, values, WORLD_RUNS)
            rates = rows["payload_bps"].to_list()
            default = default or rates
            row = {"part": "worlds", "scenario": file.stem, "settings": name, **summary(rows)}
            yield row | {"beside_default": beside(rates, default)}


def percent(of: Mapping[str, Any], digits: int = 1) -> str:
    """A difference with its interval."""
    low, high = of["ci95_percent"]
    mean = of["percent"]
    return f"{mean:+.{digits}f} % ({low:+.{digits}f} to {high:+.{digits}f})"


def settings_table(result: Any) -> str:
    """Each setting on the satellite link."""
    lines = [
        "| lasthop | goodput, kb/s | beside the default | beside Linux | runs with a timeout "
        "| retransmitted |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    of_settings = [row for row in result["rows"] if row["part"] == "settings"]
    for row in of_settings:
        own = percent(row["beside_default"]) if row is not of_settings[0] else ""
        lines.append(
            f"| {row['settings']} | {row['payload_bps'] / 1e3:.0f} | {own} "
            f"| {percent(row['beside_linux'])} | {row['runs_with_timeouts']} "
            f"| {row['retransmissions']:.1f} |"
        )
    kernel = [row for row in result["rows"] if row["part"] == "linux"]
    expired = sum(row["timeouts"] > 0 for row in kernel)
    about = (
        f"*{of_settings[0]['runs']} runs of 20 s each, Linux {len(kernel)} with the first of their "
        f"seeds, of which {expired} with a timeout and {sum(row['void'] for row in kernel)} void. "
        f"Differences of the means, with their 95 % intervals. Linux {result['kernel']}.*"
    )
    return "\n".join([*lines, "", f"{about} {tabular.circumstances(result)}"])


def timers_table(result: Any) -> str:
    """Timeouts by the timer's settings."""
    lines = [
        "| | runs with a timeout | | goodput, kb/s | |",
        "| --- | ---: | ---: | ---: | ---: |",
        '| | `restart = "retransmission"` | default | `restart = "retransmission"` | default |',
    ]
    rows = [row for row in result["rows"] if row["part"] == "timers"]
    for timer in dict.fromkeys(row["timer"] for row in rows):
        of = {row["restart"]: row for row in rows if row["timer"] == timer}
        both = [of["retransmission"], of["sack"]]
        expired = " | ".join(f"{row['runs_with_timeouts']}" for row in both)
        rates = " | ".join(f"{row['payload_bps'] / 1e3:.0f}" for row in both)
        lines.append(f"| {timer} | {expired} | {rates} |")
    about = f"*{rows[0]['runs']} runs of 20 s each.*"
    return "\n".join([*lines, "", f"{about} {tabular.circumstances(result)}"])


def rounds_table(result: Any) -> str:
    """What the end of HyStart++'s rounds does in each world."""
    lines = [
        '| | goodput with `"passed"` | segments retransmitted | |',
        "| --- | ---: | ---: | ---: |",
        '| | beside `"reached"` | `"reached"` | `"passed"` |',
    ]
    rows = [row for row in result["rows"] if row["part"] == "worlds"]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        reached, _, passed = (row for row in rows if row["scenario"] == scenario)
        lines.append(
            f"| {scenario} | {percent(passed['beside_default'])} "
            f"| {reached['retransmissions']:.0f} | {passed['retransmissions']:.0f} |"
        )
    about = f"*{rows[0]['runs']} runs each; differences of the means, with their 95 % intervals.*"
    return "\n".join([*lines, "", f"{about} {tabular.circumstances(result)}"])


TABLES = {
    "satellite": settings_table,
    "satellite-timers": timers_table,
    "hystart-rounds": rounds_table,
}


def main() -> None:
    """Measures everything, or what the lab runs."""
    parser = argparse.ArgumentParser(description="Compares settings over a lossy satellite link.")
    parser.add_argument("--lab", action="store_true", help="keep Linux's runs")
    kept = json.loads(SATELLITE.read_text()) if parser.parse_args().lab else None
    kernel = [row for row in kept["rows"] if row["part"] == "linux"] if kept else list(linux())
    result = {"experiment": "satellite", **record.circumstances(), "kernel": os.uname().release}
    result["rows"] = [*kernel, *settings(kernel), *timers(), *elsewhere()]
    record.keep(SATELLITE, result)


if __name__ == "__main__":
    main()
