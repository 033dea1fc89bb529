"""What axes show: columns and swept keys with their units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Values this far apart are spread evenly by a logarithm.
_WIDE = 20.0


def over_time(ax: Axes, label: str, left: float = 0.0) -> None:
    """Time on the horizontal axis, from `left` on."""
    ax.margins(x=0)
    ax.set_xlim(left=left)
    if left == 0:
        ax.set_ylim(bottom=0)
    ax.set_xlabel("time, s")
    ax.set_ylabel(label)


def measure(metric: str, largest: float) -> tuple[float, str]:
    """What to divide a column's values by, and its name with the unit."""
    name, _, unit = metric.rpartition("_")
    name = name.replace("_", " ")
    if unit == "bps":
        scale, rate = units.scale(largest)
        return scale, f"{name}, {rate}"
    if unit == "bytes":
        return (1e6, f"{name}, MB") if largest >= 1e6 else (1e3, f"{name}, kB")
    return (1.0, f"{name}, s") if unit == "s" and name else (1.0, metric.replace("_", " "))


def short(key: str) -> str:
    """A key without where it stands: links.0.errors.bit is errors.bit."""
    steps = key.split(".")
    places = [i for i, step in enumerate(steps) if step.isdigit() or step == "*"]
    return ".".join(steps[places[-1] + 1 :] if places else steps)


def place(ax: Axes, name: str, values: Sequence[Any]) -> dict[Any, float]:
    """Where values stand on the horizontal axis, whose scale and words this sets."""
    numbers, unit, scale = _numbers(values)
    if numbers is None or (is_wide(numbers) and min(numbers) <= 0):
        # Words, or numbers of all magnitudes and none: side by side.
        ax.set_xticks(range(len(values)), [written(value) for value in values])
        ax.set_xlim(-0.3, len(values) - 0.7)
        ax.set_xlabel(name)
        return {value: float(i) for i, value in enumerate(values)}
    ax.set_xlabel(f"{name}, {unit}" if unit else name)
    places = [number / scale for number in numbers]
    if is_wide(numbers):
        ax.set_xscale("log")
        if len(values) <= 8:
            ax.set_xticks(places, [written(place) for place in places])
            ax.minorticks_off()
    return dict(zip(values, places, strict=True))


def _numbers(values: Sequence[Any]) -> tuple[list[float] | None, str, float]:
    """Values as numbers, if they are; the unit to show, and how much of theirs that is."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values], "", 1.0
    try:
        read = [units.quantity(value) for value in values]
    except ValueError:
        return None, "", 1.0
    numbers, kinds = [number for number, _ in read], {kind for _, kind in read}
    if kinds == {"bit/s"}:
        scale, unit = units.scale(max(numbers))
        return numbers, unit, scale
    if kinds == {"s"}:
        return (numbers, "ms", 1e-3) if max(numbers) < 1 else (numbers, "s", 1.0)
    return None, "", 1.0


def is_wide(numbers: Sequence[float]) -> bool:
    """Whether numbers are so far apart that their axis is better logarithmic."""
    positive = [number for number in numbers if number > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= _WIDE


def written(value: object) -> str:
    """A value of a swept key."""
    if isinstance(value, float) and value and not 1e-3 <= abs(value) < 1e5:
        return units.power_of_ten(value)
    return f"{value:g}" if isinstance(value, float) else pictures.text(str(value))
