"""Thousands of connections through `lasthopd` while all goes wrong, and keeps what became of them.

python bench/field_chaos.py [--connections 10000] [--minutes 30] [spoof] [split] [pair]

Connections of all kinds (`bench/field/crowd.py`: slow readers, resets, half-closes, ends that
vanish) are kept open between a user and a server. Meanwhile, every few seconds, the hop goes down,
the gateway reloads its configuration, is upgraded, is restarted, or is killed; in mode `pair`,
either of both gateways. It fails if a byte is wrong, a stream ends early without a failure, a
connection has no outcome in time, or counters do not add up. It needs root and nft.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import field_gateways
import field_machine
import field_path
import namespaces
import record
from namespaces import Problem, call, inside

MODES = ("spoof", "split", "pair")
#: Seconds between two events, and those that a hop is down.
BETWEEN, DOWN = (5.0, 15.0), (0.2, 4.0)
#: What happens, and how often in comparison.
EVENTS = {"hop down": 6, "reload": 3, "upgrade": 4, "restart": 1, "kill": 1}
#: An end that has vanished is given up soon.
TCP = """
[tcp]
time_wait = "1 s"
user_timeout = "60 s"
keep_alive = { idle = "20 s", interval = "5 s", probes = 3 }
"""
VANISHED = """
table inet vanished {
    chain output {
        type filter hook output priority 0
        tcp sport 62000-65535 tcp flags & rst == rst drop
    }
}
"""
HOP = """
table netdev hop {{
    chain ingress {{
        type filter hook ingress device "{device}" priority 0
        drop
    }}
}}
"""
#: The unit's `Nice=`.
NICE = -10
#: Addresses from which the connections come.
USERS = 16
#: Seconds that two gateways may take to know each other again.
CONNECTED = 20.0
#: Seconds that ends may take after the last connection has begun.
REST = 300


def as_its_unit() -> None:
    """Prepares a gateway's process as the unit of its package does."""
    namespaces.many_files()
    os.nice(NICE)


