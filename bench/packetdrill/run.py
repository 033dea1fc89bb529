"""Google's packetdrill, and public scripts for it, against lasthop's TCP.

python bench/packetdrill/run.py PACKETDRILL SCRIPTS [PATTERN...]

PACKETDRILL is the program; SCRIPTS is a folder that holds the repositories of `scripts.txt`, each
under its name there: google/packetdrill, freebsd-net/tcp-testsuite, and Linux. Neither is part of
lasthop. Every script runs in a network namespace of its own, so root is needed. Without a PATTERN
(part of a script's path) all run, and the outcome is kept for the book. With --beyond the scripts
of `beyond.txt` run: those that not every conforming stack can pass.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("scripts.txt")
RESULT = ROOT / "bench" / "results" / "packetdrill.json"
BEYOND = Path(__file__).with_name("beyond.txt")
BEYOND_RESULT = ROOT / "bench" / "results" / "packetdrill-beyond.json"
LIBRARY = ROOT / "target" / "release" / "liblasthop_packetdrill.so"

# Virtual time is short; what takes longer has got stuck.
PATIENCE_S = 30

# Commands of scripts that would look for an interface that is not there; `sysctl` is there even
# where the system has none, and leaves out what this kernel does not know.
COMMANDS = {
    "ethtool": "exit 0",
    "ip": "exit 0",
    "nstat": "exit 0",
    "tc": "exit 0",
    "sysctl": """for setting; do
    case $setting in *=*) ;; *) continue ;; esac
    name=$(printf %s "${setting%%=*}" | tr . /)
    file=/proc/sys/$name
    # What the kernel of this machine refuses, the shared object reads elsewhere.
    other=$LASTHOP_SYSCTL/${name##*/}
    rm -f "$other"
    if [ -w "$file" ] && printf '%s\\n' "${setting#*=}" 2>/dev/null >"$file"; then continue; fi
    printf '%s\\n' "${setting#*=}" >"$other"
done
exit 0""",
}

# The Fast Open cookie that our stack grants to the scripts' peer: its secrets are always the same.
# Scripts contain a placeholder for it.
COOKIES = {"ipv4": "8bcb7b042a63fc71", "ipv6": "20ff8161b00ee913"}

# The cookies that Linux grants with the keys of scripts.
LINUX_COOKIES = ("3021b9d889017eeb", "00abaaabe8e954c2", "1313a2da994a0951", "76d2c1c530f51f79")

# packetdrill's options for the version of IP.
IP_OPTIONS = {
    "ipv4": [
        "--ip_version=ipv4",
        "--local_ip=192.168.0.1",
        "--gateway_ip=192.168.0.1",
        "--netmask_ip=255.255.0.0",
        "--remote_ip=192.0.2.1",
    ],
    "ipv6": [
        "--ip_version=ipv6",
        "--local_ip=fd3d:0a0b:17d6::1",
        "--gateway_ip=fd3d:0a0b:17d6:8888::1",
        "--remote_ip=fd3d:fa7b:d17d::1",
    ],
    "ipv4-mapped-ipv6": [
        "--ip_version=ipv4-mapped-ipv6",
        "--local_ip=192.168.0.1",
        "--gateway_ip=192.168.0.1",
        "--netmask_ip=255.255.0.0",
        "--remote_ip=192.0.2.1",
    ],
}


@dataclass(frozen=True)
class Case:
    """A script with a version of IP."""

    script: str
    ip: str

    @property
    def suite(self) -> str:
        """Where the script comes from."""
        return self.script.split("/", 1)[0]


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `why` is empty if it has passed."""

    script: str
    ip: str
    why: str


def cases(scripts: Path, patterns: Sequence[str]) -> Iterator[Case]:
    """All cases in the order of a list. Scripts of FreeBSD name their version of IP."""
    for script in scripts.read_text().split():
        if patterns and not any(pattern in script for pattern in patterns):
            continue
        if script.startswith("freebsd"):
            yield Case(script, "ipv6" if script.endswith("ipv6.pkt") else "ipv4")
        else:
            yield from (Case(script, ip) for ip in IP_OPTIONS)


def relax(text: str, suite: str) -> str:
    """A script without what is its system's own choice."""
    return relax_freebsd(text) if suite.startswith("freebsd") else relax_linux(text)


def relax_linux(text: str) -> str:
    """A script for Linux without what is Linux's own choice.

    That is: Fast Open cookies, their padding (RFC 9293 has zeros, Linux no-operations), which
    segments carry an AccECN option, with which counters and in which place, and whether pure
    acknowledgments are ECN-capable (RFC 3168 does not permit it).
    """
    lines = []
    accurate = bool(re.search(r"<[^<>]*ECN e[01]b|tcp_ecn=[345]", text))
    for line in text.splitlines():
        for cookie in LINUX_COOKIES:
            line = line.replace(cookie, "TFO_COOKIE")
        if re.match(r"\s*[+*]?[\s\d.~+]*>\s", line):
            line = re.sub(r"(FO(?: \w+)?)((?:,nop)+)>", padded_with_zeros, line)
            if accurate and ("ECN e" in line or "TS val" not in line):
                line = line.replace("[ect0] ", "") if "(0) ack" in line else line
                line = re.sub(r"\s*(<.*>)?\s*(//.*)?$", " <...>", line, count=1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def padded_with_zeros(option: re.Match[str]) -> str:
    """A Fast Open option that is padded by `eol`."""
    return f"{option[1]}{option[2].replace('nop', 'eol')}>"


def relax_freebsd(text: str) -> str:
    """A script of FreeBSD's without what is FreeBSD's own choice.

    That is: the advertised windows, the layout of a SYN's options, the sizes of buffers, and the
    commands of its system.
    """
    lines = []
    for line in text.splitlines():
        if re.search(r"getsockopt\(\d+, SOL_SOCKET, SO_(RCV|SND)BUF", line):
            continue
        line = re.sub(r"`(sysctl|sockstat|tcpdrop)[^`]*`", "`true`", line)
        expected = re.match(r"(\s*[+*]?[\s\d.~+]*>\s)(.*)", line)
        if expected:
            time, packet = expected.groups()
            packet = re.sub(r"win\s+\d+", "", packet)
            if re.match(r"\s*S", packet):
                packet = re.sub(r"<.*>", "<...>", packet)
            line = time + packet
        lines.append(line)
    return "\n".join(lines) + "\n"


class Runner:
    """Plays scripts."""

    def __init__(self, packetdrill: Path, scripts: Path, library: Path, work: Path) -> None:
        self.packetdrill = packetdrill
        self.scripts = scripts
        self.library = library
        self.work = work
        self.commands = work / "commands"
        self.commands.mkdir()
        for name, body in COMMANDS.items():
            command = self.commands / name
            command.write_text(f"#!/bin/sh\n{body}\n")
            command.chmod(0o755)

    def play(self, case: Case) -> Outcome:
        """Plays a script and says what became of it."""
        script = self.scripts / case.script
        text = script.read_text()
        relaxed = relax(text, case.suite)
        if relaxed != text:
            # Beside the original nothing is written.
            copy = self.work / f"{case.ip}_{case.script.replace('/', '_')}"
            copy.write_text(relaxed)
            script = copy
        command = [
            *("unshare", "--net", "env", f"LD_PRELOAD={self.library}"),
            *(str(self.packetdrill), f"--so_filename={self.library}"),
            f"--so_flags={flags(case, text)}",
            *options(case),
            "--send_omit_free",
            str(script),
        ]
        with tempfile.TemporaryDirectory(dir=self.work) as settings:
            return self.run(case, script, command, settings)

    def run(self, case: Case, script: Path, command: list[str], settings: str) -> Outcome:
        """Runs packetdrill; `settings` is the directory of what the kernel refuses."""
        path = f"{self.commands}:{os.environ['PATH']}"
        environment = dict(os.environ, PATH=path, LASTHOP_SYSCTL=settings)
        try:
            done = subprocess.run(
                command,
                cwd=(self.scripts / case.script).parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(case.script, case.ip, f"did not end within {PATIENCE_S} s")
        why = "" if done.returncode == 0 else complaint(done.stdout + done.stderr, script)
        return Outcome(case.script, case.ip, why)


def options(case: Case) -> list[str]:
    """packetdrill's options. Scripts of FreeBSD set the IP version of packets themselves."""
    wide = case.ip == "ipv6" and not case.suite.startswith("freebsd")
    cookie = COOKIES["ipv6" if case.ip == "ipv6" else "ipv4"]
    defines = [f"TFO_COOKIE={cookie}", *([] if case.ip == "ipv6" else ["CODE=host_unreachable"])]
    extra = ["--mtu=1520"] if wide else []
    return [*IP_OPTIONS[case.ip], *(f"--define={define}" for define in defines), *extra]


def flags(case: Case, text: str) -> str:
    """The flags of the shared object: the system whose behaviour is expected, and the MTU."""
    said = "\n".join([*options(case), text])
    mtu = re.search(r"^--mtu=(\d+)", said, re.MULTILINE)
    profile = "freebsd" if case.suite.startswith("freebsd") else "linux"
    return f"profile={profile},mtu={mtu[1] if mtu else 1500}"


def complaint(output: str, script: Path) -> str:
    """The line of packetdrill's output that says what was wrong, and what the packets were."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if script.name in line), 0)
    text = " / ".join(lines[first : first + 3]) if lines else "failed without a word"
    text = re.sub(r"/tmp/code_\w+", "code", text)
    return text.replace(f"{script}:", "line ").replace(f"{script.name}:", "line ")


def render(outcomes: Sequence[Outcome]) -> str:
    """The result file. Nothing in it depends on when and where it was made."""
    rows = ",\n".join(f"  {json.dumps(asdict(outcome))}" for outcome in outcomes)
    return f'{{\n "experiment": "packetdrill",\n "rows": [\n{rows}\n ]\n}}\n'


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("packetdrill", type=Path, help="the program")
    parser.add_argument("scripts", type=Path, help="the folder that holds the repositories")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="part of a script's path")
    parser.add_argument("--beyond", action="store_true", help=f"play the list {BEYOND.name}")
    parser.add_argument("--library", type=Path, default=LIBRARY, help="the shared object")
    return parser.parse_args()


def check(given: argparse.Namespace, chosen: Sequence[Case]) -> None:
    """Ends with a message if something that is needed is not there."""
    for path in (given.packetdrill, given.library):
        if not path.is_file():
            sys.exit(f"run.py: {path}: no such file")
    if os.geteuid() != 0:
        sys.exit("run.py: a network namespace for each script takes root")
    missing = [case.script for case in chosen if not (given.scripts / case.script).is_file()]
    if missing:
        others = f" (nor {len(missing) - 1} more)" if len(missing) > 1 else ""
        sys.exit(f"run.py: {given.scripts / missing[0]}: no such file{others}")
    if not chosen:
        sys.exit(f"run.py: no script of the list has {' or '.join(given.patterns)} in its path")


def main() -> int:
    """Plays all that was asked for."""
    given = parse()
    scripts, result = (BEYOND, BEYOND_RESULT) if given.beyond else (LIST, RESULT)
    chosen = list(cases(scripts, given.patterns))
    check(given, chosen)
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count()) as pool:
        program, library = given.packetdrill.resolve(), given.library.resolve()
        runner = Runner(program, given.scripts.resolve(), library, Path(work))
        outcomes = list(pool.map(runner.play, chosen))
    failed = [outcome for outcome in outcomes if outcome.why]
    for outcome in failed:
        print(f"{outcome.script} ({outcome.ip})\n    {outcome.why}")
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} passed")
    if not given.patterns:
        result.write_text(render(outcomes))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
