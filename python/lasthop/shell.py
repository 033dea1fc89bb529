"""Programs behind the emulated links of a scenario, on real packets."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.scenario import Scenario

#: As a shell has them: a program that is not found, and one that cannot be executed.
NOT_FOUND, NOT_EXECUTABLE = 127, 126
#: How long a server may take until it waits for connections.
_READY_S = 5.0
_PAUSE_S = 0.02
#: By which TUN devices are made.
_TUN = "/dev/net/tun"
#: Set where this process is in a user namespace of its own.
_UNSHARED = "LASTHOP_USER_NAMESPACE"


class Ended(Exception):  # noqa: N818 - no error: a signal asks for the end.
    """A signal ends the shell."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


@dataclass(frozen=True)
class User:
    """Whose processes the programs are."""

    #: The user's number, that of the user's group, and those of all groups.
    numbers: tuple[int, int, list[int]]
    #: What the environment has of the user.
    environment: Mapping[str, str]


def caller() -> User | None:
    """The user who called this command by sudo, if one did."""
    import pwd  # Not on every platform.

    number = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not number.isdecimal() or number == "0" or _UNSHARED in os.environ:
        return None
    try:
        entry = pwd.getpwuid(int(number))
    except KeyError:
        return None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return User(
        (entry.pw_uid, entry.pw_gid, groups),
        {
            "HOME": entry.pw_dir,
            "LOGNAME": entry.pw_name,
            "SHELL": entry.pw_shell,
            "USER": entry.pw_name,
        },
    )


def become_permitted(*, machine: bool) -> None:
    """Goes on in a user namespace of its own if this process may not make network namespaces.

    There it may, but it cannot reach the machine's network.
    """
    if sys.platform != "linux":
        raise UserError("programs run in network namespaces, which Linux alone has")
    if _may_make_namespaces() or _UNSHARED in os.environ:
        return
    if machine:
        raise UserError(
            "behind the hop is the network of this machine, which needs root: use sudo; or"
            " --serve COMMAND, whose network is a namespace of your own"
        )
    if not os.access(_TUN, os.R_OK | os.W_OK):
        raise UserError(f"{_TUN} is not for users here: use sudo")
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    try:
        tried = subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode
    except OSError:
        tried = NOT_FOUND
    if tried != 0:
        raise UserError(
            "this system lets users make no namespaces (`unshare --user` fails): use sudo"
        )
    words = [*unshare, sys.executable, "-m", "lasthop", *sys.argv[1:]]
    os.execvpe("unshare", words, {**os.environ, _UNSHARED: "1"})


