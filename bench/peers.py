"""Runs ns-2 and ns-3: what lasthop is compared with.

python bench/peers.py bulk --out bench/results/ns2-bulk.json
python bench/peers.py westwood --out bench/results/ns2-westwood.json
python bench/peers.py transfers --out bench/results/ns2-transfers.json
python bench/peers.py outages --out bench/results/ns2-outages.json
python bench/peers.py causes --out bench/results/ns2-causes.json
python bench/peers.py speed --repeat 3

ns-2 2.35 is Debian's package ns2; ns-3 3.37 is libns3-dev and is compiled against, so it needs g++.
"""

from __future__ import annotations

import argparse
import datetime
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# ns-2's own families of one recovery scheme differ; a comparison is with the range that they span.
FAMILIES = {
    "reno": ("Reno", "FullTcp"),
    "newreno": ("Newreno", "FullTcp/Newreno"),
    "sack": ("Sack1", "FullTcp/Sack"),
}
SPEED_FAMILIES = FAMILIES["sack"]
SPEED_CASES = ("one", "fifty")
SPEED_HEADERS = ("all", "used")
#: Crowds of flows that ns-2 can still run, by its one-way agent alone, and simulated seconds.
SPEED_CROWDS = {"100": 60.0, "1000": 10.0, "5000": 4.0}

# What ns-2 did by default in 2001 and in 2007, as arguments of flows.tcl: seconds, and segments.
NS2_2001: Mapping[str, Any] = {
    "tick": 0.1,
    "minrto": 0.2,
    "initial_window": 1,
    "initial_rto": 6.0,
    "limited_transmit": 0,
}
NS2_2007: Mapping[str, Any] = {
    "tick": 0.01,
    "minrto": 0.2,
    "initial_window": 2,
    "initial_rto": 3.0,
    "limited_transmit": 1,
}

RATES_BPS = (1.5e6, 10e6, 100e6)
DELAYS_S = (0.010, 0.100, 0.320)
BIT_ERROR_RATES = (1.56e-10, 1.56e-9, 1.56e-8, 1.56e-7, 1.56e-6, 1.56e-5)
DURATION_S = 120.0
# The report leaves out points with fewer errors than this, were the line always busy.
FEWEST_ERRORS = 25

# Runs of a cell with errors: a batch, and further ones until the ratio of two such means would be
# known to PRECISION either way, by the runs' standard deviation. ns-2 runs a batch side by side in
# one process.
BATCH = 10
MOST_RUNS = 300
MOST_RUNS_OF_HOPS = 60
PRECISION = 0.02

LINUX_FAMILIES = ("Linux/westwood", "Linux/reno")
# Of ns-2's Linux code with westwood it is known that it can stall or go round for ever.
LINUX_LIMIT_S = 60.0

# Segments of a transfer; LOSSY_SIZES where there are errors.
SIZES = (*range(1, 21), 25, 30, 40, 50, 75, 100, 150, 200, 300, 400, 500)
LOSSY_SIZES = (10, 50, 200, 500)
# What a transfer over errors takes differs much from run to run.
TRANSFER_RUNS = 600

# No run takes more than a few seconds; one that is still going is in an endless loop.
WALL_CLOCK_LIMIT_S = 300.0

# Named here, since Debian's pkg-config files of ns-3 3.37 print broken flags.
NS3_LIBRARIES = ("applications", "point-to-point", "internet", "network", "core")


class PeerError(RuntimeError):
    """A peer is not installed, or did not do what it should."""


@dataclass(frozen=True)
class Cell:
    """One bulk flow over a path: a point of simulation 1 or 2, apart from who sends."""

    rate_bps: float
    one_way_delay_s: float
    bit_error_rate: float
    errors: str
    hops: int = 1
    window: int = 20


def bulk_cells() -> list[Cell]:
    """The plain cells of simulations 1 and 2; those without errors have no direction of errors.

    Over three hops there are fewer: the slowest rate, since none limits the others, and errors both
    ways that are met often enough.
    """
    cells = []
    for rate in RATES_BPS:
        for delay in DELAYS_S:
            cells.append(Cell(rate, delay, 0.0, "forward"))
            for ber in BIT_ERROR_RATES:
                if rate * DURATION_S * ber >= FEWEST_ERRORS:
                    cells += [Cell(rate, delay, ber, way) for way in ("forward", "both")]
    for delay in DELAYS_S:
        cells.append(Cell(RATES_BPS[0], delay, 0.0, "forward", hops=3))
        for ber in BIT_ERROR_RATES[-3:]:
            cells.append(Cell(RATES_BPS[0], delay, ber, "both", hops=3))
    return cells


