"""Throughput, gain and losses over the size of a transfer (ishac2001 §4, figures 5, 6 and 8)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.ishac2001 import network
from lasthop.publications.ishac2001.network import (
    RECEIVER,
    REGULAR,
    SENDER,
    SIZES,
    SPOOFED,
    UNLIMITED,
    VANTAGES,
    Ratio,
    estimate,
    group_times,
    over,
    percent,
    pooled,
)
from lasthop.publications.study.factors import Factor, Factors
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, below, between, every, some
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, SMALL, phrase
from lasthop.publications.study.words import percent as share
from lasthop.stats import Estimate, errors_from, mean_interval, quotient

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What the statements call small, and large.
FEW = tuple(size for size in SIZES if size <= 10)
LARGE = tuple(size for size in SIZES if size >= 500)
#: "Long", where both ends see about the same.
LONG = tuple(size for size in SIZES if size >= 1000)
#: Around 400 packets, where slow start with delayed acknowledgments fills the satellite link and
#: its queue (128 packets, a third of what was sent until then), and both sides of it.
NEAR = tuple(size for size in SIZES if 350 <= size <= 450)
BEFORE = tuple(size for size in SIZES if 300 <= size <= 340)
AFTER = tuple(size for size in SIZES if 460 <= size <= 500)
#: Sizes with neighbours one packet away, where gains fluctuate.
_NEIGHBOURS = tuple(range(51, 101))
_UNLIMITED = tuple(size for size in SIZES if size >= 200)


def cells() -> list[Cell]:
    """Every size with and without the spoofer; from 200 packets also with an unlimited satellite"
    " queue."""
    return [
        network.cell(packets, arm, vantage, quick=packets in network.QUICK_SIZES)
        for arm, sizes in ((REGULAR, SIZES), (SPOOFED, SIZES), (UNLIMITED, _UNLIMITED))
        for vantage in VANTAGES
        for packets in sizes
    ]


# --- Factors ---------------------------------------------------------------------------------

LOAD = Factor(
    "load",
    "5 competitors instead of 50",
    "The load decides how fast data comes to the spoofer.",
)
ACKS = Factor(
    "acks", "an acknowledgment of every segment", "ns-2's sink without delayed acknowledgments."
)
HEADERS = Factor(
    "headers",
    "1500-byte packets",
    "1500 bytes may be the packet with its headers, and not the data.",
)
FACTORS = (LOAD, ACKS, HEADERS)
_TRIED = (1, 5, 10, 200, 320, *range(350, 460, 10), 480, 500, 700, 1000)


def varied(factor: Factor) -> list[Cell]:
    """Some of the sizes with one factor changed."""
    more: dict[str, Any] = {}
    if factor is ACKS:
        more["tcp"] = {"delayed_ack": "off"}
    if factor is HEADERS:
        more["tcp"] = {"mss": 1460}
    if factor is LOAD:
        more["load"] = 5
    return [
        network.cell(packets, arm, vantage, **more)
        for arm in (REGULAR, SPOOFED)
        for vantage in VANTAGES
        for packets in _TRIED
    ]


# --- Figures ---------------------------------------------------------------------------------

_LOOKS = {
    (REGULAR, RECEIVER): ("regular, receiver", pictures.BLACK, "-"),
    (REGULAR, SENDER): ("regular, sender", pictures.GREY, "--"),
    (SPOOFED, RECEIVER): ("spoofed, receiver", pictures.BLUE, "-"),
    (SPOOFED, SENDER): ("spoofed, sender", pictures.SKY, "--"),
    (UNLIMITED, RECEIVER): ("spoofed, unlimited satellite queue", pictures.ORANGE, ":"),
}


def curve(
    ax: Axes,
    runs: Runs,
    value: Callable[[Runs, Case], Estimate | None],
    look: tuple[str, str, str],
    *,
    scale: float = 1.0,
    **where: Any,
) -> None:
    """Values over the size, with their intervals as a band."""
    found = [
        (case["packets"], of)
        for case in sorted(runs.cases(**where), key=lambda case: int(case["packets"]))
        for of in (value(runs, case),)
        if of is not None
    ]
    if not found:
        return
    label, colour, style = look
    sizes = [size for size, _ in found]
    ax.plot(
        sizes,
        [of.value / scale for _, of in found],
        style,
        color=colour,
        label=label,
        linewidth=1.2,
        marker="." if len(found) < 40 else "",
    )
    ax.fill_between(
        sizes,
        [of.lo / scale for _, of in found],
        [of.hi / scale for _, of in found],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )


