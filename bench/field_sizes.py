"""How long downloads of a packet to 100 MB take: through `lasthopd` in mode `spoof`, and directly.

A hop without losses is where a gateway has least to give, and a short download has no time to make
up for what a gateway costs at its start.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import field_gateways
import field_path
import namespaces
import record
from field_gateways import Candidate
from field_path import Hop

CANDIDATES = (
    Candidate("direct, CUBIC", "direct"),
    Candidate("lasthopd spoof, no rate", "lasthopd", rate=False),
    Candidate("lasthopd spoof", "lasthopd"),
)
#: The hops, and the largest download over each.
HOPS: Mapping[Hop, int] = {
    Hop(10, 600, 0.0): 10**7,
    Hop(10, 40, 0.0): 10**7,
    Hop(100, 100, 0.0): 10**8,
    Hop(10, 600, 0.001): 10**6,
    Hop(10, 40, 0.01): 10**6,
    Hop(100, 100, 0.01): 10**6,
}
SIZES = tuple(10**power for power in range(3, 9))
#: Seconds that a download may take.
PATIENCE = 120.0


def measured(programs: Mapping[str, Path], repeats: int) -> Iterator[record.Row]:
    """Every hop with every candidate, `repeats` times in turn; then one row for each size."""
    found: dict[tuple[Hop, Candidate, int], list[float]] = {}
    void: dict[tuple[Hop, Candidate], int] = {}
    cases = [*itertools.product(range(1, repeats + 1), HOPS, CANDIDATES)]
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        numbers = random.Random(1)
        for size in SIZES:
            (files / str(size)).write_bytes(numbers.randbytes(size))
        for done, (seed, hop, candidate) in enumerate(cases, 1):
            seconds, is_void = one(programs, hop, candidate, files, seed)
            for size, value in seconds.items():
                found.setdefault((hop, candidate, size), []).append(value)
            void[hop, candidate] = void.get((hop, candidate), 0) + is_void
            times = ", ".join(f"{value:.2f}" for value in seconds.values())
            record.say(f"{done}/{len(cases)} {hop}: {candidate.name}: {times} s")
    for (hop, candidate, size), values in found.items():
        yield {
            "mbps": hop.mbps,
            "rtt_ms": hop.rtt,
            "loss": hop.loss,
            "burst": hop.burst,
            "what": candidate.name,
            "bytes": size,
            "seconds": record.spread(values),
            "void": void[hop, candidate],
        }


def one(
    programs: Mapping[str, Path], hop: Hop, candidate: Candidate, files: Path, seed: int
) -> tuple[dict[int, float], bool]:
    """The seconds of a download of each size over a hop, one after the other, and whether the
    machine was too busy."""
    found: dict[int, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        field_path.emulated(programs["network"], hop, seed) as nodes,
        field_path.serving(nodes, files, field_gateways.behind(candidate)),
    ):
        # A download is to know nothing of the one before.
        namespaces.sysctl(nodes.server, tcp_no_metrics_save=1)
        with candidate.at(nodes.place(Path(folder), hop.mbps), programs) as (_, guard):
            for size in SIZES:
                if size > HOPS[hop]:
                    break
                row = field_path.download(nodes, files / str(size), PATIENCE)
                if not row["ok"] or row["bytes"] != size:
                    what = f"{row['bytes']} of {size} bytes, {'right' if row['ok'] else 'WRONG'}"
                    raise namespaces.Problem(f"{hop}: {candidate.name}: {what}")
                found[size] = float(row["seconds"])
            guard()
    return found, bool(nodes.health.get("void"))
