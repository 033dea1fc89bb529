"""obanaik2003's experiments with SPEP: their tables in the book."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.obanaik2003.spep import bed, comparisons
from lasthop.publications.obanaik2003.spep.classification import FOUND
from lasthop.publications.study.book import Column, Keys, SideBySide, Table

_DELAY: Keys = {"delay": lambda case: bed.WORDS["one_way_delay_s"](case["one_way_delay_s"])}
_INTERVAL: Keys = {"one error in": lambda case: bed.interval_words(case["error_interval_bytes"])}
_SCHEME: Keys = {"scheme": lambda case: bed.SCHEMES[case["scheme"]].name}


def _by_interval(delay: float, *schemes: str, **where: object) -> list[Column]:
    return [
        Column(
            bed.SCHEMES[scheme].name,
            "payload_bps",
            {"scheme": scheme, "one_way_delay_s": delay, **where},
            1e3,
        )
        for scheme in schemes
    ]


def _table(delay: float, more: Mapping[str, Table] | None = None) -> Table:
    columns = _by_interval(delay, *comparisons.ON_LOSSES, hop=comparisons.LOSSES)
    return Table(
        "error_interval_bytes", "one error in", {}, columns, bed.interval_words, more=more or {}
    )


def _hop(hop: str) -> Table:
    columns = [
        Column(
            f"{words}, {bed.SCHEMES[scheme].name}",
            "payload_bps",
            {"scheme": scheme, "one_way_delay_s": delay, "hop": hop},
            1e3,
        )
        for delay, words in bed.DELAYS.items()
        for scheme in (
            comparisons.ON_REPAIRS if hop == comparisons.REPAIRS else comparisons.ON_ABSENCES
        )
    ]
    return Table("error_interval_bytes", "one error in", {}, columns, bed.interval_words)


TABLES: Mapping[str, SideBySide | Table] = {
    "fig5.2": SideBySide(
        {**_DELAY, **_SCHEME},
        (
            ("timeouts", "timeouts", 1.0),
            ("timeouts for each MB", "timeouts_per_mb", 1.0),
            ("mean cwnd, segments", "cwnd_segments", 1.0),
            ("variation of cwnd", "cwnd_variation", 1.0),
            ("payload, kb/s", "payload_bps", 1e3),
        ),
    ),
    "fig5.4": SideBySide(
        {**_DELAY, **_INTERVAL, **_SCHEME},
        (
            ("payload, kb/s", "payload_bps", 1e3),
            ("over NewReno", "gain", 1.0),
            ("timeouts", "timeouts", 1.0),
        ),
    ),
    "fig5.8": SideBySide(
        {**_DELAY, **_INTERVAL, **_SCHEME},
        (("payload, kb/s", "payload_bps", 1e3), ("overhead, %", "overhead_percent", 1.0)),
    ),
    "comparisons": _table(
        bed.LAN,
        {
            "wan": _table(bed.WAN),
            "repairs": _hop(comparisons.REPAIRS),
            "absences": _hop(comparisons.ABSENCES),
        },
    ),
    "classification": SideBySide(
        {"situation": lambda case: str(case["situation"])},
        (
            *(
                (f"{truth} as {name}", f"{truth} as {name}", 1.0)
                for truth in ("damaged", "other")
                for name in FOUND
            ),
            ("damaged late", "damaged late", 1.0),
        ),
    ),
    "attacks": SideBySide(
        {
            "errors": lambda case: (
                f"one in {bed.interval_words(case['error_interval_bytes'])}"
                if case["error_interval_bytes"]
                else "none"
            ),
            "attacker": lambda case: str(case["attacker"]),
        },
        (
            ("payload, kb/s", "payload_bps", 1e3),
            ("neighbour, kb/s", "neighbour_bps", 1e3),
            ("dropped, %", "drop_share", 0.01),
            ("reductions", "reductions", 1.0),
            ("timeouts", "timeouts", 1.0),
        ),
    ),
}
