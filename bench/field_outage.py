"""How soon data comes again after an outage of the hop, through `lasthopd` and others.

python bench/field_outage.py [--repeats 3] [--outage 8]

During a download, both ends of the hop lose their carrier, as a modem without a signal tells its
router, and have it again some seconds later. The result is the time from then until new data
arrives at the user. It needs root, and haproxy if HAProxy is to be measured, too.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import field_gateways
import field_path
import namespaces
import record
from field_gateways import Candidate
from field_matrix import versions
from field_path import Hop

HOPS = (Hop(10, 40, 0.0), Hop(10, 600, 0.0))
CANDIDATES = (
    *(Candidate(f"direct, {name.upper()}", "direct", name) for name in ("cubic", "bbr")),
    *(Candidate(f"HAProxy, {name.upper()}", "haproxy", name) for name in ("cubic", "bbr")),
    Candidate("lasthopd spoof, no rate", "lasthopd", rate=False),
    *(Candidate(f"lasthopd {mode}", "lasthopd", mode=mode) for mode in ("spoof", "split", "pair")),
)
#: Seconds of a download before the outage; the start of each moves by a part of a second, so that
#: timers are at other places.
BEFORE, LATER = 6.0, 0.37
#: Seconds after an outage in which data has to come.
PATIENCE = 120.0
#: Requests of ioctl (linux/if_tun.h).
TUNSETCARRIER, TUNGETDEVNETNS = 0x400454E2, 0x54E3


def devices(process: int, name: str) -> Iterator[int]:
    """Copies of a process's files of TUN devices with a name, in whatever namespace."""
    number = os.pidfd_open(process)
    try:
        for file in Path(f"/proc/{process}/fdinfo").iterdir():
            if re.search(rf"^iff:\s*{name}$", file.read_text(), re.MULTILINE):
                copy = namespaces.copied(number, file)
                try:
                    yield copy
                finally:
                    os.close(copy)
    finally:
        os.close(number)


def set_carrier(process: int, nodes: Sequence[str], is_there: bool) -> None:
    """Gives the hop's devices of an emulator a carrier, or takes it away."""
    wanted = {Path(f"/run/netns/{name}").stat().st_ino for name in nodes}
    found = 0
    for device in devices(process, "link1"):
        namespace = fcntl.ioctl(device, TUNGETDEVNETNS)
        is_wanted = os.fstat(namespace).st_ino in wanted
        os.close(namespace)
        if is_wanted:
            fcntl.ioctl(device, TUNSETCARRIER, struct.pack("i", is_there))
            found += 1
    if found != len(wanted):
        raise namespaces.Problem(f"{found} of {len(wanted)} devices of the hop were found")


def silence(
    programs: Mapping[str, Path], hop: Hop, candidate: Candidate, outage: float, number: int
) -> float:
    """The seconds from the end of an outage to new data."""
    with tempfile.TemporaryDirectory() as files, contextlib.ExitStack() as stack:
        size = round(hop.mbps * 1e6 / 8 * (BEFORE + outage + PATIENCE))
        with (Path(files) / "file").open("wb") as file:
            file.truncate(size)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = stack.enter_context(field_path.emulated(programs["network"], hop, number))
        stack.enter_context(
            field_path.serving(nodes, Path(files), field_gateways.behind(candidate))
        )
        guard = stack.enter_context(candidate.at(nodes.place(folder, hop.mbps), programs))[1]
        program = ["python3", "-u", field_path.HERE / "arrivals.py"]
        words = namespaces.inside(nodes.user, *program, nodes.address, field_path.PORT, "file")
        user = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        stack.callback(user.wait)
        stack.callback(user.kill)
        assert user.stdout is not None
        if not user.stdout.readline():
            raise namespaces.Problem("no data comes")
        time.sleep(BEFORE + LATER * number)
        ends = [nodes.gateway, nodes.far]
        set_carrier(nodes.process, ends, False)
        time.sleep(outage)
        set_carrier(nodes.process, ends, True)
        up = time.monotonic()
        impatient = threading.Timer(PATIENCE, user.kill)
        impatient.start()
        stack.callback(impatient.cancel)
        # There may have been silences before.
        came = next((at for at in map(float, user.stdout) if at > up), None)
        if came is None:
            raise namespaces.Problem("the connection has ended, or no data comes any more")
        guard()
    return came - up


def main() -> int:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--outage", type=float, default=8.0, help="seconds")
    options = parser.parse_args()
    namespaces.need("ip")
    namespaces.ended_in_order()
    programs = field_path.built()
    if (haproxy := shutil.which("haproxy")) and shutil.which("nft"):
        programs["haproxy"] = Path(haproxy)
    else:
        record.say("WITHOUT HAPROXY: not installed; try: apt-get install haproxy nftables")
    candidates = [
        candidate for candidate in CANDIDATES if field_gateways.can_run(candidate, programs)
    ]
    found: dict[tuple[Hop, Candidate], list[float]] = {}
    for number in range(options.repeats):
        for hop in HOPS:
            for candidate in candidates:
                seconds = silence(programs, hop, candidate, options.outage, number)
                found.setdefault((hop, candidate), []).append(seconds)
                record.say(f"{number + 1} {hop}: {candidate.name}: {seconds:.3f} s")
    rows = [
        {
            "mbps": hop.mbps,
            "rtt_ms": hop.rtt,
            "what": candidate.name,
            "silence_s": record.spread(of_both),
        }
        for (hop, candidate), of_both in found.items()
    ]
    head = {**record.circumstances(), **versions(programs), "repeats": options.repeats}
    result = {"experiment": "field-outage", **head, "outage_s": options.outage, "rows": rows}
    record.keep(record.RESULTS / "field-outage.json", result)
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    namespaces.run(main)
