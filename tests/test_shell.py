"""Programs behind emulated links, as users of `lasthop shell` run them.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from real_packets import real

from lasthop import shell

pytestmark = pytest.mark.packets

#: The fixture of that name.
Command = Callable[..., "subprocess.CompletedProcess[str]"]

RATE_BPS = 8e6
SCENARIO = """
title    = "A hop for programs"
duration = "1 s"
[nodes]
server  = {}
gateway = {}
phone   = {}
[[links]]
between = ["server", "gateway"]
rate    = "100 Mbit/s"
delay   = "1 ms"
[[links]]
between = ["gateway", "phone"]
rate    = "8 Mbit/s"
delay   = "10 ms"
queue   = "60 packets"
forward = { errors = { packet = 0.01 } }
[[flows]]
from    = "server"
to      = "phone"
[testbed]
late = "1 s"
"""
SIZE = 1_000_000

#: Reads a file from the server, of both versions of IP, and prints what became of it.
CLIENT = """
import json, os, sys, time, urllib.request
found = {}
v4, v6 = os.environ["LASTHOP_SERVER"], os.environ["LASTHOP_SERVER_V6"]
for name, host in ("v4", v4), ("v6", f"[{v6}]"):
    start = time.monotonic()
    got = len(urllib.request.urlopen(f"http://{host}:8000/file", timeout=20).read())
    found[name] = [got, time.monotonic() - start]
print(json.dumps(found))
"""

NFT = shutil.which("nft")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "hop.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def server(tmp_path: Path) -> str:
    """The command of a server with a file."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(SIZE))
    return f"{sys.executable} -m http.server 8000 --bind :: --directory {folder}"


def packets(stderr: str, link: str) -> list[int]:
    """The counts of a direction of a link: packets, dropped, corrupted, lost."""
    line = next(line for line in stderr.splitlines() if line.startswith(link))
    return [int(word) for word in line.split()[1:5]]


def left_by(process: int) -> list[str]:
    """What a shell has left: namespaces, devices, nft tables."""
    names = [path.name for path in Path("/run/netns").glob(f"lasthop-{process}-*")]
    return names + [path.name for path in Path("/sys/class/net").glob("lasthop-nat*")]


@real
def test_a_program_has_the_rate_and_the_losses_of_the_hop(
    lasthop: Command, scenario: Path, server: str
) -> None:
    done = lasthop("shell", scenario, "--serve", server, "--", sys.executable, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for got, seconds in found.values():
        assert got == SIZE
        assert 0.5 * RATE_BPS < 8 * got / seconds < RATE_BPS
    sent, _, _, lost = packets(done.stderr, "gateway->phone")
    assert sent > 2 * SIZE / 1500
    assert 0 < lost < 0.03 * sent
    assert "valid" in done.stderr


@real
def test_a_remedy_is_in_the_path(lasthop: Command, scenario: Path, server: str) -> None:
    words = ("--serve", server, "--remedy", "spoofer", "--", sys.executable, "-c", CLIENT)
    done = lasthop("shell", scenario, *words)
    assert done.returncode == 0, done.stderr
    assert [got for got, _ in json.loads(done.stdout).values()] == [SIZE, SIZE]
    assert 'gateway: { box = "spoofer"' in done.stderr
    assert re.search(r"gateway: \d+ ", done.stderr.split("gateway->phone")[1]), done.stderr


@real
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("no-such-program",), 127),
        (("/dev/null",), 126),
    ],
)
def test_the_status_is_that_of_the_program(
    lasthop: Command, scenario: Path, server: str, words: tuple[str, ...], status: int
) -> None:
    done = lasthop("shell", scenario, "--quiet", "--serve", server, "--", *words)
    assert done.returncode == status, done.stderr
    assert ("cannot run" in done.stderr) == (status in (126, 127))
    assert "testbed" not in done.stderr


