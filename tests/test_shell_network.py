"""What is behind the hop of `lasthop shell`, and whose programs it runs.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_packets import real
from shells import CLIENT, RATE_BPS, SIZE, packets

pytestmark = pytest.mark.packets

NFT = shutil.which("nft")


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
def test_the_machine_s_network_is_behind_the_hop(machine: str, hop: Path, server: str) -> None:
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
                [*inside, machine, sys.executable, "-m", "lasthop", "shell", hop, *words],
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
def everybodys(hop: Path) -> Iterator[Path]:
    """A folder that any user may read, with the scenario and a file to be served."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "hop.toml").write_text(hop.read_text())
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
