"""What a pair of gateways costs the machine: a fast network of veth devices, without an emulator.

python bench/field_pair.py [--repeats 3] [--beside NAME=PROGRAM]

Throughput and CPU time of one and of twenty flows (iperf3) from a server to a user, with two
gateways between them and without. CPU time is that of the whole machine (/proc/stat), with both
ends and both gateways, so nothing else may run on it. `--beside` measures another `lasthopd`, in
turn with the present one; its values are printed and not kept. It needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import field_machine
import field_path
import namespaces
import record
from field_gateways import PEER_PORT, SETTLE_S

NODES = ("server", "near", "far", "user")
#: The gateways, and their addresses at the hop.
ENDS = {"near": "10.66.2.1", "far": "10.66.2.2"}
FLOWS = (1, 20)
DIRECT = "direct"


@contextlib.contextmanager
def gateways(names: Mapping[str, str], program: Path) -> Iterator[None]:
    """`lasthopd` at both ends of the hop, which has no rate in their configuration."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        public = {}
        for node in ENDS:
            key = folder / f"{node}.key"
            public[node] = namespaces.call(names[node], program, "key", "--file", key).strip()
        for node, other in zip(ENDS, reversed(ENDS), strict=True):
            config = folder / f"{node}.toml"
            config.write_text(
                'lan = "lan"\nwan = "wan"\nmode = "pair"\n'
                f'peer = "{ENDS[other]}:{PEER_PORT}"\npeer_key = "{public[other]}"\n'
                f'key = "{folder / node}.key"\n'
            )
            words = [program, "run", "--config", config, "--socket", folder / node]
            run = namespaces.inside(names[node], *words)
            stack.enter_context(namespaces.running(run, lambda printed: "running" in printed))

        def carried() -> list[int]:
            states = (
                namespaces.call(names[node], program, "status", "--json", "--socket", folder / node)
                for node in ENDS
            )
            return [json.loads(state)["counters"]["split connections"] for state in states]

        time.sleep(SETTLE_S)
        yield
        if 0 in carried():
            raise namespaces.Problem("the gateways have carried no connection")


def named(words: str) -> tuple[str, Path]:
    """A name and a program."""
    name, found, file = words.partition("=")
    if not (name and found and Path(file).is_file()):
        raise argparse.ArgumentTypeError(
            f"expected NAME=PROGRAM, and a program there, got {words!r}"
        )
    return name, Path(file)


def main() -> int:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--beside", action="append", default=[], type=named, metavar="NAME=PROGRAM")
    options = parser.parse_args()
    namespaces.need("ip", "iperf3")
    namespaces.ended_in_order()
    kept: dict[str, Path | None] = {DIRECT: None, "lasthopd": field_path.lasthopd()}
    programs = kept | dict(options.beside)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in programs}
    for _ in range(options.repeats):
        for name, program in programs.items():
            with field_machine.chain(NODES) as names, contextlib.ExitStack() as stack:
                if program:
                    stack.enter_context(gateways(names, program))
                for what, value in field_machine.throughput(names, FLOWS):
                    found[name].setdefault(what, []).append(value)
                    record.say(f"{name}: {what} {value:.4g}")
    rows = [
        {"what": name} | {what: record.spread(several) for what, several in values.items()}
        for name, values in found.items()
    ]
    head = {"experiment": "field-pair", **record.circumstances(), "repeats": options.repeats}
    of_book = [row for row in rows if row["what"] in kept]
    record.keep(record.RESULTS / "field-pair.json", {**head, "rows": of_book})
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    namespaces.run(main)