def throughputs(runs: Runs) -> Figure:
    """Figure 5."""
    with pictures.figure(8, 4) as drawn:
        ax = drawn.subplots()
        for (arm, vantage), look in _LOOKS.items():
            if arm != UNLIMITED:
                curve(ax, runs, network.throughput, look, scale=1e3, spoofer=arm, vantage=vantage)
        ax.set_xscale("log")
        ax.set_xlabel("packets")
        ax.set_ylabel("kb/s")
        ax.set_ylim(0)
        ax.legend()
    return drawn


def gains(runs: Runs) -> Figure:
    """Figure 6, with its enlarged part."""
    with pictures.figure(11, 4) as drawn:
        axes = drawn.subplots(1, 2)
        for ax, most in zip(axes, (max(SIZES), 40), strict=True):
            for vantage in VANTAGES:
                label, colour, style = _LOOKS[SPOOFED, vantage]
                look = (label.removeprefix("spoofed, "), colour, style)
                sizes = tuple(size for size in SIZES if size <= most)
                curve(ax, runs, network.gain, look, spoofer=SPOOFED, vantage=vantage, packets=sizes)
            ax.axhline(0, color=pictures.GREY, linewidth=0.9)
            ax.set_xlabel("packets")
        axes[0].set_xscale("log")
        axes[0].axvline(400, color=pictures.GREY, linewidth=0.9, linestyle=":")
        axes[0].set_ylabel("gain, %")
        axes[0].legend()
    return drawn


def losses(runs: Runs) -> Figure:
    """Figure 8."""

    def dropped(runs: Runs, case: Case) -> Estimate | None:
        return runs.mean(case, "dropped")

    with pictures.figure(8, 4) as drawn:
        ax = drawn.subplots()
        for arm in (REGULAR, SPOOFED, UNLIMITED):
            label, colour, style = _LOOKS[arm, RECEIVER]
            look = (label.removesuffix(", receiver"), colour, style)
            curve(ax, runs, dropped, look, spoofer=arm, vantage=RECEIVER)
        ax.axvline(400, color=pictures.GREY, linewidth=0.9, linestyle=":")
        ax.set_xlim(0, 1050)
        ax.set_ylim(0)
        ax.set_xlabel("packets")
        ax.set_ylabel("dropped segments of the transfer")
        ax.legend()
    return drawn


# --- What the report says ---------------------------------------------------------------------


def _cases(runs: Runs, sizes: Sequence[int], **where: Any) -> list[Case]:
    return [case for case in runs.cases(**where) if case["packets"] in sizes]


def _range(ratios: Sequence[Estimate | None]) -> str:
    known = sorted(of.value for of in ratios if of is not None)
    return f"{known[0]:.3g} to {known[-1]:.3g}" if known else "nothing"


def _alike(runs: Runs) -> Judgement:
    cases = _cases(runs, LONG, vantage=RECEIVER, spoofer=(REGULAR, SPOOFED))
    ratios = [
        estimate(Ratio.of(*(runs.found[case][end] for end in (SENDER, RECEIVER)))) for case in cases
    ]
    shorter = [
        estimate(Ratio.of(*(runs.found[case][end] for end in (SENDER, RECEIVER))))
        for case in _cases(runs, (500,), vantage=RECEIVER, spoofer=SPOOFED)
    ]
    return every([Check(ratio, between(1 - SMALL, 1 + SMALL)) for ratio in ratios]).judged(
        f"The sender's throughput over the receiver's, {LONG[0]} and {LONG[-1]} packets, with and"
        f" without spoofing: {_range(ratios)}; alike is taken as within {share(SMALL)}. With"
        f" spoofing and 500 packets: {_range(shorter)}.",
        ratios[-1] if ratios else None,
        cases[-1] if cases else None,
    )


def _little(runs: Runs) -> Judgement:
    of = Section.of(network.PUBLICATION, "fig5").value("little-for-small")
    cases = _cases(runs, FEW, vantage=RECEIVER, spoofer=SPOOFED)
    found = [(network.gain(runs, case), case) for case in cases]
    largest = max(
        ((gain, case) for gain, case in found if gain is not None),
        key=lambda one: one[0].value,
        default=(None, None),
    )
    return every([Check(gain, of.band) for gain, _ in found]).judged(
        f"The receiver's gain, 1 to 10 packets, %: {_range([gain for gain, _ in found])}.",
        largest[0],
        largest[1],
        "%",
    )


def _beside(runs: Runs, sizes: Sequence[int]) -> list[tuple[Case, Estimate | None]]:
    """The sender's throughput ratio over the receiver's."""
    return [
        (case, over(network.times(runs, case.but(vantage=SENDER)), network.times(runs, case)))
        for case in _cases(runs, sizes, vantage=RECEIVER, spoofer=SPOOFED)
    ]


