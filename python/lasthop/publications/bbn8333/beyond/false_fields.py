"""A receiver that makes up what its path is like (bbn8333 §7.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.bbn8333.beyond import attacks
from lasthop.publications.bbn8333.beyond.attacks import STARTS, held
from lasthop.publications.bbn8333.beyond.ceten import STRATEGIES
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, Verdict, above, every, some
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/false-fields"
BOUNDS = (0.5, 0.6, 0.75, 0.9, 1.0)
WORDS: Mapping[Any, str] = {bound: f"{bound:g}" for bound in BOUNDS}
#: The rates of datagrams in bursts, half of the time, with the runs of each cell: the more bursts,
#: the more runs differ.
SEEDS: Mapping[int, int] = {0: 60, 4_000_000: 60, 8_000_000: 60, 12_000_000: 60, 16_000_000: 180}
BURSTS: Mapping[Any, str] = {
    rate: f"bursts of {rate / 1e6:g} Mb/s" if rate else "no bursts" for rate in SEEDS
}
#: The strongest claim: as published the formula has survivals where losses are meant.
_CLAIMS: Mapping[str, Mapping[str, float]] = {
    strategy: {
        "corruption": 0.0 if strategy == "published" else 1.0,
        "congestion": 1.0 if strategy == "published" else 0.0,
    }
    for strategy in STRATEGIES
}
QUICK_SEEDS = 1


def _cell(rate: int, strategy: str, bound: float) -> Cell:
    eten: Mapping[str, Any] = {"report": NONE}
    settings: dict[str, Any] = {"flows.2.traffic.udp.rate": attacks.bursts(rate)}
    if strategy:
        eten = {"report": "cumulative", "strategy": strategy, "bound": bound}
        settings["attacks.0.claim"] = _CLAIMS[strategy]
    else:
        settings["attacks"] = []
    case = Case(
        recovery="sack",
        eten="cumulative" if strategy else NONE,
        strategy=strategy,
        rate_bps=10e6,
        bursts_bps=rate,
        bound=bound,
    )
    of = {"flows.0.tcp.eten": eten, **settings}
    return Cell(case, SCENARIO, of, SEEDS[rate], QUICK_SEEDS, STARTS)


def cells() -> list[Cell]:
    """A misbehaving receiver by strategy and bound, and plain TCP, beside more and more bursts."""
    found = []
    for rate in SEEDS:
        # Of a plain sender: a loss leaves half of the flight.
        found.append(_cell(rate, "", BOUNDS[0]))
        found += [_cell(rate, strategy, bound) for strategy in STRATEGIES for bound in BOUNDS]
    return found


def plain(case: Case) -> Case:
    """The same with a sender that knows no ETEN."""
    return case.but(eten=NONE, strategy="", bound=BOUNDS[0])


def worth(bound: float) -> float:
    """How many times a plain sender's rate one has that keeps such a share of its window at a
    loss, at the same rate of losses a packet: windows of AIMD go with sqrt((1 + b) / (1 - b))."""
    return math.sqrt(worth_at_times(bound))


def worth_at_times(bound: float) -> float:
    """The same if losses come at the same times, however much is sent: a window grows as much from
    one to the next, which is 1 - b of it, and is (1 + b) / 2 of its largest in the middle."""
    return (1 + bound) / (1 - bound) / 3 if bound < 1 else math.inf


def _over_plain(metric: str, runs: Runs, case: Case) -> Estimate | None:
    return None if case == plain(case) else runs.ratio(case, plain(case), metric)


def gained(runs: Runs, case: Case) -> Estimate | None:
    """The misbehaving receiver's goodput over that of plain TCP in its place."""
    return _over_plain("goodput_bps", runs, case)


def harm(runs: Runs, case: Case) -> Estimate | None:
    """Its neighbour's, likewise."""
    return _over_plain("others_goodput_bps", runs, case)


_SHOWN = (0, 8_000_000, 16_000_000)
LINES = tuple(
    draw.Line(strategy, {"strategy": strategy}, colour, marker)
    for strategy, colour, marker in zip(
        STRATEGIES, (pictures.PURPLE, pictures.BLUE, pictures.GREEN), "voD", strict=True
    )
)


def figure(runs: Runs) -> Figure:
    """What the misbehaving receiver gains, and what its neighbour loses, over the bound."""

    def row(what: str, value: Any, top: float | None) -> list[draw.Panel]:
        return [
            draw.Panel(
                f"{what}: {BURSTS[rate]}",
                {"bursts_bps": rate},
                value,
                "goodput over plain",
                top=top,
                lines=LINES,
            )
            for rate in _SHOWN
        ]

    rows = [row("The misbehaving receiver", gained, 3.0), row("Its neighbour", harm, None)]
    drawn = draw.panels(runs, rows, "bound", "bound", WORDS)
    bounded = [bound for bound in BOUNDS if bound < 1]
    for ax in drawn.axes[: len(_SHOWN)]:
        places = range(len(bounded))
        for law, style in ((worth, ":"), (worth_at_times, "--")):
            ax.plot(places, [law(bound) for bound in bounded], style, color=pictures.BLACK, lw=1)
    return drawn


