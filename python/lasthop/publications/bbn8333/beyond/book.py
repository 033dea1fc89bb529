"""bbn8333's open questions: their tables in the book."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lasthop.publications.bbn8333.beyond.ceten import STRATEGIES
from lasthop.publications.study.book import Column, Table


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


# --- Attackers, misbehaving receivers and codes ---

#: Where a flood or an attacker on the path meets its victim.
CORRUPTION = {"bit_error_rate": 2e-6, "bursts_bps": 0}
CONGESTION = {"bit_error_rate": 0.0, "bursts_bps": 12_000_000}
FORGED = {"sent": "notices"}
OVER_INERT, OVER_PLAIN = "goodput_over_inert", "segments_over_plain"
DEFENCES = {
    "none": "no defence",
    "limit": "limit 10",
    "trust": "trust",
    "nonce": "nonces",
    "all": "all three",
}
LIMITS = {
    "none": "no defence",
    "limit 100": "limit 100",
    "limit 10": "limit 10",
    "limit 1": "limit 1",
    "trust": "trust",
    "all": "all three",
}


def _bounds(metric: str = "goodput_over_plain") -> list[Column]:
    return [Column(f"{b:g}", metric, {"bound": b}) for b in (0.5, 0.6, 0.75, 0.9, 1.0)]


CODES = (
    "off",
    "fixed, all signalled",
    "fixed, none signalled",
    "CETEN alone",
    "CETEN, fixed",
    "CETEN, following",
)
ALONE: Mapping[str, Any] = {"recovery": "sack", "competitors": 0, "one_way_delay_s": 0.09}


BESIDE = {**ALONE, "competitors": 1}


def _codes(metric: str = "payload_bps") -> list[Column]:
    return [Column(code, metric, {"code": code}, 1e6) for code in CODES]


#: The codes within packets, and the source of corruption reports.
WITHIN: Mapping[str, Mapping[str, Any]] = {
    "no code": {"eten": "none", "code": "off"},
    **{f"corrects {n}": {"eten": "none", "code": n} for n in ("1", "2", "4", "8")},
    "CETEN alone": {"eten": "cumulative", "code": "off"},
    "follows CETEN": {"eten": "cumulative", "code": "following"},
}
NOTIFIED: Mapping[str, Mapping[str, Any]] = {
    "no code": WITHIN["no code"],
    "corrects 2": WITHIN["corrects 2"],
    "Backward": {"eten": "backward", "code": "off"},
    "Backward, corrects 2": {"eten": "backward", "code": "2"},
    "Backward, corrects 8": {"eten": "backward", "code": "8"},
}
BITS, FADES, ERASURE = "bit errors", "fades", "bit errors, erasure code"


def _within(of: Mapping[str, Mapping[str, Any]]) -> list[Column]:
    return [Column(words, "payload_bps", where, 1e6) for words, where in of.items()]


def _rate(bit: float) -> str:
    return f"{bit:g}" if bit else "none"


def _percent(share: float) -> str:
    return f"{100 * share:g} %" if share else "none"


_NUMBERS: Mapping[str, Table] = {
    "flood": Table(
        "rate_per_s",
        "notices a second",
        {**CORRUPTION, **FORGED},
        [Column(words, OVER_INERT, {"defences": of}) for of, words in DEFENCES.items()],
        lambda rate: f"{rate:,}",
    ),
    "forged": Table(
        "every",
        "forged: one of",
        {**CORRUPTION, **FORGED},
        [Column(words, OVER_INERT, {"defences": of}) for of, words in LIMITS.items()],
        lambda every: f"{every:,}",
    ),
    "false-echoes": Table(
        "bursts_bps",
        "bursts, Mb/s",
        {"receiver": "misbehaving"},
        [
            *(
                Column(words, "goodput_over_honest", {"defences": of})
                for of, words in DEFENCES.items()
            ),
            Column("neighbour, no defence", "others_over_honest", {"defences": "none"}),
            Column("neighbour, nonces", "others_over_honest", {"defences": "nonce"}),
        ],
        lambda rate: f"{rate / 1e6:g}" if rate else "none",
    ),
    "false-fields": Table(
        "bursts_bps",
        "bursts, Mb/s",
        {"strategy": "adaptive"},
        _bounds(),
        lambda rate: f"{rate / 1e6:g}" if rate else "none",
    ),
    "coding": Table("loss", "corrupted on one hop", {**ALONE, "hops": 1}, _codes(), _percent),
    "per-packet-code": Table(
        "bit_error_rate",
        "bit errors on one hop",
        {"channel": BITS, "hops": 1},
        _within(WITHIN),
        _rate,
    ),
}

_MORE: Mapping[str, Mapping[str, Table]] = {
    "flood": {
        "congestion": replace(_NUMBERS["flood"], where={**CONGESTION, **FORGED}),
        "segments": replace(
            _NUMBERS["flood"],
            where={**CONGESTION, **FORGED},
            columns=[Column(words, OVER_PLAIN, {"defences": of}) for of, words in DEFENCES.items()],
        ),
    },
    "forged": {
        "congestion": replace(_NUMBERS["forged"], where={**CONGESTION, **FORGED}),
        "segments": replace(
            _NUMBERS["forged"],
            where={**CONGESTION, **FORGED},
            columns=[Column(words, OVER_PLAIN, {"defences": of}) for of, words in LIMITS.items()],
        ),
    },
    "false-fields": {
        "loss-ratio": replace(_NUMBERS["false-fields"], where={"strategy": "loss-ratio"}),
        "neighbour": replace(_NUMBERS["false-fields"], columns=_bounds("others_over_plain")),
    },
    "coding": {
        "three-hops": replace(
            _NUMBERS["coding"], words="corrupted on three hops", where={**ALONE, "hops": 3}
        ),
        "reno": replace(_NUMBERS["coding"], where={**ALONE, "recovery": "reno", "hops": 1}),
        "delay": Table(
            "one_way_delay_s",
            "one way",
            {"recovery": "sack", "competitors": 0, "hops": 1, "loss": 0.01},
            _codes(),
            lambda delay: f"{delay * 1e3:g} ms",
        ),
        "beside": replace(_NUMBERS["coding"], where={**BESIDE, "hops": 1}),
        "other": replace(
            _NUMBERS["coding"], where={**BESIDE, "hops": 1}, columns=_codes("others_payload_bps")
        ),
    },
    "per-packet-code": {
        "three-hops": replace(
            _NUMBERS["per-packet-code"],
            words="bit errors on three hops",
            where={"channel": BITS, "hops": 3},
        ),
        "fades": replace(
            _NUMBERS["per-packet-code"],
            words="fades equivalent to",
            where={"channel": FADES, "hops": 1},
        ),
        "notices": replace(_NUMBERS["per-packet-code"], columns=_within(NOTIFIED)),
        "erasures": replace(
            _NUMBERS["per-packet-code"],
            where={"hops": 1},
            columns=[
                Column(words, "payload_bps", {"channel": channel, **WITHIN[code]}, 1e6)
                for words, channel, code in (
                    ("no code", BITS, "no code"),
                    ("across packets", ERASURE, "no code"),
                    ("within, 2", BITS, "corrects 2"),
                    ("across and within, 2", ERASURE, "corrects 2"),
                    ("within, 8", BITS, "corrects 8"),
                    ("across and within, 8", ERASURE, "corrects 8"),
                )
            ],
        ),
    },
}

_ATTACKS = {name: replace(table, more=_MORE.get(name, {})) for name, table in _NUMBERS.items()}


# --- All ---

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
        "reported by mistake",
        {},
        [
            *(
                Column(words, metric, {"mistaken": "one", "competitors": 4}, scale)
                for words, metric, scale in (
                    ("own goodput, kb/s", "goodput_bps", 1e3),
                    ("each neighbour's, kb/s", "others_goodput_bps", 1e3),
                    ("Jain's index", "fairness", 1.0),
                    ("dropped, %", "dropped_share", 0.01),
                )
            ),
            Column("all five: bystander, kb/s", "bystander_goodput_bps", {"mistaken": "all"}, 1e3),
            Column("all five: total, kb/s", "all_goodput_bps", {"mistaken": "all"}, 1e3),
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
                ("readable", "notified by the node"),
            )
        ],
    ),
    **_ATTACKS,
}
