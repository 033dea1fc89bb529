"""Numbers with units, as people write them."""

from __future__ import annotations

import re

_RATES = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"))
_UNITS = {
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
TIMES = "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def parse(text: str) -> float:
    """A rate or a time as scenario files have it, in bits per second or seconds."""
    match = re.fullmatch(r"\s*([0-9._]+)\s*(\S+)\s*", text)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"expected a rate or a time, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def significant(value: float, digits: int = 3) -> str:
    """The value with so many significant digits, never in scientific notation: 3.50, 144, 1300."""
    if value == 0:
        return "0"
    # Of the rounded value: 9.999 is 10.0.
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])
    decimals = digits - 1 - magnitude
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def rate(bps: float, digits: int = 3) -> str:
    """A rate in bits per second: 1.50 Mb/s."""
    for scale, unit in _RATES:
        if abs(bps) >= scale:
            return f"{significant(bps / scale, digits)} {unit}"
    return f"{significant(bps, digits)} b/s"


def line_rate(bps: float) -> str:
    """A rate that somebody chose, without digits that say nothing: 1.5 Mb/s, 100 Mb/s."""
    for scale, unit in _RATES:
        if bps >= scale:
            return f"{bps / scale:g} {unit}"
    return f"{bps:g} b/s"


def duration(seconds: float) -> str:
    """A time in seconds: 320 ms, 1.5 s, 120 s."""
    if abs(seconds) < 1e-3:
        return f"{seconds * 1e6:g} µs"
    if abs(seconds) < 1:
        return f"{round(seconds * 1e3, 9):g} ms"
    return f"{seconds:g} s"


def scientific(value: float) -> str:
    """A small number such as a bit error rate: 1.56e-5, 0."""
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def power_of_ten(value: float) -> str:
    """The same, typeset with a power of ten."""
    if value == 0:
        return "0"
    mantissa, _, exponent = scientific(value).partition("e")
    return f"{mantissa}{TIMES}10{exponent.translate(_SUPERSCRIPTS)}"