@real
def test_both_ends_have_the_congestion_control_that_is_wanted(
    lasthop: Command, scenario: Path
) -> None:
    # Each end prints that of its own socket.
    end = """
import os, socket, sys
address = os.environ["LASTHOP_SERVER" + sys.argv[2]], 8000
if sys.argv[1] == "serves":
    family = socket.AF_INET6 if sys.argv[2] else socket.AF_INET
    stream = socket.create_server(address, family=family).accept()[0]
else:
    stream = socket.create_connection(address)
control = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
print(sys.argv[1], control.rstrip(bytes(1)).decode(), flush=True)
# The client ends after the server has printed.
sys.argv[1] == "serves" or stream.recv(1)
"""
    script = scenario.with_suffix(".py")
    script.write_text(end)
    for version in ("", "_V6"):
        program = f"{sys.executable} {script} {{}} '{version}'"
        words = ("--serve", program.format("serves"), "--congestion", "reno")
        done = lasthop("shell", scenario, *words, "--", "sh", "-c", program.format("connects"))
        assert done.stdout == "connects reno\n", done.stderr
        assert "serves reno\n" in done.stderr
    unknown = lasthop("shell", scenario, "--congestion", "rheno", "--serve", "true", "--", "true")
    assert unknown.returncode == 2
    assert 'the congestion control "rheno"' in unknown.stderr


@real
def test_a_server_that_fails_is_an_error(lasthop: Command, scenario: Path) -> None:
    done = lasthop("shell", scenario, "--serve", "exit 3", "--", "true")
    assert done.returncode == 2
    assert "the server ended with status 3" in done.stderr


