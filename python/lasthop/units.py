"""Numbers with units, as people write them."""

from __future__ import annotations

import re

_RATES = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"))
#: Units of scenario files: how many bits per second, or seconds, they are.
_UNITS = {
    "bit/s": (1.0, "bit/s"),
    "bps": (1.0, "bit/s"),
    "kbit/s": (1e3, "bit/s"),
    "Mbit/s": (1e6, "bit/s"),
    "Gbit/s": (1e9, "bit/s"),
    "ns": (1e-9, "s"),
    "us": (1e-6, "s"),
    "µs": (1e-6, "s"),
    "ms": (1e-3, "s"),
    "s": (1.0, "s"),
    "min": (60.0, "s"),
    "h": (3600.0, "s"),
}
#: Numbers of a lower power of ten are not written with all their zeros.
_SMALLEST = -4
TIMES = "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def parse(text: str) -> float:
    """A rate or a time as scenario files have it, in bits per second or seconds."""
    return quantity(text)[0]


def quantity(text: str) -> tuple[float, str]:
    """The same with what it counts, "bit/s" or "s". Raises ValueError for anything else."""
    read = re.fullmatch(r"\s*([0-9_.]+(?:[eE][+-]?[0-9]+)?)\s*(\D+?)\s*", str(text))
    if read is None or read[2] not in _UNITS:
        raise ValueError(f"expected a rate or a time, not {text!r}")
    factor, kind = _UNITS[read[2]]
    return float(read[1]) * factor, kind


def scale(bps: float) -> tuple[float, str]:
    """The unit in which to show rates up to this one: bits per second in it, and its name."""
    return next(((size, unit) for size, unit in _RATES if bps >= size), (1.0, "b/s"))


def significant(value: float, digits: int = 3) -> str:
    """The value with so many significant digits: 3.50, 144, 1300; in scientific notation only if it
    is very small: 6.28e-16."""
    if value == 0:
        return "0"
    # Of the rounded value: 9.999 is 10.0.
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    magnitude = int(exponent)
    if magnitude < _SMALLEST:
        return f"{mantissa}e{magnitude}"
    decimals = digits - 1 - magnitude
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def rate(bps: float, digits: int = 3) -> str:
    """A rate in bits per second: 1.50 Mb/s."""
    for scale, unit in _RATES:
        if abs(bps) >= scale:
            return f"{significant(bps / scale, digits)} {unit}"
    return f"{significant(bps, digits)} b/s"


def line_rate(bps: float) -> str:
    """A configured rate, without needless digits: 1.5 Mb/s, 100 Mb/s."""
    size, unit = scale(bps)
    return f"{bps / size:g} {unit}"


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
