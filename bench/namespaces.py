"""The programs of a measurement: compiled, in network namespaces, and ended in order.

Whatever is started here is ended with the `with` block in which it was started, after an error and
after Ctrl-C, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import record

#: What is needed, and the packages of Debian that have it.
PACKAGES = {
    "ab": "apache2-utils",
    "curl": "curl",
    "dumpcap": "wireshark-common",
    "haproxy": "haproxy",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "nft": "nftables",
    "openssl": "openssl",
    "ping": "iputils-ping",
    "tc": "iproute2",
    "tshark": "tshark",
}
#: Seconds until a program has to be ready.
PATIENCE = 20.0
#: As many open files as any of the programs may need.
FILES = 65_536
#: The system call, which has this number on all machines (`pidfd_getfd(2)`).
PIDFD_GETFD = 438


class Problem(SystemExit):
    """Why nothing can be measured."""


def need(*tools: str) -> None:
    """Ends the program if a tool is missing, with the command that installs it."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        packages = " ".join(PACKAGES[tool] for tool in missing)
        raise Problem(f"not installed: {', '.join(missing)}; try: apt-get install {packages}")
    if os.geteuid() != 0:
        raise Problem("network namespaces need root")


def build(package: str, *what: str) -> Path:
    """Compiles programs and returns the folder that they are in."""
    words = ["cargo", "build", "--quiet", "--release", "-p", package, *what]
    if subprocess.run(words, cwd=record.ROOT).returncode:
        raise Problem(f"{package} does not compile")
    return Path(os.environ.get("CARGO_TARGET_DIR", record.ROOT / "target")) / "release"


def inside(namespace: str, *command: object) -> list[str]:
    """The command in a namespace."""
    return ["ip", "netns", "exec", namespace, *map(str, command)]


def call(namespace: str, *command: object) -> str:
    """What a command in a namespace prints."""
    done = subprocess.run(inside(namespace, *command), capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def sysctl(namespace: str, **values: object) -> None:
    """Sets `net.ipv4` settings of a namespace."""
    call(namespace, "sysctl", "-qw", *(f"net.ipv4.{key}={value}" for key, value in values.items()))


def files_allowed() -> int:
    """How many files a program may have open: `FILES` if this machine allows it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < FILES:
        with contextlib.suppress(ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
            return FILES
        return hard
    return FILES


def many_files() -> None:
    """Lets a program open many files."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_allowed(), hard))


@contextlib.contextmanager
def running(
    command: Sequence[str], ready: Callable[[str], bool], patience: float = PATIENCE
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command meanwhile, once it is ready by what it has printed, and ends it."""
    with tempfile.TemporaryFile() as log:
        # Ctrl-C is for this program alone, which ends the others in order.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
            preexec_fn=many_files,
        )

        def printed() -> str:
            return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")

        try:
            end = time.monotonic() + patience
            while not ready(printed()):
                if process.poll() is not None or time.monotonic() > end:
                    raise Problem(f"{' '.join(command)} does not start: {printed().strip()}")
                time.sleep(0.02)
            yield process
            if process.poll() is not None:
                raise Problem(f"{' '.join(command)} has ended: {printed().strip()}")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                record.say(f"{command[4]} does not end by SIGTERM")
                process.kill()
                process.wait()


@contextlib.contextmanager
def background(
    namespace: str, *command: object, ready: str = "", ending: signal.Signals = signal.SIGTERM
) -> Iterator[None]:
    """Runs a command in a namespace meanwhile, once it has printed `ready`, and ends it.
    Unlike that of `running`, it may end by itself."""
    process = subprocess.Popen(
        inside(namespace, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        while ready and ready not in process.stdout.readline():
            if process.poll() is not None:
                raise Problem(f"{' '.join(map(str, command))} does not start")
        yield
    finally:
        process.send_signal(ending)
        process.communicate()


def listens(namespace: str, port: int) -> bool:
    """Whether a program in the namespace listens on a TCP port."""
    return f":{port} " in call(namespace, "ss", "-Hltn")


def copied(process: int, file: Path) -> int:
    """A copy of a file that another process has open: of that process, a pidfd."""
    copy = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, int(file.name), 0)
    if copy < 0:
        raise Problem(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    return int(copy)


def set_congestion(process: int, congestion: str) -> None:
    """Gives the connections that a program accepts a congestion control: they have that of the
    listener. The kernel lets no namespace but the first choose a default freely."""
    number = os.pidfd_open(process)
    listeners = 0
    try:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if not str(file.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=copied(number, file)) as found:
                if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and (
                    found.family in (socket.AF_INET, socket.AF_INET6)
                ):
                    name = congestion.encode()
                    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                    listeners += 1
    finally:
        os.close(number)
    if not listeners:
        raise Problem(f"process {process} has no listener")


def ended_in_order() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def run(main: Callable[[], int]) -> NoReturn:
    """Ends this program with the status of `main`, or with a word about Ctrl-C."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("ended by Ctrl-C")