def ns2(script: str, limit_s: float = WALL_CLOCK_LIMIT_S, **arguments: object) -> dict[str, Any]:
    """Runs a script of bench/ns2 and returns the JSON line that it prints."""
    program = shutil.which("ns")
    if program is None:
        raise PeerError("ns-2 is not installed: the program ns is missing (Debian package: ns2).")
    words = [f"{key}={value}" for key, value in arguments.items()]
    return _json_line([program, str(HERE / "ns2" / script), *words], limit_s)


def ns2_flows(
    family: str,
    cell: Cell,
    runs: int,
    first: int = 0,
    limit_s: float = WALL_CLOCK_LIMIT_S,
    **others: Any,
) -> dict[str, list[float]]:
    """So many runs of one cell, from run `first` on: a list of each quantity."""
    arguments: dict[str, object] = {
        "family": family,
        "rate_bps": cell.rate_bps,
        "delay_s": cell.one_way_delay_s,
        "hops": cell.hops,
        "window": cell.window,
        "ber": cell.bit_error_rate,
        "errors": cell.errors,
        "duration": DURATION_S,
        "runs": runs,
        "first": first,
        **others,
    }
    return ns2("flows.tcl", limit_s, **arguments)


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
            if "ns-2" in simulators:
                for case, crowd_duration_s in SPEED_CROWDS.items():
                    for headers in SPEED_HEADERS:
                        yield ns2_speed(case, SPEED_FAMILIES[0], headers, crowd_duration_s)


def measure_cells(
    cells: Sequence[Cell], families: Sequence[str], **others: Any
) -> Iterator[dict[str, Any]]:
    """Rows of all cells and families: of each quantity mean and standard deviation over the runs.

    Without errors nothing in a run is random, so one run is all there is.
    """
    for cell in cells:
        for family in families:
            found = ns2_flows(family, cell, BATCH if cell.bit_error_rate else 1, **others)
            most = MOST_RUNS if cell.hops == 1 else MOST_RUNS_OF_HOPS
            while cell.bit_error_rate and len(found["goodput_bps"]) < min(
                enough(found["goodput_bps"]), most
            ):
                runs = len(found["goodput_bps"])
                more = ns2_flows(family, cell, BATCH, runs, **others)
                for what, values in found.items():
                    values += more[what]
            yield {"family": family, **asdict(cell), **summary(found)}


def measure_bulk() -> Iterator[dict[str, Any]]:
    """Rows of every family over one and three hops."""
    families = [family for both in FAMILIES.values() for family in both]
    return measure_cells(bulk_cells(), families, **NS2_2001)


def westwood_cells() -> list[Cell]:
    """Where Westwood+ is compared: a receive window that limits it, and one that does not."""
    return [
        Cell(rate, delay, ber, "forward", window=window)
        for window in (20, 100)
        for rate in RATES_BPS[:2]
        for delay in DELAYS_S
        for ber in (0.0, *BIT_ERROR_RATES[-3:])
    ]


def measure_westwood() -> Iterator[dict[str, Any]]:
    """Rows of ns-2's Linux code, whose clock is always of 1 ms, with timestamps."""
    return measure_cells(
        westwood_cells(), LINUX_FAMILIES, **NS2_2007, timestamps=1, limit_s=LINUX_LIMIT_S
    )


def measure_transfers() -> Iterator[dict[str, Any]]:
    """Rows of every size over paths without errors, and of some sizes over one with errors."""
    for cell in transfer_cells():
        for family in (family for both in FAMILIES.values() for family in both):
            if cell.bit_error_rate:
                for size in LOSSY_SIZES:
                    found = repeated(family, cell, segments=size)
                    yield {"family": family, **asdict(cell), "segments": size, **summary(found)}
                continue
            found = ns2_flows(family, cell, 1, segments=_listed(SIZES), **NS2_2001)
            for size, completed in zip(SIZES, found["completed_s"], strict=True):
                times = {"completed_s": [completed]}
                yield {"family": family, **asdict(cell), "segments": size, **summary(times)}


def transfer_cells() -> list[Cell]:
    """The paths of transfers."""
    paths = [Cell(rate, delay, 0.0, "forward") for rate in RATES_BPS[:2] for delay in DELAYS_S]
    return [*paths, Cell(1.5e6, 0.100, 1.56e-6, "forward")]


