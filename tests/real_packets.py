"""What tests on real packets need: root, network namespaces and TUN devices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def is_permitted() -> bool:
    """Whether this process may make namespaces and devices: CAP_NET_ADMIN and CAP_SYS_ADMIN."""
    if sys.platform != "linux" or not Path("/dev/net/tun").exists():
        return False
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    needed = 1 << 12 | 1 << 21
    return int(line.split()[1], 16) & needed == needed


#: Marks a test that is skipped, with these words, where it cannot be run.
real = pytest.mark.skipif(
    not is_permitted(), reason="real packets need root, namespaces and /dev/net/tun"
)
