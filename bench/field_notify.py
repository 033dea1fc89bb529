"""Goodput over a hop that damages packets, with and without notices of them (ETEN).

python bench/field_notify.py [--repeats 2] [--seconds 20]

A user downloads through `lasthopd` in mode spoof before the hop. At the other end, the hop's driver
(lasthop's emulator) reports what arrives damaged to `lasthopd` in mode notify, which notifies the
sender. The notices cross the hop, which damages them, too. It needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import field_gateways
import field_path
import namespaces
import record
from field_gateways import Candidate
from field_matrix import versions
from field_path import Hop, Place

#: Shares of full-sized packets that are damaged.
LOSSES = (0.001, 0.01, 0.05)
#: Round trips of the hop, milliseconds.
ROUND_TRIPS = (40, 600)
RLCI = '{ mechanism = "rlci", signal = false }'
ETEN = '{ mechanism = "eten" }, { mechanism = "guard", trust = true }'


@dataclass(frozen=True)
class Damaging(Hop):
    """A hop with bit errors, whose driver at the far end reports to a socket."""

    socket: str = ""

    def settings(self) -> Iterator[str]:
        """The keys of the scenario that say so."""
        bit = -math.log1p(-self.loss) / (8 * field_path.MTU)
        for setting in super().settings():
            is_errors = setting.startswith("links.1.errors=")
            yield f"links.1.errors={json.dumps({'bit': bit})}" if is_errors else setting
        yield f"link_socket.1.far={self.socket}"


@dataclass(frozen=True)
class Spoofer(Candidate):
    """`lasthopd` in mode spoof without a rate of the hop."""

    mechanisms: str = RLCI

    def configuration(self, place: Place) -> str:
        """Its configuration."""
        text = field_gateways.configuration("spoof", place.lan, place.wan, None)
        tcp = f'congestion = "{self.congestion}", mechanisms = [{self.mechanisms}]'
        return f"{text}tcp = {{ {tcp} }}\n"


CANDIDATES = tuple(
    Spoofer(f"{congestion.upper()}{words}", "lasthopd", congestion, mechanisms=mechanisms)
    for congestion in ("cubic", "bbr")
    for words, mechanisms in (("", RLCI), (" with notices", f"{RLCI}, {ETEN}"))
)


@contextlib.contextmanager
def reporter(program: Path, namespace: str, folder: Path, link: Path) -> Iterator[None]:
    """`lasthopd` in mode notify at the far end of the hop."""
    config = folder / "notify.toml"
    config.write_text(f'wan = "link1"\nmode = "notify"\nlink_socket = "{link}"\n')
    control = folder / "notify"
    words = namespaces.inside(namespace, program, "run", "--config", config, "--socket", control)
    with namespaces.running(words, lambda printed: "running" in printed):
        yield
        status = namespaces.call(namespace, program, "status", "--json", "--socket", control)
        if not json.loads(status)["counters"]["notices sent"]:
            raise namespaces.Problem("no notice was sent")


def goodput(
    programs: Mapping[str, Path], hop: Hop, candidate: Candidate, seconds: float, seed: int
) -> float | None:
    """The goodput of a download, Mb/s; none if the machine was too busy."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        link = folder / "link.sock"
        damaging = Damaging(hop.mbps, hop.rtt, hop.loss, socket=str(link))
        files = folder / "files"
        files.mkdir()
        file = files / "file"
        file.write_bytes(bytes(round(hop.mbps * 1e6 / 8 * seconds * 1.2)))
        nodes = stack.enter_context(field_path.emulated(programs["network"], damaging, seed))
        stack.enter_context(reporter(programs["lasthopd"], nodes.far, folder, link))
        stack.enter_context(field_path.serving(nodes, files, "cubic"))
        guard = stack.enter_context(candidate.at(nodes.place(folder, hop.mbps), programs))[1]
        found = field_path.download(nodes, file, seconds)
        if not found["ok"]:
            raise namespaces.Problem(f"{candidate.name}: wrong bytes")
        guard()
    if nodes.health.get("void"):
        record.say(f"void: {nodes.health['void']}")
        return None
    return float(found["mbps"])


def measure(programs: Mapping[str, Path], repeats: int, seconds: float) -> Sequence[record.Row]:
    """A row for each hop and candidate."""
    rows = []
    for rtt in ROUND_TRIPS:
        for loss in LOSSES:
            hop = Hop(10, rtt, loss)
            for candidate in CANDIDATES:
                of_all = [
                    goodput(programs, hop, candidate, seconds, seed + 1) for seed in range(repeats)
                ]
                record.say(f"{hop}: {candidate.name}: {of_all}")
                kept = [mbps for mbps in of_all if mbps is not None]
                rows.append(
                    {
                        "mbps": hop.mbps,
                        "rtt_ms": rtt,
                        "damaged": loss,
                        "what": candidate.name,
                        "goodput_mbps": record.spread(kept),
                        "void": len(of_all) - len(kept),
                    }
                )
    return rows


def main() -> int:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0, help="of a download")
    options = parser.parse_args()
    namespaces.need("ip", "curl")
    namespaces.ended_in_order()
    programs = field_path.built()
    rows = measure(programs, options.repeats, options.seconds)
    head = {**record.circumstances(), **versions(programs), "repeats": options.repeats}
    result = {"experiment": "field-notify", **head, "seconds": options.seconds, "rows": rows}
    record.keep(record.RESULTS / "field-notify.json", result)
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    namespaces.run(main)