def repeated(family: str, cell: Cell, **others: Any) -> dict[str, list[float]]:
    """TRANSFER_RUNS runs of a cell."""
    found: dict[str, list[float]] = {}
    for first in range(0, TRANSFER_RUNS, 30):
        more = ns2_flows(family, cell, 30, first, **NS2_2001, **others)
        for what in ("completed_s", "timeouts", "retransmitted"):
            found.setdefault(what, []).extend(more[what])
    return found


#: What moves a cell that differs: a family, and what is changed of it.
CAUSES = (("Newreno", "exit_recovery_fix_:1"),)


def cause_cells() -> list[Cell]:
    """Where NewReno differs: short paths, and as many errors as there are."""
    return [Cell(rate, 0.010, 1.56e-5, "forward") for rate in RATES_BPS[:2]]


def measure_causes() -> Iterator[dict[str, Any]]:
    """Rows of a family with one of its defaults changed."""
    for family, also in CAUSES:
        for row in measure_cells(cause_cells(), [family], **NS2_2001, also=also):
            yield {"also": also, **row}


#: A transfer of 3 MB in segments of 1512 bytes over 6 Mb/s, the link down from 2 s on
#: (koutsianas2007, section 4.2).
OUTAGE = Cell(6e6, 0.001, 0.0, "forward", window=50)
OUTAGE_SEGMENTS = 2000


def outages_s() -> list[float]:
    """A hundred durations from 0.1 to 50 s, a constant factor apart."""
    return [round(0.1 * 500 ** (n / 99), 3) for n in range(100)]


def measure_outages() -> Iterator[dict[str, Any]]:
    """Rows of every duration: when acknowledgments go on, and when all has arrived."""
    for family in (*FAMILIES["reno"], *FAMILIES["sack"]):
        found = ns2_flows(
            family,
            OUTAGE,
            1,
            mss=1512,
            backbone_s=0.040,
            segments=OUTAGE_SEGMENTS,
            down_s=_listed(outages_s()),
            **NS2_2007,
        )
        for n, lasts in enumerate(outages_s()):
            columns = ("resumed_s", "completed_s", "timeouts", "retransmitted")
            yield {"family": family, "outage_s": lasts, **{key: found[key][n] for key in columns}}


def _listed(values: Sequence[float]) -> str:
    return ",".join(f"{value:g}" for value in values)


def enough(values: Sequence[float]) -> float:
    """How many runs a mean takes, by the spread of those that there are."""
    spread = statistics.stdev(values) / statistics.fmean(values)
    return 2 * (1.96 * spread / PRECISION) ** 2


def summary(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """How many runs, and of each quantity the mean and the standard deviation."""
    row: dict[str, Any] = {"runs": len(next(iter(found.values())))}
    for what, values in found.items():
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        row[what] = [float(f"{statistics.fmean(values):.7g}"), float(f"{deviation:.5g}")]
    return row


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
    # ns-2's Linux code has words of its own to print.
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    row: dict[str, Any] = json.loads(line)
    return row


def _write(path: Path, head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """One row a line: short, and a change shows as the lines it touches."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    body = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ' "rows": [', body, " ]", "}"]) + "\n")


EXPERIMENTS = {
    "bulk": ("a bulk flow over one and three hops", NS2_2001, measure_bulk),
    "westwood": ("ns-2's Linux code", NS2_2007, measure_westwood),
    "transfers": ("transfers of 1 to 500 segments", NS2_2001, measure_transfers),
    "causes": ("a family with one of its defaults changed", NS2_2001, measure_causes),
    "outages": ("a transfer over an outage of 0.1 to 50 s", NS2_2007, measure_outages),
}


def _experiment(options: argparse.Namespace) -> None:
    title, profile, measure = EXPERIMENTS[options.name]
    rows = []
    for row in measure():
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    head = {
        "experiment": title,
        "simulator": "ns-2",
        "version": package_version("ns2"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "profile": profile,
    }
    _write(options.out, head, rows)


def _speed(options: argparse.Namespace) -> None:
    for row in measure_speed(options.repeat, options.simulators, options.duration):
        print(json.dumps(row), flush=True)


def main() -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="Run ns-2 and ns-3 on lasthop's comparison cases.")
    commands = parser.add_subparsers(required=True)

    for name, (title, _, _) in EXPERIMENTS.items():
        experiment = commands.add_parser(name, help=f"{title}, in ns-2")
        experiment.add_argument("--out", type=Path, required=True, help="JSON file to write")
        experiment.set_defaults(command=_experiment, name=name)

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
