"""Beyond ishac2001: figures 6 and 8 with a spoofer that holds a bounded amount of data, and with
one that knows the satellite link's rate besides.

The publication leaves open how to keep data from accumulating at the spoofer without losing what it
gains for large transfers (section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.ishac2001 import fig5, network
from lasthop.publications.ishac2001.fig5 import BEFORE, NEAR
from lasthop.publications.ishac2001.network import (
    BOUNDED,
    PACED,
    RECEIVER,
    REGULAR,
    SIZES,
    SPOOFED,
    UNLIMITED,
    VANTAGES,
    estimate,
    group_times,
    over,
    percent,
    pooled,
)
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Joint, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, phrase
from lasthop.publications.study.words import percent as share
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Settings of the spoofer. The data that it holds of a connection in each direction: 120 segments,
#: less than the satellite link and its queue hold (126), so that it never overruns them, and about
#: twice what fills the link. The rate of the satellite link is that of the scenario; r2 is its near
#: end.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    BOUNDED: {"cache": "180 kB"},
    PACED: {"cache": "180 kB", "hop": "r2", "rate": "1.544 Mbit/s"},
}
_NAMES = {BOUNDED: "a bounded cache", PACED: "a bounded cache and the satellite link's rate"}
#: The load of figures 5 to 8, and none, where data comes to the spoofer as fast as it can.
LEVELS = (0, network.COMPETITORS)
_GROUPS = (
    tuple(size for size in SIZES if 10 <= size <= 100),
    BEFORE,
    NEAR,
    tuple(size for size in SIZES if 600 <= size <= 1000),
    (2000,),
)
GROUPS: Mapping[str, Sequence[int]] = {
    " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1])))): sizes for sizes in _GROUPS
}
#: Sizes of which slow start over the satellite link is most of the time.
_SHORT = tuple(name for name, sizes in GROUPS.items() if sizes[-1] <= max(NEAR))
_SIZES = tuple(size for size in SIZES if size % 10 == 0 or size < 10)


def cells() -> list[Cell]:
    """All gateways, with competitors and without; and what is lost before the satellite link."""
    return [
        network.cell(
            packets,
            arm,
            vantage,
            competitors=competitors,
            quick=packets in network.QUICK_SIZES,
            more=SETTINGS.get(arm),
        )
        for competitors in LEVELS
        for arm, sizes in (
            (REGULAR, _SIZES),
            (SPOOFED, _SIZES),
            *((arm, _SIZES) for arm in SETTINGS),
            (UNLIMITED, NEAR),
        )
        for vantage in VANTAGES
        for packets in sizes
    ]


_LOOKS = {
    REGULAR: ("regular", pictures.BLACK, "-"),
    SPOOFED: ("as published", pictures.BLUE, "-"),
    BOUNDED: ("bounded cache", pictures.ORANGE, "--"),
    PACED: ("bounded cache and rate", pictures.GREEN, "-."),
    UNLIMITED: ("as published with an unlimited satellite queue", pictures.GREY, ":"),
}


def figure(runs: Runs) -> Figure:
    """Figures 6 and 8, without and with competitors."""

    def dropped(runs: Runs, case: Case) -> Estimate | None:
        return runs.mean(case, "dropped")

    with pictures.figure(11, 7) as drawn:
        axes = drawn.subplots(2, 2, sharex=True)
        for column, competitors in enumerate(LEVELS):
            for arm in (REGULAR, SPOOFED, *SETTINGS):
                look = _LOOKS[arm]
                where: dict[str, Any] = {
                    "spoofer": arm,
                    "vantage": RECEIVER,
                    "competitors": competitors,
                }
                if arm != REGULAR:
                    fig5.curve(axes[0][column], runs, network.gain, look, **where)
                fig5.curve(axes[1][column], runs, dropped, look, **where)
            axes[0][column].set_title(f"{competitors} competitors")
            axes[1][column].set_xlabel("packets")
            axes[1][column].set_xscale("log")
            for row in (0, 1):
                axes[row][column].axvline(400, color=pictures.GREY, linewidth=0.9, linestyle=":")
        axes[0][0].set_ylabel("receiver's gain, %")
        axes[1][0].set_ylabel("dropped segments of the transfer")
        axes[1][0].legend()
    return drawn


def _drops(runs: Runs, sizes: Sequence[int], arm: str, competitors: int) -> list[float | None]:
    return pooled(runs, "dropped", sizes, spoofer=arm, vantage=RECEIVER, competitors=competitors)


def _least(runs: Runs, arm: str, competitors: int) -> tuple[Joint, str, Estimate | None]:
    """That no size near 400 packets gains less than shorter ones do; and the size that gains least
    in comparison."""
    before = group_times(runs, RECEIVER, BEFORE, arm, competitors=competitors)
    cases = runs.cases(vantage=RECEIVER, spoofer=arm, competitors=competitors)
    found = {
        case["packets"]: over(network.times(runs, case), before)
        for case in cases
        if case["packets"] in NEAR
    }
    known = [(of.value, size, of) for size, of in found.items() if of is not None]
    least = min(known, default=None, key=lambda one: one[:2])
    words = "nothing" if least is None else f"{phrase(least[2])} ({least[1]} packets)"
    claim = every([Check(of, above(1 - SMALL)) for of in found.values()])
    return claim, words, None if least is None else least[2]


def _no_dip(runs: Runs, competitors: int, arm: str) -> Answer:
    claim, words, least = _least(runs, arm, competitors)
    _, published, _ = _least(runs, SPOOFED, competitors)
    return Answer(
        f"With {_NAMES[arm]} and {competitors} competitors, the gain has no dip near 400 packets.",
        "§5",
        claim.verdict,
        f"The receiver's gain as a throughput ratio, {NEAR[0]} to {NEAR[-1]} packets, over that of"
        f" {BEFORE[0]} to {BEFORE[-1]}, at the least: {words}; with the published spoofer"
        f" {published}. No dip is taken as no size more than {share(SMALL)} below. {claim.tally}",
        measured=least,
        effect_of="none",
        criterion=claim.criterion,
    )


def _no_drops(runs: Runs, competitors: int, arm: str) -> Answer:
    found = {of: _drops(runs, NEAR, of, competitors) for of in (REGULAR, SPOOFED, arm, UNLIMITED)}
    extra = fig5.fewer_in(found[UNLIMITED], found[arm])
    published = fig5.fewer_in(found[arm], found[SPOOFED])
    words = ", ".join(f"{_LOOKS[of][0]} {fig5.mean_of(values)}" for of, values in found.items())
    return Answer(
        f"With {_NAMES[arm]} and {competitors} competitors, transfers near 400 packets lose no"
        " segments at the satellite link, and fewer in all than with the published one.",
        "§5",
        (decides := every([Check(extra, below(1.0)), Check(published, above(1.0))])).verdict,
        f"Dropped segments of {NEAR[0]} to {NEAR[-1]} packets: {words}. None is taken as less than"
        " one more than with the unlimited queue, fewer as at least one less.",
        measured=extra,
        unit="packets",
        effect_of="cache",
        criterion=decides.criterion,
    )


def _rounded(of: Estimate | None) -> str:
    return "" if of is None else f"{of.value:.0f}"


def _no_fewer_gains(runs: Runs, competitors: int, arm: str, vantage: str) -> Answer:
    ratios = {
        name: estimate(group_times(runs, vantage, sizes, arm, SPOOFED, competitors=competitors))
        for name, sizes in GROUPS.items()
    }
    gains = {
        name: percent(estimate(group_times(runs, vantage, sizes, arm, competitors=competitors)))
        for name, sizes in GROUPS.items()
    }
    words = "; ".join(
        f"{name} packets {phrase(ratio)} (gain {_rounded(gains[name])} %)"
        for name, ratio in ratios.items()
    )
    return Answer(
        f"With {_NAMES[arm]} and {competitors} competitors, the {vantage}'s gain is no smaller than"
        " with the published spoofer.",
        "§5",
        (decides := every([Check(ratio, above(1 - SMALL)) for ratio in ratios.values()])).verdict,
        f"Throughput over that with the published spoofer: {words}. No smaller is taken as less"
        f" than {share(SMALL)} below.",
        measured=min(
            (of for of in ratios.values() if of is not None), key=lambda of: of.value, default=None
        ),
        effect_of="none",
        criterion=decides.criterion,
    )


def _more_with_rate(runs: Runs, competitors: int) -> Answer:
    ratios = {
        name: estimate(
            group_times(runs, RECEIVER, GROUPS[name], PACED, BOUNDED, competitors=competitors)
        )
        for name in _SHORT
    }
    words = "; ".join(f"{name} packets {phrase(ratio)}" for name, ratio in ratios.items())
    return Answer(
        f"With the satellite link's rate and {competitors} competitors, the receiver's gain of"
        f" transfers of up to {max(NEAR)} packets is larger than with the bounded cache alone.",
        "§5",
        (
            decides := every([Check(ratio, above(1 + NEGLIGIBLE)) for ratio in ratios.values()])
        ).verdict,
        f"Throughput over that with the bounded cache alone: {words}. Larger is taken as more than"
        f" {share(NEGLIGIBLE)}.",
        measured=min(
            (of for of in ratios.values() if of is not None), key=lambda of: of.value, default=None
        ),
        effect_of="rate",
        criterion=decides.criterion,
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """Whether it mends what it is for, and what it costs."""
    mended = [
        answer
        for arm in SETTINGS
        for competitors in LEVELS
        for answer in (
            _no_dip(runs, competitors, arm),
            _no_drops(runs, competitors, arm),
            *(_no_fewer_gains(runs, competitors, arm, vantage) for vantage in VANTAGES),
        )
    ]
    return [*mended, *(_more_with_rate(runs, competitors) for competitors in LEVELS)]


def _outcome(runs: Runs) -> str:
    words = []
    for arm in SETTINGS:
        for competitors in LEVELS:
            times = group_times(runs, RECEIVER, NEAR, arm, SPOOFED, competitors=competitors)
            drops = [_drops(runs, NEAR, of, competitors) for of in (SPOOFED, arm)]
            words.append(
                f"with {_NAMES[arm]} and {competitors} competitors {phrase(estimate(times))} times"
                f" the throughput, {fig5.mean_of(drops[1])} instead of {fig5.mean_of(drops[0])}"
                " dropped segments"
            )
    return f"Near 400 packets, compared with the published spoofer: {'; '.join(words)}."


STUDY = Study(
    publication=network.PUBLICATION,
    experiment="backpressure",
    title="A spoofer that does not overrun the satellite link",
    asks="The publication leaves open how to keep the spoofer from overrunning the satellite link"
    " while large transfers still gain. Does a bounded cache with back-pressure do so, and what"
    " does the satellite link's rate add?",
    where="§5",
    method=(
        *network.METHOD,
        f"The bounded spoofer holds at most {SETTINGS[BOUNDED]['cache']} of a connection in each"
        " direction besides its receive window. When that is reached, it stops reading, and its"
        " window closes for the server.",
        f"With the satellite link's rate ({SETTINGS[PACED]['rate']}), it also sends no faster than"
        " that, and its initial window over the link is what the link carries in a round trip.",
        f"{' and '.join(map(str, LEVELS))} competitors.",
    ),
    cells=cells,
    collect=network.collect,
    measures=network.MEASURES,
    figures=(Drawn("The receiver's gain (figure 6) and the dropped segments (figure 8).", figure),),
    answers=answers,
    outcome=_outcome,
    keys=network.KEYS,
)
