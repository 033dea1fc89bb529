"""Runs ns-2 and ns-3: what lasthop is compared with.

The plain cells of bbn8333's first simulation, and speed:

python bench/peers.py sim1 --seeds 30 --jobs 2 --out bench/results/ns2-sim1.json
python bench/peers.py speed --repeat 3

ns-2 2.35 is Debian's package ns2; ns-3 3.37 is libns3-dev and is compiled against, so it needs g++.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# ns-2's own families of one recovery scheme differ; a comparison is with the range that they span.
RECOVERY = {
    "Reno": "reno",
    "FullTcp": "reno",
    "Newreno": "newreno",
    "FullTcp/Newreno": "newreno",
    "Sack1": "sack",
    "FullTcp/Sack": "sack",
}
SIM1_FAMILIES = ("Reno", "FullTcp", "Sack1", "FullTcp/Sack")
SPEED_FAMILIES = ("Sack1", "FullTcp/Sack")
SPEED_CASES = ("one", "fifty")
SPEED_HEADERS = ("all", "used")

# What ns-2 did by default in 2001, as arguments of sim1.tcl: seconds, and segments.
NS2_2001: Mapping[str, float] = {
    "tick": 0.1,
    "minrto": 0.2,
    "initial_window": 1,
    "initial_rto": 6.0,
}

RATES_BPS = (1.5e6, 10e6, 100e6)
DELAYS_S = (0.010, 0.100, 0.320)
BIT_ERROR_RATES = (1.56e-10, 1.56e-9, 1.56e-8, 1.56e-7, 1.56e-6, 1.56e-5)
DURATION_S = 120.0
# The report leaves out points with fewer errors than this, were the line always busy.
FEWEST_ERRORS = 25

# No run takes more than a few seconds; one that is still going is in an endless loop.
WALL_CLOCK_LIMIT_S = 300.0

# Named here, since Debian's pkg-config files of ns-3 3.37 print broken flags.
NS3_LIBRARIES = ("applications", "point-to-point", "internet", "network", "core")


class PeerError(RuntimeError):
    """A peer is not installed, or did not do what it should."""


@dataclass(frozen=True)
class Cell:
    """One point of simulation 1, apart from the recovery scheme."""

    rate_bps: float
    one_way_delay_s: float
    bit_error_rate: float
    errors: str


def sim1_cells() -> list[Cell]:
    """The plain cells of simulation 1, of those without errors one instead of one a direction."""
    cells = []
    for rate in RATES_BPS:
        for delay in DELAYS_S:
            cells.append(Cell(rate, delay, 0.0, "forward"))
            for ber in BIT_ERROR_RATES:
                if rate * DURATION_S * ber >= FEWEST_ERRORS:
                    cells += [Cell(rate, delay, ber, way) for way in ("forward", "both")]
    return cells


def ns2(script: str, limit_s: float = WALL_CLOCK_LIMIT_S, **arguments: object) -> dict[str, Any]:
    """Runs a script of bench/ns2 and returns the JSON line that it prints."""
    program = shutil.which("ns")
    if program is None:
        raise PeerError("ns-2 is not installed: the program ns is missing (Debian package: ns2).")
    words = [f"{key}={value}" for key, value in arguments.items()]
    return _json_line([program, str(HERE / "ns2" / script), *words], limit_s)


def ns2_sim1(
    cell: Cell,
    family: str,
    run: int,
    profile: Mapping[str, float] = NS2_2001,
    limit_s: float = WALL_CLOCK_LIMIT_S,
) -> dict[str, Any]:
    """One run of one cell; `run` is the number of the random sub-stream."""
    return ns2(
        "sim1.tcl",
        limit_s,
        family=family,
        rate_bps=cell.rate_bps,
        delay_s=cell.one_way_delay_s,
        ber=cell.bit_error_rate,
        errors=cell.errors,
        run=run,
        duration=DURATION_S,
        **profile,
    )


def ns2_speed(
    case: str, family: str, headers: str, duration_s: float = DURATION_S
) -> dict[str, Any]:
    """One timed run of ns-2, as a row; `headers` are all that ns-2 knows, or those used."""
    result = ns2("speed.tcl", case=case, family=family, headers=headers, duration=duration_s)
    variant = f"{family}, {headers} headers"
    return _speed_row("ns-2", package_version("ns2"), variant, result)


def build_ns3(folder: Path) -> Path:
    """Compiles the ns-3 program into a folder and returns its path."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise PeerError("ns-3 cannot be compiled against: g++ is missing (Debian package: g++).")
    program = folder / "ns3-speed"
    done = subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-O3",
            *("-o", str(program)),
            str(HERE / "ns3" / "speed.cc"),
            *(f"-lns3-{library}" for library in NS3_LIBRARIES),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ns3/core-module.h: No such file" in done.stderr:
        raise PeerError("ns-3 is not installed: no headers of it (Debian package: libns3-dev).")
    if done.returncode:
        raise PeerError(f"bench/ns3/speed.cc does not compile:\n{done.stderr}")
    return program


def ns3_speed(program: Path, case: str, duration_s: float = DURATION_S) -> dict[str, Any]:
    """One timed run of ns-3, as a row; `program` comes from build_ns3."""
    result = _json_line([str(program), case, str(duration_s)], WALL_CLOCK_LIMIT_S)
    return _speed_row("ns-3", package_version("libns3-dev"), "LinuxReno", result)


