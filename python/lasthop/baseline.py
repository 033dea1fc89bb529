"""The TCP of a flow in words: what remedies are compared with."""

from __future__ import annotations

from typing import Any

#: What the profiles set, as far as a remedy may replace it.
_PROFILES: dict[str, dict[str, Any]] = {
    "modern": {
        "congestion": "cubic",
        "hystart": True,
        "recovery": "rack",
        "reduction": "prr",
        "frto": True,
    },
    "ns2-2001": {"congestion": "aimd", "recovery": "sack"},
    "ns2-2007": {"congestion": "aimd", "recovery": "sack"},
    "sunos-1994": {"congestion": "aimd", "recovery": "tahoe"},
}
_WORDS = {
    "cubic": "CUBIC",
    "aimd": "AIMD",
    "bbr": "BBR",
    "rack": "RACK-TLP",
    "sack": "SACK",
    "newreno": "NewReno",
    "reno": "Reno",
    "tahoe": "Tahoe",
}


def words(said: dict[str, Any], flow: int) -> str:
    """Congestion control and recovery of a flow of a document."""
    own = said["flows"][flow]
    profile = own.get("profile", said.get("profile", "modern"))
    has = {**_PROFILES[profile], **own.get("tcp", {})}
    parts = [_WORDS.get(has["congestion"], has["congestion"])]
    if has.get("hystart") and has["congestion"] != "bbr":
        parts[0] += " with HyStart++"
    parts.append(_WORDS.get(has["recovery"], has["recovery"]))
    parts += ["F-RTO"] * bool(has.get("frto")) + ["PRR"] * (has.get("reduction") == "prr")
    return f"{', '.join(parts)} (profile {profile})"
