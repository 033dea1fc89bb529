"""bbn8333's open questions: their tables in the book."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attacks
from studies import Column, Table


def _goodputs(key: str, words: str, value: Callable[[Any], str]) -> Table:
    names = {"none": "alone", "backward": "Backward", "oracle": "Oracle"}
    columns = [
        Column(
            f"{'Reno' if recovery == 'reno' else 'SACK'}, {names[eten]}",
            "goodput_bps",
            {"recovery": recovery, "eten": eten},
            1e3,
        )
        for recovery in ("reno", "sack")
        for eten in names
    ]
    where = {"one_way_delay_s": 0.32, "bit_error_rate": 1.56e-5}
    return Table(key, words, where, columns, value)


def _etens(metrics: Mapping[str, str]) -> list[Column]:
    names = {"none": "alone", "backward": "Backward", "oracle": "Oracle"}
    return [
        Column(f"{words}, {name}", metric, {"eten": eten})
        for metric, words in metrics.items()
        for eten, name in names.items()
    ]


PERIOD = {"profile": "ns2-2001"}
STRATEGIES = ("published", "loss-ratio", "adaptive")

TABLES: Mapping[str, Table] = {
    "burst": _goodputs("burst_packets", "packets in a burst", lambda n: str(n or "bit errors")),
    "fade": _goodputs("fade_s", "fades of", lambda s: f"{s:g} s" if s else "none"),
    "short": Table(
        "size_bytes",
        "size",
        {**PERIOD, "bit_error_rate": 1.56e-5},
        _etens({"transfer_median_s": "median, s", "transfer_p95_s": "95th percentile, s"}),
        lambda size: f"{size / 1e3:g} kB",
    ),
    "web": Table(
        "bit_error_rate",
        "bit errors",
        PERIOD,
        _etens({"page_median_s": "page, median, s", "object_p95_s": "object, 95th percentile, s"}),
        lambda rate: f"{rate:g}",
    ),
    "setup": Table(
        "bit_error_rate",
        "bit errors",
        {**PERIOD, "errors": "both"},
        [
            Column(f"{words}, {name}", metric, where, scale)
            for metric, words, scale in (
                ("first_byte_median_s", "first byte, s", 1.0),
                ("failed", "fail, %", 0.01),
            )
            for name, where in (
                ("alone", {"eten": "none"}),
                ("Backward 180", {"eten": "backward", "notice_bytes": 180}),
                ("Backward 56", {"eten": "backward", "notice_bytes": 56}),
                ("Oracle", {"eten": "oracle"}),
            )
        ],
        lambda rate: f"{rate:g}",
    ),
    "mistake": Table(
        "mistakes",
        "mistaken",
        {},
        [
            *(
                Column(words, metric, {"mistaken": "one", "competitors": 4}, scale)
                for words, metric, scale in (
                    ("own goodput, kb/s", "goodput_bps", 1e3),
                    ("each other's, kb/s", "others_goodput_bps", 1e3),
                    ("Jain's index", "fairness", 1.0),
                    ("dropped, %", "dropped_share", 0.01),
                )
            ),
            Column("all err: bystander, kb/s", "bystander_goodput_bps", {"mistaken": "all"}, 1e3),
            Column("all err: everything, kb/s", "all_goodput_bps", {"mistaken": "all"}, 1e3),
        ],
        lambda share: f"{100 * share:g} %",
    ),
    "alpha": Table(
        "alpha",
        "a",
        {},
        [
            Column(
                f"{strategy}, {'beside 4' if others else 'alone'}",
                "ratio",
                {"strategy": strategy, "competitors": others, "bit_error_rate": 1.56e-6},
            )
            for others in (0, 4)
            for strategy in STRATEGIES
        ],
        lambda weight: f"{weight:g}",
    ),
    "forms": Table(
        "form",
        "form",
        {"bit_error_rate": 5e-6},
        [
            Column(
                f"{strategy}, a = {a:.3g}, {'beside 4' if others else 'alone'}",
                "ratio",
                {"strategy": strategy, "alpha": a, "competitors": others},
            )
            for others in (0, 4)
            for strategy, a in (
                ("published", 0.5),
                ("loss-ratio", 0.5),
                ("loss-ratio", 1 / 64),
                ("adaptive", 1 / 64),
            )
        ],
    ),
    "fairness": Table(
        "bit_error_rate",
        "bit errors",
        {"own": 1},
        [
            Column(f"{words}, {strategy}", metric, {"strategy": strategy})
            for metric, words in (("share_of_fair", "of a fair share"), ("ratio", "others"))
            for strategy in STRATEGIES
        ],
        lambda rate: f"{rate:g}",
    ),
    "ecn": Table(
        "bit_error_rate",
        "bit errors",
        {},
        [
            Column(
                f"{name}, {strategy}, {'with' if ecn else 'without'} ECN",
                "ratio",
                {"queue": queue, "strategy": strategy, "ecn_on": ecn},
            )
            for queue, name in (("red", "RED"), ("codel", "CoDel"))
            for strategy in ("published", "loss-ratio")
            for ecn in (True, False)
        ],
        lambda rate: f"{rate:g}",
    ),
    "tunnel": Table(
        "tunnel_hops",
        "hops inside",
        {"bit_error_rate": 1.56e-5, "errors": "everywhere", "way_back": "the same"},
        [
            Column(
                f"{name}, {1e3 * delay:g} ms",
                "goodput_bps",
                {"notices": notices, "one_way_delay_s": delay},
                1e3,
            )
            for delay in (0.01, 0.32)
            for notices, name in (
                ("alone", "alone"),
                ("lost", "lost inside"),
                ("resolve", "resolved"),
                ("readable", "told directly"),
            )
        ],
    ),
    **attacks.TABLES,
}