@pytest.fixture
def started(scenario: Path, server: str) -> Iterator[subprocess.Popen[str]]:
    """A shell with a program that would take long, under way."""
    program = ("sh", "-c", "echo $$; exec sleep 1000")
    with subprocess.Popen(
        [sys.executable, "-m", "lasthop", "shell", scenario, "--serve", server, "--", *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        # It is not at the terminal of whoever runs the tests.
        start_new_session=True,
    ) as process:
        yield process
        process.terminate()


def program_of(process: subprocess.Popen[str]) -> int:
    """The process id of the program, once it runs."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    return int(line)


def is_there(process: int) -> bool:
    """Whether a process runs; one that has ended has no namespace."""
    return Path(f"/proc/{process}/ns/net").exists()


@real
@pytest.mark.parametrize(
    ("ending", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_whatever_ends_it_leaves_nothing(
    started: subprocess.Popen[str], ending: signal.Signals, status: int
) -> None:
    program = program_of(started)
    assert len(left_by(started.pid)) == 3
    started.send_signal(ending)
    _, stderr = started.communicate(timeout=30)
    assert started.returncode == status, stderr
    assert "Traceback" not in stderr
    assert left_by(started.pid) == []
    assert not is_there(program)


@real
@pytest.mark.usefixtures("alone_in_cleaning")
def test_what_a_killed_shell_leaves_can_be_removed(
    lasthop: Command, started: subprocess.Popen[str]
) -> None:
    program = program_of(started)
    # What belongs to one under way stays.
    lasthop("testbed", "clean")
    assert is_there(program)
    assert len(left_by(started.pid)) == 3
    started.kill()
    started.wait(timeout=30)
    assert is_there(program)
    done = lasthop("testbed", "clean")
    assert done.returncode == 0, done.stderr
    assert {f"lasthop-{started.pid}-{node}" for node in ("server", "gateway", "phone")} <= set(
        done.stdout.split()
    )
    assert left_by(started.pid) == []
    assert not is_there(program)
    started.communicate(timeout=30)


@real
@pytest.mark.skipif(shutil.which("script") is None, reason="a terminal needs script")
def test_an_interactive_shell_says_where_it_is(scenario: Path, server: str) -> None:
    env = {**os.environ, "SHELL": "/bin/bash", "NO_COLOR": "1"}
    command = f"{sys.executable} -m lasthop shell {scenario} --serve '{server}'"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        input="echo at:$LASTHOP_SERVER\nexit 4\n",
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stdout
    assert "(lasthop hop) " in done.stdout
    assert "at:10.128.0.1" in done.stdout


@real
@pytest.mark.skipif(shutil.which("script") is None, reason="a terminal needs script")
def test_ctrl_c_at_the_terminal_is_the_program_s(scenario: Path, server: str) -> None:
    program = scenario.with_suffix(".py")
    program.write_text("""
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
while not got:
    time.sleep(0.05)
time.sleep(0.5)
print("interrupts:", len(got), flush=True)
sys.exit(9)
""")
    # A shell that stays has got the interrupt, too, and ends by it.
    command = f"exec {sys.executable} -m lasthop shell {scenario} --serve '{server}' -- "
    with subprocess.Popen(
        ["script", "-qec", f"{command} {sys.executable} {program}", "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        while "ready" not in terminal.stdout.readline():
            assert terminal.poll() is None
        terminal.stdin.write("\x03")
        terminal.stdin.flush()
        shown = terminal.stdout.read()
    assert "interrupts: 1" in shown
    assert "gateway->phone" in shown
    assert terminal.returncode == 9


@pytest.mark.parametrize("at_terminal", [False, True])
def test_an_interrupt_before_the_program_is_known_is_kept_for_it(
    at_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the terminal, the program has got it from there, and is not interrupted twice."""
    monkeypatch.setattr(shell, "_at_terminal", lambda: at_terminal)
    with shell._interrupts() as pass_to, subprocess.Popen(["sleep", "15"]) as program:
        signal.raise_signal(signal.SIGINT)
        pass_to(program.pid)
        if at_terminal:
            assert program.poll() is None
            program.kill()
        assert program.wait(timeout=10) == -(signal.SIGKILL if at_terminal else signal.SIGINT)


@pytest.fixture
def machine() -> Iterator[str]:
    """A machine, and another one to which its default routes lead: 192.0.2.2 and 2001:db8::2."""
    here, there = (f"lhshell{os.getpid()}{side}" for side in "ab")
    commands = f"""
        netns add {here}
        netns add {there}
        -n {here} link set lo up
        -n {here} link add out type veth peer name out netns {there}
        -n {here} address add 192.0.2.1/24 dev out
        -n {here} address add 2001:db8::1/64 dev out nodad
        -n {there} address add 192.0.2.2/24 dev out
        -n {there} address add 2001:db8::2/64 dev out nodad
        -n {here} link set out up
        -n {there} link set out up
        -n {here} route add default via 192.0.2.2
        -n {here} -6 route add default via 2001:db8::2
    """
    try:
        for command in filter(None, map(str.strip, commands.splitlines())):
            subprocess.run(["ip", *command.split()], check=True)
        yield here
    finally:
        for name in (here, there):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@real
@pytest.mark.skipif(NFT is None, reason="translating addresses needs nft")
def test_the_machine_s_network_is_behind_the_hop(machine: str, scenario: Path, server: str) -> None:
    inside = ["ip", "netns", "exec"]
    # Of the machine beyond, and of the machine itself.
    servers = [
        subprocess.Popen([*inside, name, *server.split()], stderr=subprocess.DEVNULL)
        for name in (machine, machine.removesuffix("a") + "b")
    ]
    beyond = CLIENT.replace("LASTHOP_SERVER_V6", "V6").replace("LASTHOP_SERVER", "V4")
    try:
        for client in (CLIENT, beyond):
            words = ("--remedy", "spoofer", "--", sys.executable, "-c", client)
            done = subprocess.run(
                [*inside, machine, sys.executable, "-m", "lasthop", "shell", scenario, *words],
                capture_output=True,
                text=True,
                env={**os.environ, "NO_COLOR": "1", "V4": "192.0.2.2", "V6": "2001:db8::2"},
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            assert [got for got, _ in found.values()] == [SIZE, SIZE]
            assert all(8 * got / seconds < RATE_BPS for got, seconds in found.values())
            assert packets(done.stderr, "gateway->phone")[3] > 0
    finally:
        for process in servers:
            process.terminate()
            process.wait()
    look = "ip -br link; nft list tables; sysctl -n net.ipv4.conf.out.forwarding"
    looked = subprocess.run(
        [*inside, machine, "sh", "-c", look], check=True, capture_output=True, text=True
    ).stdout
    assert "lasthop" not in looked
    assert looked.endswith("\n0\n")


#: Nobody, who may do nothing.
NOBODY: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}


def python_of_nobody() -> str | None:
    """A Python that this user may run, with this package; None if there is none, or if users may
    make no namespaces."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    tried = ["unshare", "-Urn", "true"]
    if subprocess.run(tried, check=False, capture_output=True, **NOBODY).returncode != 0:
        return None
    for python in (sys.executable, "/usr/bin/python3"):
        tried = [python, "-c", "import lasthop.cli"]
        try:
            done = subprocess.run(tried, env=env, check=False, capture_output=True, **NOBODY)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None


@pytest.fixture
def everybodys(scenario: Path) -> Iterator[Path]:
    """A folder that any user may read, with the scenario and a file to be served."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "hop.toml").write_text(scenario.read_text())
        (folder / "file").write_bytes(bytes(SIZE))
        yield folder


@real
def test_without_root_there_is_a_server_in_a_namespace_of_one_s_own(everybodys: Path) -> None:
    python = python_of_nobody()
    if python is None:
        pytest.skip("nobody may not run this package in a user namespace")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}

    # Some machines have a device for TUN devices that is for root alone.
    mine = "rm -f tun && mknod -m 666 tun c 10 200 && mount --bind tun /dev/net/tun"
    drop = "exec setpriv --reuid 65534 --regid 65534 --clear-groups"

    def shell(*words: str, before: str) -> subprocess.CompletedProcess[str]:
        inside = ["unshare", "--mount", "sh", "-c", f'{before} && {drop} "$@"', "sh"]
        return subprocess.run(
            [*inside, python, "-m", "lasthop", "shell", "hop.toml", *words],
            capture_output=True,
            text=True,
            env=env,
            timeout=60,
            check=False,
            cwd=everybodys,
        )

    served = f"{python} -m http.server 8000 --bind ::"
    done = shell("--serve", served, "--", python, "-c", CLIENT, before=mine)
    assert done.returncode == 0, done.stderr
    assert [got for got, _ in json.loads(done.stdout).values()] == [SIZE, SIZE]
    assert packets(done.stderr, "gateway->phone")[3] > 0
    refused = shell("--", "true", before=mine)
    assert refused.returncode == 2
    assert "needs root" in refused.stderr
    assert "--serve" in refused.stderr
    closed = f"{mine} && chmod 600 /dev/net/tun"
    refused = shell("--serve", served, "--", "true", before=closed)
    assert refused.returncode == 2
    assert "/dev/net/tun is not for users here: use sudo" in refused.stderr


