"""Numbers as people read them."""

from __future__ import annotations

import pytest

from lasthop import units


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3.5, "3.50"),
        (144.4, "144"),
        (1312.0, "1310"),
        (0.0123, "0.0123"),
        (0, "0"),
        (9.999, "10.0"),
        (6.28e-16, "6.28e-16"),
        (-2.5e-5, "-2.50e-5"),
        (0.00012, "0.000120"),
    ],
)
def test_three_significant_digits(value: float, written: str) -> None:
    assert units.significant(value) == written


def test_rates_and_times_have_a_fitting_unit() -> None:
    assert units.rate(1.5e6) == "1.50 Mb/s"
    assert units.rate(12) == "12.0 b/s"
    assert units.line_rate(100e6) == "100 Mb/s"
    assert [units.duration(s) for s in (0.32, 120, 5e-6)] == ["320 ms", "120 s", "5 µs"]


def test_small_numbers() -> None:
    assert units.scientific(1.56e-5) == "1.56e-5"
    assert units.power_of_ten(1.56e-10).endswith("10⁻¹⁰")
    assert units.scientific(0) == units.power_of_ten(0) == "0"


@pytest.mark.parametrize(
    ("written", "value"),
    [("1.5 Mbit/s", 1.5e6), ("320 ms", 0.32), ("100 Mbit/s", 1e8), ("1e6 s", 1e6)],
)
def test_what_scenarios_say_is_read(written: str, value: float) -> None:
    assert units.parse(written) == pytest.approx(value)