def _may_make_namespaces() -> bool:
    """Whether this process has CAP_NET_ADMIN and CAP_SYS_ADMIN. Where that is not known, the engine
    says what is missing."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return True
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    needed = 1 << 12 | 1 << 21
    return int(line.split()[1], 16) & needed == needed


class Shell:
    """The network of a scenario for programs, until it is stopped."""

    def __init__(
        self,
        scenario: Scenario,
        flow: int,
        *,
        seed: int,
        machine: bool,
        congestion: str | None,
        user: User | None,
    ) -> None:
        self._machine = machine
        self._user = user
        self._network = engine.Shell(
            scenario.source,
            scenario.name,
            overrides=scenario.overrides,
            seed=seed,
            flow=flow,
            machine=machine,
            congestion=congestion,
        )
        self._server: int | None = None
        #: Children that have not been waited for.
        self._children: set[int] = set()

    def words(self) -> list[str]:
        """What the user should know before programs run."""
        return self._network.words()

    def addresses(self) -> dict[str, str]:
        """The addresses of both ends, as programs find them in their environment."""
        found: dict[str, str] = {}
        for name, far in (("LASTHOP_CLIENT", False), ("LASTHOP_SERVER", True)):
            v4, v6 = self._network.addresses(far=far)
            found |= {key: of for key, of in ((name, v4), (f"{name}_V6", v6)) if of is not None}
        return found

    def serve(self, command: str) -> str | None:
        """Starts a server at the far end by the system's shell, and waits until it is ready. Says
        so if nothing is."""
        words = ["/bin/sh", "-c", command]
        self._server = self._launch(words, self._environment({}), far=True, background=True)
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            if self._network.is_served():
                return None
            status = self.server_status()
            # Of one that is left in the background, the parent may have ended.
            if status:
                raise UserError(f"the server ended with status {status}: {command}")
            time.sleep(_PAUSE_S)
        return f"nothing waits for connections yet, {_READY_S:g} s after the server was started"

    def server_status(self) -> int | None:
        """The status with which the server has ended; None if it runs, or was seen before."""
        if self._server is None:
            return None
        ended, status = os.waitpid(self._server, os.WNOHANG)
        if ended == 0:
            return None
        self._children.discard(self._server)
        self._server = None
        return _status(status)

    def run_interactive(self, name: str) -> int:
        """Runs the user's shell, whose prompt begins with this name."""
        user = self._user.environment if self._user else os.environ
        # Shells expand their prompts.
        prompt = f"(lasthop {re.sub(r'[^A-Za-z0-9_.-]', '-', name)}) "
        # That of bash is set by its own files, which it reads before the command for prompts.
        more = {"PS1": f"{prompt}$ ", "PROMPT_COMMAND": f'PS1="{prompt}$PS1"; unset PROMPT_COMMAND'}
        return self.run([user.get("SHELL") or "/bin/sh"], more)

    def run(self, words: Sequence[str], more: Mapping[str, str] | None = None) -> int:
        """Runs a program to its end, with this besides in its environment. Returns its status as a
        shell has it."""
        resolver = resolv_conf() if self._machine else None
        environment = self._environment(more or {})
        # From before the program runs, as it may be interrupted before this process goes on.
        with _interrupts() as pass_to:
            process = self._launch(words, environment, resolver=resolver)
            pass_to(process)
            _, status = os.waitpid(process, 0)
        self._children.discard(process)
        return _status(status)

    def stop(self) -> dict[str, Any]:
        """Ends everything; what happened on links."""
        done = self._network.stop()
        for process in self._children:
            os.waitpid(process, os.WNOHANG)
        return done

    def _environment(self, more: Mapping[str, str]) -> list[tuple[str, str]]:
        user = self._user.environment if self._user else {}
        all_ = {**os.environ, **user, **self.addresses(), **more}
        all_.pop(_UNSHARED, None)
        return list(all_.items())

    def _launch(
        self,
        words: Sequence[str],
        environment: list[tuple[str, str]],
        *,
        far: bool = False,
        resolver: Path | None = None,
        background: bool = False,
    ) -> int:
        process = self._network.launch(
            list(words),
            environment,
            far=far,
            user=self._user.numbers if self._user else None,
            resolver=resolver,
            background=background,
        )
        self._children.add(process)
        return process


def resolv_conf(
    etc: Path = Path("/etc/resolv.conf"),
    upstream: Path = Path("/run/systemd/resolve/resolv.conf"),
) -> Path | None:
    """The file with the name servers that a local one asks, if the machine's own names no other:
    behind the hop, a local one does not answer."""
    try:
        lines = etc.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    servers = [line.split()[1] for line in lines if line.startswith("nameserver ")]
    local = all(server == "::1" or server.startswith("127.") for server in servers)
    return upstream if servers and local and upstream.is_file() else None


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise `Ended`, so that everything is undone."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise Ended(number)

    # One that is ignored stays so, as nohup wants it.
    both = (signal.SIGTERM, signal.SIGHUP)
    those = [of for of in both if signal.getsignal(of) == signal.SIG_DFL]
    before = {of: signal.signal(of, end) for of in those}
    try:
        yield
    finally:
        for of, handler in before.items():
            signal.signal(of, handler)


@contextmanager
def _interrupts() -> Iterator[Callable[[int], None]]:
    """Ctrl-C is for a program, which decides what becomes of it. Yields the function that names the
    process, which gets what came before, too."""
    process: int | None = None
    waiting: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        # From the terminal, the program has got the signal itself.
        if _at_terminal():
            return
        if process is None:
            waiting.append(number)
        else:
            os.kill(process, number)

    def pass_to(started: int) -> None:
        nonlocal process
        process = started
        for number in waiting:
            os.kill(process, number)

    before = {of: signal.signal(of, pass_on) for of in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield pass_to
    finally:
        for of, handler in before.items():
            signal.signal(of, handler)


def _at_terminal() -> bool:
    """Whether signals of a terminal's keys come to this process."""
    try:
        with Path("/dev/tty").open("rb", buffering=0) as tty:
            return os.tcgetpgrp(tty.fileno()) == os.getpgrp()
    except OSError:
        return False


def _status(status: int) -> int:
    """The status of a process as a shell has it."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
