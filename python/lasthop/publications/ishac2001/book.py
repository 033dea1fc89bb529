"""ishac2001: its tables in the book."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.ishac2001.network import BOUNDED, PACED, SPOOFED
from lasthop.publications.study.book import Column, Table

_SHOWN = (
    *(1, 2, 5, 10, 15, 20, 40, 70, 100, 200, 300, 350, 370, 380, 390, 400, 450),
    *(500, 700, 1000, 2000),
)

_GAINS = [("receiver", "receiver's gain, %"), ("sender", "sender's gain, %")]


def _gains(arm: str, **where: object) -> list[Column]:
    return [
        Column(words, "gain_percent", {"spoofer": arm, "vantage": vantage, **where})
        for vantage, words in _GAINS
    ]


def _dropped(arm: str, words: str) -> Column:
    return Column(f"dropped, {words}", "dropped_packets", {"spoofer": arm, "vantage": "receiver"})


#: The published spoofer, and those of `backpressure`.
_MENDED = [
    column
    for arm, words in (
        (SPOOFED, "as published"),
        (BOUNDED, "bounded cache"),
        (PACED, "bounded cache and rate"),
    )
    for column in (
        Column(
            f"receiver's gain, %, {words}", "gain_percent", {"spoofer": arm, "vantage": "receiver"}
        ),
        _dropped(arm, words),
    )
]

TABLES: Mapping[str, Table] = {
    "fig5": Table(
        "packets",
        "packets",
        {},
        [
            Column(
                f"{words}, kb/s",
                "throughput_bps",
                {"spoofer": arm, "vantage": "receiver"},
                1e3,
            )
            for arm, words in (("none", "regular"), ("published", "spoofed"))
        ]
        + _gains("published")
        + [
            _dropped("none", "regular"),
            _dropped("published", "spoofed"),
            _dropped("unlimited-queue", "unlimited satellite queue"),
        ],
        only=_SHOWN,
    ),
    "fig9": Table(
        "packets",
        "packets",
        {"spoofer": "published"},
        [
            Column(
                f"receiver's gain, %: {competitors}",
                "gain_percent",
                {"vantage": "receiver", "competitors": competitors},
            )
            for competitors in (1, 10, 50, 200)
        ],
        only=_SHOWN,
        more={
            "senders": Table(
                "packets",
                "packets",
                {"spoofer": "published"},
                [
                    Column(
                        f"sender's gain, %: {competitors}",
                        "gain_percent",
                        {"vantage": "sender", "competitors": competitors},
                    )
                    for competitors in (1, 10, 50, 200)
                ],
                only=_SHOWN,
            )
        },
    ),
    "backpressure": Table(
        "packets",
        "packets",
        {"competitors": 0},
        _MENDED,
        only=_SHOWN,
        more={
            "competitors": Table("packets", "packets", {"competitors": 50}, _MENDED, only=_SHOWN)
        },
    ),
}