def answers(runs: Runs) -> Sequence[Answer]:
    """What a misbehaving receiver gains, and what the bound makes of it."""
    return [
        _without(runs),
        _same(runs),
        _bounded(runs, worth_at_times, "where losses come at given times"),
        _bounded(runs, worth, "at a given rate of losses a packet"),
    ]


def _without(runs: Runs) -> Answer:
    words, worst, cells = [], None, []
    for strategy in STRATEGIES:
        lies = runs.cases(strategy=strategy, bound=1.0)
        ratios = [(case, gained(runs, case)) for case in lies]
        known = [(case, ratio) for case, ratio in ratios if ratio is not None]
        low = min(known, key=lambda found: found[1].value)
        high = max(known, key=lambda found: found[1].value)
        cells += [Check(ratio, above(1 + MARKED)) for _, ratio in known]
        words.append(f"{strategy} {phrase(low[1])} to {phrase(high[1])}")
        if worst is None or high[1].value > worst[1].value:
            worst = high
    assert worst is not None
    return Answer(
        "Without a bound, a receiver that makes its path up gets an unfair share.",
        "§7.1",
        (decides := some(cells)).verdict,
        f"Its goodput over that of plain TCP, least to most over the bursts: {'; '.join(words)}.",
        worst[0],
        worst[1],
        effect_of="lying",
        criterion=decides.criterion,
    )


def _same(runs: Runs) -> Answer:
    """With a half there is nothing to gain."""
    lies = runs.cases(eten="cumulative", bound=0.5)
    same = all(runs.found[case] == runs.found[plain(case)] for case in lies)
    case = lies[-1]
    return Answer(
        "With a bound of 0.5, no claim changes anything.",
        "§7.1",
        Verdict.of(same),
        f"{'All' if same else 'Not all'} runs of {len(lies)} cells are those of plain TCP.",
        case,
        gained(runs, case),
        effect_of="bound",
        criterion="every run the same",
    )


def _bounded(runs: Runs, law: Callable[[float], float], words: str) -> Answer:
    """Whether the bound's worth is an upper one."""
    lies = [case for case in runs.cases(eten="cumulative") if 0.5 < case["bound"] < 1]
    found = {
        bound: held(
            runs,
            [(case, plain(case)) for case in lies if case["bound"] == bound],
            "goodput_bps",
            most=law(bound) * (1 + NEGLIGIBLE),
        )
        for bound in BOUNDS[1:-1]
    }
    most = "; ".join(
        f"{bound:g}: {phrase(of.ratio)} ({of.case['strategy']}, {BURSTS[of.case['bursts_bps']]}),"
        f" worth {law(bound):.2f}"
        for bound, of in found.items()
    )
    nearest = max(found.values(), key=lambda of: of.ratio.hi / law(of.case["bound"]))
    return Answer(
        "A misbehaving receiver gains at most what keeping the bound's share of the window at every"
        f" loss is worth {words}.",
        "§7.1",
        (decides := every([of.cells for of in found.values()])).verdict,
        f"Of {len(lies)} cells, goodput over that of plain TCP by bound, the highest interval of"
        f" any strategy beside any bursts: {most}.",
        nearest.case,
        nearest.ratio,
        effect_of="bound",
        criterion=decides.criterion,
    )


STUDY = question(
    id="false-fields",
    title="A receiver that makes up its path",
    asks="With Cumulative ETEN the receiver echoes what its path is like, and there is no proof"
    " against what it says. What does a misbehaving receiver gain, and what does a bound achieve?",
    where="§7.1",
    method=(
        "Two SACK connections with segments of 1000 bytes and the profile of today over a"
        " bottleneck of 10 Mb/s with room for 50 packets, a round trip of 44 ms, beside bursts of"
        " datagrams, 20 ms on and 20 ms off; 60 s. One has Cumulative ETEN and a receiver that"
        " claims certain corruption (published, whose formula is inverted: certain congestion),"
        " the other, which has neither, starts 0 to 3 s later.",
        "Plain TCP in the misbehaving receiver's place for comparison.",
        "No loss leaves more than the bound's share b of the flight, whatever is claimed. What AIMD"
        " with such a decrease is worth, over one that halves: w = (1 + b) / (1 - b) / 3 if losses"
        " come at the same times, however much is sent, as where bursts overflow a queue; the root"
        " of w if they come with the same probability a packet.",
    ),
    cells=cells,
    collect=attacks.shares,
    measures=(
        mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
        mean("others_goodput_bps", "bit/s", "neighbour's, kb/s", 1e3),
        Measure("goodput_over_plain", "1", "over plain", gained),
        Measure("others_over_plain", "1", "neighbour's over plain", harm),
    ),
    figure=figure,
    caption="Goodputs over those with plain TCP in the misbehaving receiver's place; what the bound"
    " is worth at a given rate of losses a packet (dotted) and at given times (dashed).",
    answers=answers,
    keys={"bursts_bps": "bursts, bit/s", "strategy": "strategy", "bound": "bound"},
)
