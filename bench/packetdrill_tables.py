"""What packetdrill's scripts say of lasthop's TCP, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Result = Mapping[str, Any]

IP_VERSIONS = ("ipv4", "ipv6", "ipv4-mapped-ipv6")


def counts(result: Result) -> str:
    """The number of scripts of each suite, and of those that pass."""
    lines = [
        "| suite | scripts | passed over IPv4 | over IPv6 | over IPv4, with IPv6 sockets |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for folder in dict.fromkeys(row["script"].rsplit("/", 1)[0] for row in rows):
        own = [row for row in rows if row["script"].rsplit("/", 1)[0] == folder]
        scripts = len({row["script"] for row in own})
        counts = [score([row for row in own if row["ip"] == ip]) for ip in IP_VERSIONS]
        lines.append(f"| {folder} | {scripts} | {' | '.join(counts)} |")
    scripts = len({row["script"] for row in rows})
    whole = len({row["script"] for row in rows} - {row["script"] for row in rows if row["why"]})
    counts = [score([row for row in rows if row["ip"] == ip]) for ip in IP_VERSIONS]
    lines.append(f"| **all** | **{scripts}** | {' | '.join(counts)} |")
    passed = f"**{whole} of {scripts} scripts pass**"
    lines += ["", f"{passed}, over every version of IP that they are for."]
    return "\n".join(lines)


def scripts(result: Result) -> str:
    """Every script: those that have passed by name, the others with packetdrill's words."""
    lines = []
    rows = result["rows"]
    for folder in dict.fromkeys(row["script"].rsplit("/", 1)[0] for row in rows):
        own = [row for row in rows if row["script"].rsplit("/", 1)[0] == folder]
        failed = [row for row in own if row["why"]]
        names = dict.fromkeys(row["script"] for row in own)
        passed = [name for name in names if name not in {row["script"] for row in failed}]
        words = ", ".join(Path(name).stem for name in passed)
        lines += [f"{folder}", f": Passed: {words or 'none'}."]
        for row in failed:
            name = Path(row["script"]).stem
            lines.append(f"  **Failed: {name} ({row['ip']})**: `{row['why']}`")
        lines.append("")
    return "\n".join(lines)


def score(rows: Sequence[Result]) -> str:
    """The number of rows that passed."""
    return f"{sum(not row['why'] for row in rows)} of {len(rows)}" if rows else ""