def measure_speed(
    repeat: int,
    simulators: Sequence[str] = ("ns-2", "ns-3"),
    duration_s: float = DURATION_S,
) -> Iterator[dict[str, Any]]:
    """Rows of all cases; each round passes through all of them, so that a busy spell hits all."""
    with tempfile.TemporaryDirectory() as folder:
        program = build_ns3(Path(folder)) if "ns-3" in simulators else None
        for _ in range(repeat):
            for case in SPEED_CASES:
                if "ns-2" in simulators:
                    for family in SPEED_FAMILIES:
                        for headers in SPEED_HEADERS:
                            yield ns2_speed(case, family, headers, duration_s)
                if program is not None:
                    yield ns3_speed(program, case, duration_s)


def measure_sim1(
    seeds: int,
    jobs: int,
    families: Sequence[str] = SIM1_FAMILIES,
    profile: Mapping[str, float] = NS2_2001,
) -> Iterator[dict[str, Any]]:
    """Rows of all cells and families: the goodputs of the runs, their mean and 95 % interval.

    Without errors nothing in a run is random, so one run is all there is and the interval is null.
    """
    with ThreadPoolExecutor(jobs) as pool:
        for cell in sim1_cells():
            for family in families:
                runs = range(seeds if cell.bit_error_rate else 1)
                started = [pool.submit(ns2_sim1, cell, family, run, profile) for run in runs]
                results = [run.result() for run in started]
                goodputs = [float(result["goodput_bps"]) for result in results]
                yield {
                    "family": family,
                    "recovery": RECOVERY[family],
                    **asdict(cell),
                    "runs": len(goodputs),
                    "mean_bps": round(statistics.fmean(goodputs), 3),
                    "ci95_bps": interval95(goodputs),
                    "mean_timeouts": _mean(results, "timeouts"),
                    "mean_retransmitted": _mean(results, "retransmitted"),
                    "goodputs_bps": goodputs,
                }


def interval95(values: Sequence[float]) -> list[float] | None:
    """The 95 % confidence interval of the mean, by Student's t; None for fewer than two values."""
    if len(values) < 2:
        return None
    # Imported here, since all else needs the standard library alone.
    from scipy.stats import t

    half = float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return [round(mean - half, 3), round(mean + half, 3)]


def package_version(package: str) -> str:
    """The version of an installed Debian package, or "unknown"."""
    program = shutil.which("dpkg-query")
    if program is None:
        return "unknown"
    done = subprocess.run(
        [program, "--show", "--showformat=${Version}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def machine() -> dict[str, Any]:
    """What the measurements were made on."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cores": os.cpu_count()}


def _mean(results: Sequence[Mapping[str, Any]], key: str) -> float:
    return round(statistics.fmean(result[key] for result in results), 2)


def _speed_row(
    simulator: str, version: str, variant: str, result: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "simulator": simulator,
        "version": version,
        "case": result["case"],
        "variant": variant,
        "duration_s": result["duration_s"],
        "delivered_segments": result["delivered_segments"],
        "cpu_s": result["cpu_s"],
        # A very short run can take less than ns-2's clock shows.
        "segments_per_cpu_s": round(result["delivered_segments"] / max(result["cpu_s"], 0.005)),
    }


def _json_line(command: Sequence[str], limit_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"Still running after {limit_s:g} s: {' '.join(command)}") from error
    if done.returncode:
        raise PeerError(f"Exit {done.returncode} from {' '.join(command)}\n{done.stderr}")
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _write_sim1(path: Path, head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """One row a line: short, and a change shows as the lines it touches."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    body = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ' "rows": [', body, " ]", "}"]) + "\n")


def _sim1(options: argparse.Namespace) -> None:
    # Said before the long run rather than in it.
    if importlib.util.find_spec("scipy") is None:
        raise PeerError("The confidence intervals need scipy, which is not installed.")
    head = {
        "experiment": "bbn8333 sim1, plain",
        "simulator": "ns-2",
        "version": package_version("ns2"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "profile": {"name": "ns2-2001", **NS2_2001},
        "duration_s": DURATION_S,
    }
    rows = []
    for row in measure_sim1(options.seeds, options.jobs, options.families):
        rows.append(row)
        shown = ("family", "rate_bps", "one_way_delay_s", "bit_error_rate", "errors", "mean_bps")
        print(*(row[key] for key in shown), file=sys.stderr, flush=True)
    _write_sim1(options.out, head, rows)


def _speed(options: argparse.Namespace) -> None:
    for row in measure_speed(options.repeat, options.simulators, options.duration):
        print(json.dumps(row), flush=True)


def main() -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="Run ns-2 and ns-3 on lasthop's comparison cases.")
    commands = parser.add_subparsers(required=True)

    sim1 = commands.add_parser("sim1", help="the plain cells of bbn8333's simulation 1 in ns-2")
    sim1.add_argument("--seeds", type=int, default=30, help="runs for each cell with errors")
    sim1.add_argument("--jobs", type=int, default=1, help="runs at a time")
    sim1.add_argument("--families", nargs="+", choices=RECOVERY, default=SIM1_FAMILIES)
    sim1.add_argument("--out", type=Path, required=True, help="JSON file to write")
    sim1.set_defaults(command=_sim1)

    speed = commands.add_parser("speed", help="delivered segments for each CPU second")
    speed.add_argument("--repeat", type=int, default=3)
    speed.add_argument(
        "--simulators", nargs="+", choices=("ns-2", "ns-3"), default=("ns-2", "ns-3")
    )
    speed.add_argument("--duration", type=float, default=DURATION_S, help="simulated seconds")
    speed.set_defaults(command=_speed)

    options = parser.parse_args()
    try:
        options.command(options)
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