@real
def test_programs_are_those_of_the_user_of_sudo(everybodys: Path) -> None:
    python = python_of_nobody()
    if python is None:
        pytest.skip("nobody may not run Python here")
    nobody = pwd.getpwuid(65534)
    told = "echo $(id -u) $(id -g) $HOME $USER; ping -c 1 -W 5 $LASTHOP_SERVER > /dev/null"

    def said(*words: str) -> str:
        # Port 80 is for any user there.
        served = f"{python} -m http.server 80"
        program = ("--serve", served, "--", "sh", "-c", told)
        done = subprocess.run(
            [sys.executable, "-m", "lasthop", "shell", "hop.toml", *words, *program],
            capture_output=True,
            text=True,
            env={**os.environ, "SUDO_UID": "65534", "NO_COLOR": "1", "HOME": "/root"},
            timeout=60,
            check=False,
            cwd=everybodys,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said() == f"65534 {nobody.pw_gid} {nobody.pw_dir} {nobody.pw_name}\n"
    assert said("--root").startswith("0 0 /root")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("nowhere",), "no scenario file 'nowhere'"),
        (("examples/geo-lossy", "--flow", "dwnload"), "did you mean 'download'?"),
        (("examples/shared",), "Give one by --flow"),
        (("examples/geo-lossy", "--remedy", "snop"), "did you mean 'snoop'?"),
        (("examples/geo-lossy", "--box", "spoofer"), "no table of TOML"),
        (("examples/geo-lossy", "--box", "{ box = 'spofer' }"), "did you mean `spoofer`?"),
        (("examples/geo-lossy", "--box", "{ box = 'esp' }"), "cannot be run with programs"),
        (("examples/handover", "--box", "{ box = 'spoofer' }"), "--set 'nodes.NAME.boxes"),
    ],
)
@real
def test_mistakes_end_with_a_hint_and_status_2(
    lasthop: Command, words: tuple[str, ...], hint: str
) -> None:
    done = lasthop("shell", *words, "--serve", "true", "--", "true")
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