def _much(runs: Runs) -> Judgement:
    found = _beside(runs, FEW)
    senders = [
        percent(estimate(network.times(runs, case.but(vantage=SENDER)))) for case, _ in found
    ]
    return every([Check(ratio, above(1 + MARKED)) for _, ratio in found]).judged(
        f"The sender's gain, 1 to 10 packets, %: {_range(senders)}. Its throughput is to grow by"
        f" {share(MARKED)} more than the receiver's: that ratio is"
        f" {_range([ratio for _, ratio in found])}.",
        senders[-1] if senders else None,
        found[-1][0].but(vantage=SENDER) if found else None,
        "%",
    )


def _same(runs: Runs) -> Judgement:
    found, shorter = _beside(runs, LONG), _beside(runs, (500,))
    return every([Check(ratio, between(1 - SMALL, 1 + SMALL)) for _, ratio in found]).judged(
        f"How much more the sender's throughput grows than the receiver's, {LONG[0]} and {LONG[-1]}"
        f" packets: {_range([ratio for _, ratio in found])} times; about the same is taken as"
        f" within {share(SMALL)}. With 500 packets: {_range([ratio for _, ratio in shorter])}.",
        found[-1][1] if found else None,
        found[-1][0] if found else None,
    )


def _large(runs: Runs) -> Judgement:
    cases = _cases(runs, LARGE, spoofer=SPOOFED)
    ratios = [estimate(network.times(runs, case)) for case in cases]
    return every([Check(ratio, above(1 + NEGLIGIBLE)) for ratio in ratios]).judged(
        f"The gain, {LARGE[0]} packets and more, both ends, %:"
        f" {_range([percent(of) for of in ratios])}.",
        percent(ratios[-1]) if ratios else None,
        cases[-1] if cases else None,
        "%",
    )


def _group(sizes: Sequence[int]) -> str:
    return f"{sizes[0]} to {sizes[-1]}"


def _dip(runs: Runs) -> Judgement:
    before, after = (group_times(runs, RECEIVER, sizes) for sizes in (BEFORE, AFTER))
    cases = _cases(runs, NEAR, vantage=RECEIVER, spoofer=SPOOFED)
    found = [(network.times(runs, case), case) for case in cases]
    least = min(
        ((of, case) for of, case in found if of is not None),
        key=lambda one: one[0].value,
        default=(None, None),
    )
    dips = [
        every([Check(over(of, side), below(1 - NEGLIGIBLE)) for side in (before, after)])
        for of, _ in found
    ]
    size = least[1]["packets"] if least[1] else "no"
    return some(dips).judged(
        f"The receiver's throughput over that without spoofing: {phrase(estimate(before))} of"
        f" {_group(BEFORE)} packets, at the least {phrase(estimate(least[0]))} of {size} packets,"
        f" {phrase(estimate(after))} of {_group(AFTER)}. For one of the sizes from {NEAR[0]} to"
        f" {NEAR[-1]} it is to be {share(NEGLIGIBLE)} less than on each side.",
        percent(estimate(least[0])),
        least[1],
        "%",
    )


def _drops(runs: Runs, sizes: Sequence[int], arm: str) -> list[float | None]:
    return pooled(runs, "dropped", sizes, spoofer=arm, vantage=RECEIVER)


#: What a transfer of the second group would lose more than one of the first at one rate of losses.
_LONGER = (sum(AFTER) / len(AFTER)) / (sum(BEFORE) / len(BEFORE))


def mean_of(values: Sequence[float | None]) -> str:
    """A mean with its interval, for sentences."""
    known = [value for value in values if value is not None]
    return phrase(mean_interval(known)) if known else "nothing"


def fewer_in(values: Sequence[float | None], than: Sequence[float | None]) -> Estimate | None:
    """The mean of how much less values are, paired by seed."""
    pairs = zip(values, than, strict=False)
    found = [b - a for a, b in pairs if a is not None and b is not None]
    return mean_interval(found) if found else None


def _jump(runs: Runs) -> Judgement:
    later, before = _drops(runs, AFTER, SPOOFED), _drops(runs, BEFORE, SPOOFED)
    grows = Ratio.of(later, before)
    plain = Ratio.of(_drops(runs, AFTER, REGULAR), _drops(runs, BEFORE, REGULAR))
    checks = [
        Check(estimate(grows), above(_LONGER * (1 + MARKED))),
        Check(over(grows, plain), above(1 + SMALL)),
    ]
    return every(checks).judged(
        f"Dropped segments with spoofing: {mean_of(before)} of {_group(BEFORE)} packets,"
        f" {mean_of(later)} of {_group(AFTER)}, which is {phrase(estimate(grows))} times as many,"
        f" without it {phrase(estimate(plain))}. Transfers are {_LONGER:.2f} times as long; sharply"
        f" is taken as {share(MARKED)} more than that, and {share(SMALL)} more than without"
        " spoofing.",
        estimate(grows),
    )