@dataclass
class Gateway:
    """A gateway that can be ended in every way."""

    program: Path
    namespace: str
    folder: Path
    name: str
    configuration: str
    process: subprocess.Popen[bytes] | None = None
    #: The most memory, KiB.
    memory: int = 0
    #: While they were upgraded, packets waited for so many milliseconds.
    pauses: list[int] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        """Its control socket."""
        return self.folder / f"{self.name}.sock"

    def start(self) -> None:
        """Runs it, and waits until it answers."""
        config = self.folder / f"{self.name}.toml"
        config.write_text(self.configuration)
        words = [self.program, "run", "--config", config, "--socket", self.socket]
        log = (self.folder / f"{self.name}.log").open("ab")
        self.process = subprocess.Popen(
            inside(self.namespace, *words),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
            preexec_fn=as_its_unit,
        )
        end = time.monotonic() + 30
        while self.ask() is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise Problem(f"{self.name} does not start: {self.log()}")
            time.sleep(0.05)

    def ask(self) -> record.Row | None:
        """Its status."""
        words = [self.program, "status", "--json", "--socket", self.socket]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True)
        if done.returncode:
            return None
        status: record.Row = json.loads(done.stdout)
        return status

    def carries(self) -> bool:
        """Whether it splits connections: one of a pair once it knows the other one."""
        status = self.ask()
        return status is not None and status["gauges"].get("associations", 1) > 0

    def log(self) -> str:
        """The end of what it has said."""
        return (self.folder / f"{self.name}.log").read_text()[-2000:]

    def tell(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        """Ends it."""
        self.tell(number)
        assert self.process is not None
        self.process.wait(60)

    def upgrade(self) -> None:
        """Lets its program take its own place."""
        words = [self.program, "upgrade", "--socket", self.socket]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise Problem(f"{self.name}: not upgraded: {done.stderr}\n{self.log()}")
        said = re.findall(r"paused_milliseconds\S*?=\S*?(\d+)", self.log())
        self.pauses.append(int(said[-1]))

    def look(self) -> None:
        """Takes note of its memory."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(OSError, StopIteration):
                self.memory = max(self.memory, field_machine.resident_kib(self.process.pid))

    def check(self) -> str | None:
        """Why its counters do not add up."""
        status = self.ask()
        if status is None:
            return f"{self.name} does not answer"
        counters, gauges = status["counters"], status["gauges"]
        begun = counters["split connections"] + counters["connections taken over"]
        over = counters["split connections that are over"]
        if begun != over + gauges["split_connections"]:
            return f"{self.name}: {begun} begun, {over} over, {gauges['split_connections']} open"
        return None


@contextlib.contextmanager
def gateways(
    program: Path, mode: str, names: dict[str, str], folder: Path
) -> Iterator[list[Gateway]]:
    """The gateways of a mode, which run."""
    text = field_gateways.configuration(mode, "lan", "wan", None)
    near = Gateway(program, names["gateway"], folder, "near", text + TCP)
    found = [near]
    if mode == "pair":
        far = Gateway(program, names["far"], folder, "far", "")
        publics = []
        for gateway in (near, far):
            private = folder / f"{gateway.name}.key"
            publics.append(call(gateway.namespace, program, "key", "--file", private).strip())
        for index, gateway in enumerate((near, far)):
            peer = f"10.66.2.{2 - index}:{field_gateways.PEER_PORT}"
            gateway.configuration = (
                f'{text}peer = "{peer}"\npeer_key = "{publics[1 - index]}"\n'
                f'key = "{folder / f"{gateway.name}.key"}"\nrate = "2 Gbit/s"\n{TCP}'
            )
        found.append(far)
    try:
        for gateway in found:
            gateway.start()
        yield found
    finally:
        for gateway in found:
            if gateway.process is not None and gateway.process.poll() is None:
                gateway.end(signal.SIGTERM)


def happen(what: str, gateway: Gateway, draw: random.Random) -> None:
    """Lets something happen."""
    match what:
        case "hop down":
            call_nft(gateway.namespace, HOP.format(device="wan"))
            time.sleep(draw.uniform(*DOWN))
            call(gateway.namespace, "nft", "delete", "table", "netdev", "hop")
        case "reload":
            gateway.tell(signal.SIGHUP)
        case "upgrade":
            gateway.upgrade()
        case "restart":
            gateway.end(signal.SIGTERM)
            gateway.start()
        case "kill":
            gateway.end(signal.SIGKILL)
            time.sleep(draw.uniform(0, 2))
            gateway.start()


def call_nft(namespace: str, rules: str) -> None:
    """Adds rules."""
    words = inside(namespace, "nft", "-f", "-")
    done = subprocess.run(words, input=rules, capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"nft: {done.stderr}")


def end_if_it_runs(process: subprocess.Popen[str]) -> None:
    """Ends a program after an error."""
    if process.poll() is None:
        process.kill()


def end_of(process: subprocess.Popen[str]) -> record.Row:
    """What one end of the connections has printed last."""
    out = process.communicate(timeout=REST)[0]
    found: record.Row = json.loads(out.strip().splitlines()[-1])
    return found


def run(program: Path, mode: str, connections: int, seconds: float, seed: int) -> record.Row:
    """One mode. The result says what became of the connections."""
    draw = random.Random(seed)
    nodes = ("server", "gateway", "far", "user") if mode == "pair" else field_machine.NODES
    with (
        field_machine.chain(nodes) as names,
        tempfile.TemporaryDirectory() as folder,
        gateways(program, mode, names, Path(folder)) as found,
        contextlib.ExitStack() as stack,
    ):
        call(names["user"], "sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 61999")
        call_nft(names["user"], VANISHED)
        users = [f"10.66.{len(names) - 1}.{number}" for number in range(2, 2 + USERS)]
        for user_address in users[1:]:
            call(names["user"], "ip", "addr", "add", f"{user_address}/24", "dev", "end")
        crowd = ["python3", field_path.HERE / "crowd.py"]
        address = field_machine.SERVER

        def begin(node: str, *words: object) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                inside(names[node], *crowd, *words),
                stdout=subprocess.PIPE,
                text=True,
                process_group=0,
                preexec_fn=namespaces.many_files,
            )
            stack.callback(end_if_it_runs, process)
            assert process.stdout is not None
            if not process.stdout.readline():
                raise Problem(f"crowd.py {words[0]} does not start")
            return process

        server = begin("server", "serve", address, field_path.PORT)
        words = [address, field_path.PORT, connections, seconds, seed, *users]
        user = begin("user", "drive", *words)
        happened: dict[str, int] = dict.fromkeys(EVENTS, 0)
        away: list[tuple[float, float]] = []
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, draw.uniform(*BETWEEN)))
            what = draw.choices(list(EVENTS), list(EVENTS.values()))[0]
            gateway = draw.choice(found)
            for one in found:
                one.look()
            began = time.monotonic()
            happen(what, gateway, draw)
            if what in ("restart", "kill"):
                patience = time.monotonic() + CONNECTED
                while not all(one.carries() for one in found) and time.monotonic() < patience:
                    time.sleep(0.1)
                away.append((began, time.monotonic()))
            happened[what] += 1
            record.say(f"{mode}: {what} at {gateway.name}, {until - time.monotonic():.0f} s left")
        results = {"user": end_of(user)}
        # Those of the server's ends whose peer has vanished are told by the gateway, or by their
        # kernel if their handshake was while there was none.
        time.sleep(150)
        server.terminate()
        results["server"] = end_of(server)
        problems = [problem for one in found if (problem := one.check())]
        handshakes = results["user"].pop("vanishing")
        carried = []
        for began, user_end in results["server"]["unheard"]:
            first, last = handshakes.get(user_end, (began, began))
            if not any(first <= back and start <= last for start, back in away):
                carried.append(f"{user_end} with {until - last:.1f} s left")
        if carried:
            told = f"{len(carried)} ends whose peers had vanished were not told; they began as"
            problems.append(f"{told} {', '.join(carried[:20])}")
        pauses = sorted(pause for one in found for pause in one.pauses)
        return {
            "mode": mode,
            "connections": connections,
            "seconds": seconds,
            "seed": seed,
            "events": happened,
            **{name: result["counts"] for name, result in results.items()},
            "faults": [fault for result in results.values() for fault in result["faults"]],
            "without outcome": {
                name: result["without outcome"] for name, result in results.items()
            },
            "counters": problems,
            "memory_mib": [round(one.memory / 1024) for one in found],
            "upgrades_ms": pauses,
        }


def faults(row: record.Row) -> list[str]:
    """What must not be."""
    found = [*row["faults"], *row["counters"]]
    for end in ("user", "server"):
        if row[end]["open"]:
            ends = "; ".join(row["without outcome"][end])
            found.append(f"{row[end]['open']} of the {end}'s ends have no outcome: {ends}")
        if timed_out := row[end].get("failed: Connection timed out"):
            found.append(f"{timed_out} of the {end}'s ends timed out, and their peers were there")
        if not row[end].get("complete"):
            found.append(f"no connection of the {end} is complete")
    return found


def main(arguments: Sequence[str]) -> int:
    """Runs the modes, and keeps the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"of {', '.join(MODES)}")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    modes = given.modes or list(MODES)
    if unknown := set(modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}: expected {', '.join(MODES)}")
    namespaces.need("ip", "nft")
    namespaces.ended_in_order()
    record.say("compiling lasthopd")
    program = field_path.lasthopd()
    circumstances = record.circumstances()
    rows, failed = [], False
    for mode in modes:
        row = run(program, mode, given.connections, 60 * given.minutes, given.seed)
        record.say(json.dumps(row))
        rows.append({**row, "date": circumstances["date"]})
        for fault in faults(row):
            record.say(f"FAULT, {mode}: {fault}")
            failed = True
    file = record.RESULTS / "field-chaos.json"
    all_rows = record.together(file, rows, lambda row: MODES.index(row["mode"]))
    record.keep(file, {**circumstances, "rows": all_rows})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
