"""`lasthopd` beside the kernel's own TCP, PEPsal and HAProxy, and keeps the results.

python bench/field_matrix.py hop        bad hops: goodput, first byte, page load
python bench/field_matrix.py long       downloads of a minute over a satellite hop, by its loss
python bench/field_matrix.py sizes      downloads of a packet to 100 MB, and directly
python bench/field_matrix.py machine    a fast LAN: throughput, CPU time, connections, memory
python bench/field_matrix.py            all

Some hops once, in about a quarter of an hour, as `long` and `sizes`; FULL=1 in the environment: all
of them, five times in turn.
It needs root, curl, haproxy, nft, iperf3 and ab. PEPsal is compiled from its repository
into build/pepsal (git, autoconf, automake, libtool), unless PEPSAL names its program. What is
missing is left out, with a word about it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import field_gateways
import field_machine
import field_path
import field_sizes
import namespaces
import record
from field_gateways import Candidate
from field_path import Hop

import lasthop

PEPSAL = "https://github.com/CNES/pepsal.git"
#: Version 2.0.2.
PEPSAL_COMMIT = "1045d3c828e2d37a8faa210ab8e60ecb2b2a390e"

CANDIDATES = (
    *(
        Candidate(f"{name}, {congestion.upper()}", kind, congestion)
        for kind, name in field_gateways.KINDS.items()
        if kind != "lasthopd"
        for congestion in ("cubic", "bbr")
    ),
    Candidate("lasthopd spoof, no rate", "lasthopd", rate=False),
    *(Candidate(f"lasthopd {mode}", "lasthopd", mode=mode) for mode in ("spoof", "split", "pair")),
)
QUICK = (Hop(10, 600, 0.001), Hop(10, 40, 0.01), Hop(100, 100, 0.01))
BURSTS = Hop(10, 600, 0.01, burst=10)
ALL = (
    *(
        Hop(mbps, rtt, loss)
        for mbps, rtt, loss in itertools.product(
            (10, 100), (40, 100, 600), (0.0, 0.001, 0.01, 0.05, 0.1)
        )
    ),
    BURSTS,
)
#: For downloads of a minute, and what carries them.
LONG = tuple(Hop(10, 600, loss) for loss in (0.0, 0.001, 0.01, 0.05, 0.1))
LONG_S = 60.0
LONG_CANDIDATES = tuple(candidate for candidate in CANDIDATES if candidate.name == "lasthopd pair")
PARTS = ("hop", "long", "sizes", "machine")
#: A page of 30 objects of 10 kB, over six connections.
PAGE, OBJECTS, OBJECT, CONNECTIONS = 20_000, 30, 10_000, 6
#: Attempts while the machine is too busy, and seconds that a page may take.
ATTEMPTS, PATIENCE = 2, 120
#: Runs of the lab for a prediction: single ones differ.
PREDICTIONS = 9


def full() -> bool:
    """Whether everything is measured."""
    return os.environ.get("FULL", "0") not in ("", "0")


# --- programs of others ---


def pepsal() -> Path | None:
    """The program, compiled if need be."""
    given = os.environ.get("PEPSAL") or shutil.which("pepsal")
    if given:
        return Path(given).resolve()
    folder = record.ROOT / "build" / "pepsal"
    program = folder / "src" / "pepsal"
    if program.exists():
        return program
    shutil.rmtree(folder, ignore_errors=True)
    record.say(f"compiling PEPsal from {PEPSAL}")
    try:
        ran("git", "clone", "--quiet", PEPSAL, folder, at=record.ROOT)
        ran("git", "checkout", "--quiet", PEPSAL_COMMIT, at=folder)
        # It raises its limit of open files to a number that not every root may set; `running` has
        # raised it as far as possible.
        limits = folder / "src" / "conntrack.c"
        text = limits.read_text()
        limits.write_text(text.replace("return setrlimit(", "return getrlimit("))
        ran("./autogen.sh", "CFLAGS=-O2", "--enable-stderr-logging", at=folder)
        ran("make", "--quiet", at=folder)
    except (OSError, subprocess.SubprocessError) as error:
        record.say(f"WITHOUT PEPSAL: {error}")
        record.say("(it needs git, autoconf, automake and libtool; PEPSAL=program names another)")
        return None
    return program


def ran(*words: object, at: Path) -> None:
    """Runs a command, whose last words are those of the error if it fails."""
    command = list(map(str, words))
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=300)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise subprocess.SubprocessError(f"{' '.join(command[:2])}: {' '.join(last)}")


def programs_of_others() -> dict[str, Path]:
    """Those that there are."""
    found = {"pepsal": pepsal()}
    for name in ("haproxy", "nft"):
        where = shutil.which(name)
        found[name] = Path(where) if where else None
        if not where:
            words = f"apt-get install {namespaces.PACKAGES[name]}"
            record.say(f"WITHOUT {name.upper()}: not installed; try: {words}")
    if not found.pop("nft"):
        return {}
    return {name: program for name, program in found.items() if program}


def versions(programs: Mapping[str, Path]) -> record.Row:
    """The versions of the programs."""
    found: record.Row = {"kernel": os.uname().release}
    for name, option in (("haproxy", "-v"), ("pepsal", "-V")):
        if name in programs:
            done = subprocess.run([programs[name], option], capture_output=True, text=True)
            first = (done.stdout + done.stderr).strip().splitlines()[0]
            # HAProxy adds its date and address.
            found[name] = " ".join(first.split()[:3])
    return found


# --- bad hops ---


def page(nodes: field_path.Nodes, folder: Path) -> float | None:
    """The seconds that a page takes; none if it does not come whole."""
    words = ["python3", field_path.HERE / "page.py", nodes.address, field_path.PORT, folder]
    command = namespaces.inside(nodes.user, *words, OBJECTS, CONNECTIONS)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout) if done.returncode == 0 else None


def one(
    programs: Mapping[str, Path],
    hop: Hop,
    candidate: Candidate,
    files: Path,
    seconds: float,
    seed: int,
    has_page: bool,
) -> record.Row:
    """A page, if there is to be one, and a download over a hop."""
    with (
        tempfile.TemporaryDirectory() as folder,
        field_path.emulated(programs["network"], hop, seed) as nodes,
        field_path.serving(nodes, files, field_gateways.behind(candidate)),
    ):
        place = nodes.place(Path(folder), hop.mbps)
        with candidate.at(place, programs) as (_, guard):
            page_s = page(nodes, files) if has_page else None
            row = field_path.download(nodes, files / "file", seconds)
            guard()
    return row | {"page_s": page_s, "void": nodes.health.get("void")}


def predicted(
    programs: Mapping[str, Path], hop: Hop, candidate: Candidate, seconds: float
) -> float | None:
    """The goodput of a download that the lab predicts for `lasthopd`: the median of some runs."""
    if candidate.kind != "lasthopd" or hop.burst:
        return None
    with tempfile.TemporaryDirectory() as folder:
        text = candidate.scenario(programs["lasthopd"], hop, Path(folder))
    response = f"{round(1e6 / 8 * hop.mbps * seconds)} B"
    keys: dict[str, object] = {
        "duration": f"{field_gateways.SETTLE_S + seconds:g} s",
        # As `field_path.download`: the user asks, and the server answers.
        "flows.0.start": f"{field_gateways.SETTLE_S:g} s",
        "flows.0.traffic": {"requests": {"request": "100 B", "response": response, "count": 1}},
    }
    scenario = lasthop.Scenario.from_toml(text).set(keys)
    found: list[float] = [
        8 * lasthop.run(scenario, seed=seed).rows["payload_bytes"][0] / seconds
        for seed in range(1, PREDICTIONS + 1)
    ]
    return round(1e-6 * statistics.median(found), 3)


def hops(
    programs: Mapping[str, Path],
    which: Sequence[Hop],
    candidates: Iterable[Candidate],
    repeats: int,
    seconds: float,
    has_pages: bool = True,
) -> Iterator[record.Row]:
    """Every hop with every candidate, `repeats` times in turn; then one row for each."""
    candidates = [
        candidate for candidate in candidates if field_gateways.can_run(candidate, programs)
    ]
    found: dict[tuple[Hop, Candidate], list[record.Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        numbers = random.Random(1)
        size = max(hop.mbps for hop in which) * 1e6 / 8 * seconds
        (files / "file").write_bytes(numbers.randbytes(round(size)))
        (files / "page").write_bytes(numbers.randbytes(PAGE))
        for number in range(OBJECTS):
            (files / f"object-{number}").write_bytes(numbers.randbytes(OBJECT))
        cases = [*itertools.product(range(1, repeats + 1), which, candidates)]
        for done, (seed, hop, candidate) in enumerate(cases, 1):
            for _ in range(ATTEMPTS):
                row = one(programs, hop, candidate, files, seconds, seed, has_pages)
                if not row["void"]:
                    break
            found.setdefault((hop, candidate), []).append(row)
            share = 100 * hop.share(row["mbps"])
            about = f"{done}/{len(cases)} {hop}: {candidate.name}: {share:.0f} %"
            wrong = "" if row["ok"] else " WRONG BYTES"
            record.say(f"{about}, page {row['page_s']} s{' void' if row['void'] else ''}{wrong}")
    for (hop, candidate), rows in found.items():
        row = summary(hop, candidate, rows)
        yield row | {"predicted_mbps": predicted(programs, hop, candidate, seconds)}


def summary(hop: Hop, candidate: Candidate, rows: Sequence[record.Row]) -> record.Row:
    """One row of the results: medians, and least and largest."""
    row: record.Row = {
        "mbps": hop.mbps,
        "rtt_ms": hop.rtt,
        "loss": hop.loss,
        "burst": hop.burst,
        "what": candidate.name,
        "runs": len(rows),
        "void": sum(bool(found["void"]) for found in rows),
        "ok": all(found["ok"] for found in rows),
    }
    for name in ("goodput_mbps", "first_byte_s", "page_s"):
        source = "mbps" if name == "goodput_mbps" else name
        values = [found[source] for found in rows if found[source] is not None]
        row[name] = record.spread(values)
        row[f"{name}_missing"] = len(rows) - len(values)
    row["share"] = round(hop.share(row["goodput_mbps"][1]), 4)
    return row


def main() -> int:
    """Measures, keeps the results and prints them; 1 if bytes were wrong."""
    parser = argparse.ArgumentParser(description="lasthopd beside others.")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if absent")
    parser.add_argument("--repeats", type=int, default=5 if full() else 1)
    parser.add_argument("--seconds", type=float, default=20.0 if full() else 12.0)
    parser.add_argument("--output", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: expected {', '.join(PARTS)}")
    namespaces.need("ip", "curl")
    namespaces.ended_in_order()
    programs = {**field_path.built(), **programs_of_others()}
    head = {**record.circumstances(), **versions(programs), "repeats": options.repeats}
    right = True

    def keep(experiment: str, rows: list[record.Row], **about: object) -> None:
        result = {"experiment": experiment, **head, **about, "rows": rows}
        record.keep(options.output / f"{experiment}.json", result)
        for row in rows:
            print(json.dumps(row))

    if "hop" in parts:
        which = ALL if full() else QUICK
        rows = list(hops(programs, which, CANDIDATES, options.repeats, options.seconds))
        keep("field", rows, seconds=options.seconds)
        right = all(row["ok"] for row in rows)
    if "long" in parts:
        rows = list(hops(programs, LONG, LONG_CANDIDATES, options.repeats, LONG_S, False))
        keep("field-long", rows, seconds=LONG_S)
        right &= all(row["ok"] for row in rows)
    if "sizes" in parts:
        keep("field-sizes", list(field_sizes.measured(programs, options.repeats)))
    if "machine" in parts:
        keep("field-machine", list(field_machine.measured(programs, options.repeats)))
    return 0 if right else 1


if __name__ == "__main__":
    namespaces.run(main)