def _overrun(runs: Runs) -> Judgement:
    faster = estimate(group_times(runs, RECEIVER, NEAR, UNLIMITED, SPOOFED))
    published, unlimited = _drops(runs, NEAR, SPOOFED), _drops(runs, NEAR, UNLIMITED)
    fewer = fewer_in(unlimited, published)
    return every([Check(faster, above(1 + NEGLIGIBLE)), Check(fewer, above(1.0))]).judged(
        f"With an unlimited satellite queue, all else equal, a transfer of {_group(NEAR)} packets"
        f" has {phrase(faster)} times the throughput, and {phrase(fewer)} dropped segments less of"
        f" {mean_of(published)}. It is to be faster by {share(NEGLIGIBLE)}, with at least one"
        " less.",
        faster,
    )


def _more(runs: Runs) -> Judgement:
    pairs = [
        (_drops(runs, sizes, SPOOFED), _drops(runs, sizes, REGULAR)) for sizes in (NEAR, LARGE)
    ]
    ratios = [estimate(Ratio.of(*pair)) for pair in pairs]
    words = "; ".join(
        f"{_group(sizes)} packets: {mean_of(spoofed)} and {mean_of(regular)}"
        for sizes, (spoofed, regular) in zip((NEAR, LARGE), pairs, strict=True)
    )
    return every([Check(ratio, above(1 + NEGLIGIBLE)) for ratio in ratios]).judged(
        f"Dropped segments with and without spoofing, {words}.", ratios[-1]
    )


def _fluctuations(runs: Runs) -> Judgement:
    ratios = [
        network.times(runs, case)
        for case in sorted(
            _cases(runs, _NEIGHBOURS, vantage=RECEIVER, spoofer=SPOOFED),
            key=lambda case: int(case["packets"]),
        )
    ]
    squares = []
    for one, other in itertools.pairwise(ratios):
        if one is None or other is None or len(one.errors) < 2:
            continue
        # As if the runs of two sizes had nothing in common. They have the same seeds.
        difference = quotient(one.estimate, other.estimate)
        if difference.hi > difference.lo:
            squares.append(errors_from(difference, 1.0) ** 2)
    mean = mean_interval(squares) if squares else None
    return every([Check(mean, below(2.0))]).judged(
        f"From one size to the next ({_group(_NEIGHBOURS)} packets), the receiver's gain changes by"
        f" {phrase(mean)} squared standard errors on average. Runs that have nothing in common give"
        " 1; here all sizes have the same seeds, and without that chance the gain hardly"
        " fluctuates. Less than 2 is taken for chance.",
        mean,
    )


def _outcome(runs: Runs) -> str:
    few = group_times(runs, RECEIVER, FEW)
    senders = group_times(runs, SENDER, FEW)
    large = group_times(runs, RECEIVER, LARGE)
    parts = [
        "nothing" if of is None else f"{of.value:.0f} %"
        for of in map(percent, map(estimate, (few, senders, large)))
    ]
    return (
        f"Up to ten packets the receiver gains {parts[0]} and the sender {parts[1]}; from"
        f" {LARGE[0]} packets on the receiver gains {parts[2]}."
    )


STUDY = Study(
    publication=network.PUBLICATION,
    experiment="fig5",
    title="Spoofing a satellite link, by the size of the transfer",
    also=("fig6", "fig8"),
    asks="How much does TCP spoofing before a satellite link gain, as the sender and as the"
    " receiver see it, and what does it lose?",
    where="§4, figures 5, 6 and 8",
    method=(
        *network.METHOD,
        f"{network.COMPETITORS} competitors; every published size, with and without spoofing, 30"
        " runs each; and from 200 packets on with an unlimited queue before the satellite link,"
        " which shows what its overflow does.",
        "Dropped segments are those of the transfer with data, on the whole path.",
    ),
    cells=cells,
    collect=network.collect,
    measures=network.MEASURES,
    figures=(
        Drawn("Figure 5: mean throughput, with 95 % intervals.", throughputs),
        Drawn("Figure 6: the gain, and its enlarged part. Dotted: 400 packets.", gains),
        Drawn("Figure 8: dropped segments. Dotted: 400 packets.", losses),
    ),
    tests={
        "alike-when-large": _alike,
        "little-for-small": _little,
        "much-for-small-senders": _much,
        "same-gain-when-large": _same,
        "large-gain": _large,
        "dip": _dip,
        "drops-jump": _jump,
        "overrun": _overrun,
        "more-drops": _more,
        "fluctuations": _fluctuations,
    },
    factors=Factors(FACTORS, varied, "some of the sizes"),
    outcome=_outcome,
    keys=network.KEYS,
)
