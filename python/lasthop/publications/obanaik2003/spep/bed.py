"""The path of chapter 5, and what may help TCP on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.study.draw import Line
from lasthop.publications.study.runs import Case, Cell

if TYPE_CHECKING:
    import polars as pl

PUBLICATION = "obanaik2003"
SCENARIO = "obanaik2003/spep"
#: As many runs as in the thesis.
SEEDS, QUICK_SEEDS = 10, 2
#: The delay box's, one way, in seconds.
LAN, WAN = 0.02, 0.2
DELAYS: Mapping[float, str] = {LAN: "LAN", WAN: "WAN"}
#: The mean of the gap between lost packets, bytes.
INTERVALS = tuple(1024 * size for size in (16, 32, 64, 128, 256))
RECEIVE_WINDOW = 64 * 1024
MSS = 1300
#: Bytes of a full packet with IPv6 and ESP, without the option.
PACKET = MSS + 20 + 40 + 36

ESP: Mapping[str, Any] = {"box": "esp"}
OPTION: Mapping[str, Any] = {"box": "esp", "spep": True}
STATION: Mapping[str, Any] = {"box": "spep", "hop": "mobile"}
SNOOP: Mapping[str, Any] = {"box": "snoop", "hop": "mobile"}
CAUSES: Mapping[str, Any] = {"box": "esp", "loss_causes": "station"}
LINK_CAUSES: Mapping[str, Any] = {"box": "esp", "loss_causes": "link"}
ELN: Mapping[str, Any] = {"mechanism": "eln"}
EVERY_HOLE: Mapping[str, Any] = {"mechanism": "eln", "every_hole": True}


@dataclass(frozen=True)
class Scheme:
    """What helps TCP: boxes of the fixed host, the base station and the mobile host, and TCP's."""

    name: str
    boxes: tuple[Mapping[str, Any] | None, ...]
    mechanisms: tuple[Mapping[str, Any], ...] = ()
    recovery: str = "newreno"

    @property
    def settings(self) -> dict[str, Any]:
        """Of the scenario."""
        nodes = zip(("fixed", "station", "mobile"), self.boxes, strict=True)
        boxes = {f"nodes.{node}.boxes": [] if of is None else [of] for node, of in nodes}
        tcp = {"recovery": self.recovery, "mechanisms": list(self.mechanisms)}
        return {**boxes, **{f"flows.0.tcp.{key}": value for key, value in tcp.items()}}


_PLAIN = (ESP, None, ESP)
_SPEP = (OPTION, STATION, CAUSES)
NEWRENO, SPEP, END_TO_END = "newreno", "spep", "end-to-end-eln"
#: End-to-end ELN whose packets are as large as those of SPEP.
AS_LARGE = "end-to-end-eln-as-large"
SCHEMES: Mapping[str, Scheme] = {
    NEWRENO: Scheme("NewReno", _PLAIN),
    SPEP: Scheme("SPEP", _SPEP, (ELN,)),
    END_TO_END: Scheme("end-to-end ELN", (ESP, None, LINK_CAUSES), (ELN,)),
    AS_LARGE: Scheme("end-to-end ELN, option unused", (OPTION, None, LINK_CAUSES), (ELN,)),
    "every-hole": Scheme("SPEP, every hole", _SPEP, (EVERY_HOLE,)),
    "sack": Scheme("SACK", _PLAIN, (), "sack"),
    "sack-spep": Scheme("SACK and SPEP", _SPEP, (ELN,), "sack"),
    "sack-every-hole": Scheme("SACK and SPEP, every hole", _SPEP, (EVERY_HOLE,), "sack"),
    "delayed-dupacks": Scheme(
        "delayed dupacks", _PLAIN, ({"mechanism": "delayed-dupacks", "delay_ms": 100},)
    ),
    "freeze": Scheme("Freeze-TCP", _PLAIN, ({"mechanism": "freeze"},)),
    "spep-freeze": Scheme("SPEP and Freeze-TCP", _SPEP, (ELN, {"mechanism": "freeze"})),
    "snoop-esp": Scheme("Snoop under ESP", (ESP, SNOOP, ESP)),
    "snoop-clear": Scheme("Snoop in clear", (None, SNOOP, None)),
}
_LOOKS = {
    NEWRENO: (pictures.BLACK, "s", "-"),
    SPEP: (pictures.BLUE, "o", "-"),
    END_TO_END: (pictures.ORANGE, "D", "--"),
    "every-hole": (pictures.SKY, "o", ":"),
    "sack": (pictures.GREY, "s", "-"),
    "sack-spep": (pictures.PURPLE, "v", "--"),
    "sack-every-hole": (pictures.PURPLE, "v", "-"),
    "delayed-dupacks": (pictures.GREY, "x", ":"),
    "snoop-esp": (pictures.GREEN, "x", ":"),
    "snoop-clear": (pictures.GREEN, "^", "-"),
}


def line(scheme: str) -> Line:
    """How pictures show a scheme."""
    return Line(SCHEMES[scheme].name, {"scheme": scheme}, *_LOOKS[scheme])


def path(delay: float, interval: int) -> dict[str, Any]:
    """Settings of the path."""
    return {
        "links.1.delay": units.duration(delay),
        "links.2.forward.errors.bursts.gap": f"{interval // 1024} KiB",
    }


def cell(scheme: str, delay: float, interval: int, seeds: int = SEEDS, quick: int = 0) -> Cell:
    """A scheme on the path of the thesis."""
    case = Case(scheme=scheme, one_way_delay_s=delay, error_interval_bytes=interval)
    settings = {**path(delay, interval), **SCHEMES[scheme].settings}
    return Cell(case, SCENARIO, settings, seeds, quick)


def collect(rows: pl.DataFrame) -> dict[str, list[float]]:
    """What the sender counts."""
    names = ("payload_bps", "timeouts", "reductions", "retransmissions")
    return {name: [float(value) for value in rows[name]] for name in names}


KEYS: Mapping[str, str] = {
    "scheme": "scheme",
    "one_way_delay_s": "delay",
    "error_interval_bytes": "one error in",
}


def interval_words(interval: int) -> str:
    """As in "16 KiB"."""
    return f"{interval // 1024} KiB"


WORDS: Mapping[str, Any] = {
    "scheme": lambda scheme: SCHEMES[scheme].name,
    "one_way_delay_s": lambda delay: f"{DELAYS[delay]}, {units.duration(delay)}",
    "error_interval_bytes": interval_words,
}

METHOD = (
    "Fixed host, delay box (20 ms in the LAN, 200 ms in the WAN, one way), base station, hop,"
    " mobile host; 10 Mb/s, a receive window of 64 KiB, IPv6, ESP in transport mode, segments of"
    " 1300 bytes, profile ns2-2007; a download for 100 s. Rates are of payload.",
    "The hop damages one data packet in so many bytes on average; gaps are exponential. Nothing is"
    " lost to congestion. Runs with the same seed are compared in pairs.",
)
