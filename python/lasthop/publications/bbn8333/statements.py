"""What the report says of one transfer without cross traffic, held against the runs.

Over one hop (simulation 1) and over three (simulation 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    ERRORS,
    LFN,
    LTN,
    NAMES,
    NONE,
    NOTIFIED,
    RECOVERIES,
    SFN,
    SIMULATED,
    Case,
    Runs,
    extreme,
)
from lasthop.publications.bbn8333.comparisons import no_better
from lasthop.publications.bbn8333.findings import (
    HIGH,
    LOW,
    LOWEST,
    MIDDLE,
    Test,
    at,
    briefly,
    within,
)
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import (
    MARKED,
    NEGLIGIBLE,
    NOTHING,
    SMALL,
    interval,
    number,
    percent,
)
from lasthop.stats import Estimate


def _stock_degrades(runs: Runs) -> Judgement:
    left = [
        (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten=NONE, bit_error_rate=HIGH, errors="both")
    ]
    least, most = extreme(left, largest=False), extreme(left, largest=True)
    return Judgement(
        Verdict.of(all(share.hi < 1 - MARKED for _, share in left)),
        f"At {at(HIGH)} stock TCP keeps {percent(least[1].value)} ({briefly(least[0])}) to"
        f" {percent(most[1].value)} ({briefly(most[0])}) of its goodput without errors.",
        most[1],
        most[0],
    )


def _oracle_at_high_error_rates(runs: Runs) -> Judgement:
    by_recovery = {
        recovery: [
            (case.bit_error_rate, runs.gain(case))
            for case in runs.cases(network=LFN, recovery=recovery, eten="oracle", errors="both")
        ]
        for recovery in RECOVERIES
    }
    agrees = all(
        all(gain.lo > 1 + MARKED for rate, gain in gains if rate == HIGH)
        and all(gain.lo > 1 for rate, gain in gains if rate == MIDDLE)
        and all(
            gain.value < other.value
            for rate, gain in gains
            for other_rate, other in gains
            if rate < MIDDLE <= other_rate
        )
        for gains in by_recovery.values()
    )
    told = "; ".join(
        f"{NAMES[recovery]} "
        + ", ".join(f"{number(gain.value)} at {at(rate)}" for rate, gain in gains if rate)
        for recovery, gains in by_recovery.items()
    )
    return Judgement(Verdict.of(agrees), f"Oracle's gain at {LFN.name}: {told}.")


def _small_impact(runs: Runs) -> Judgement:
    gains = [
        (case, runs.gain(case))
        for case in runs.cases(network=LFN, bit_error_rate=LOW, errors="both", eten=NOTIFIED)
    ]
    case, gain = extreme(gains, largest=True)
    at_high = runs.gain(case.but(bit_error_rate=HIGH))
    return Judgement(
        Verdict.of(gain.value < 1 + SMALL),
        f"The largest gain there is {interval(gain)} ({case.variant}); at {at(HIGH)} it is"
        f" {interval(at_high)}. Small is taken as less than {percent(SMALL)}.",
        gain,
        case,
    )


def _no_help(runs: Runs) -> Judgement:
    gains = [
        (case, runs.gain(case))
        for case in runs.cases(eten=NOTIFIED)
        if case.bit_error_rate <= LOWEST
    ]
    case, gain = extreme(gains, largest=True)
    return Judgement(
        Verdict.of(gain.value < 1 + NOTHING),
        f"At {at(LOWEST)} and without errors the largest gain of all networks is {interval(gain)}"
        f" ({briefly(case)}). No help is taken as less than {percent(NOTHING)}.",
        gain,
        case,
    )


def _others_gain_more(runs: Runs) -> Judgement:
    there = {
        case: runs.gain(case)
        for case in runs.cases(network=LFN, bit_error_rate=HIGH, errors="both", eten=SIMULATED)
    }
    more = []
    for case, gain in there.items():
        others = runs.cases(
            recovery=case.recovery, eten=case.eten, bit_error_rate=HIGH, errors="both"
        )
        best = extreme(((other, runs.gain(other)) for other in others), largest=True)
        more.append((gain, best))
    told = "; ".join(
        f"{best.variant} {number(gain.value)} there and up to {number(most.value)}"
        f" ({best.network.name})"
        for gain, (best, most) in more
    )
    return Judgement(
        Verdict.of(all(most.lo > gain.hi * (1 + MARKED) for gain, (_, most) in more)),
        f"At {at(HIGH)}: {told}.",
    )


def _backward_share(runs: Runs, case: Case) -> Estimate:
    """Backward's goodput over Oracle's."""
    return runs.ratio(case.but(eten="backward"), case.but(eten="oracle"))


def _near_oracle(runs: Runs) -> Judgement:
    shares = [
        (case, _backward_share(runs, case))
        for case in runs.cases(network=SFN, recovery="sack", eten="backward", errors="both")
        if case.bit_error_rate <= LOW
    ]
    case, share = extreme(shares, largest=False)
    return Judgement(
        Verdict.of(share.value > 1 - SMALL),
        f"Up to {at(LOW)} Backward has at least {percent(share.value)} of Oracle's goodput"
        f" (at {at(case.bit_error_rate)}).",
        share,
        case,
    )


def _loses_notices(runs: Runs) -> Judgement:
    rates = (LOW, MIDDLE, HIGH)
    both, forward = (
        [
            _backward_share(runs, case)
            for rate in rates
            for case in runs.cases(
                network=SFN,
                recovery="sack",
                eten="backward",
                errors=errors,
                bit_error_rate=rate,
            )
        ]
        for errors in ("both", "forward")
    )
    falls = all(later.value < earlier.value for earlier, later in itertools.pairwise(both))
    costs = forward[-1].lo > both[-1].hi
    shares = ", ".join(
        f"{percent(share.value)} at {at(rate)}" for rate, share in zip(rates, both, strict=True)
    )
    told = (
        f"Backward's share of Oracle's goodput at {SFN.name} with SACK: {shares}. With an"
        " error-free way back, where no notice is lost, it is"
        f" {percent(forward[-1].value)} at {at(HIGH)}"
    )
    told += ": lost notices cost the rest." if costs else "; that does not explain it."
    (case,) = runs.cases(
        network=SFN, recovery="sack", eten="backward", errors="both", bit_error_rate=HIGH
    )
    return Judgement(Verdict.of(falls and costs), told, both[-1], case)


def _sack_over_reno(runs: Runs, eten: str) -> Judgement:
    both, forward = (
        [
            (case, runs.ratio(case, case.but(recovery="reno")))
            for case in runs.cases(recovery="sack", eten=eten, bit_error_rate=HIGH, errors=errors)
        ]
        for errors in ("both", "forward")
    )
    better = [ratio for _, ratio in both if ratio.lo > 1]
    worse = [ratio for _, ratio in both if ratio.hi < 1 - NEGLIGIBLE]
    least, most = extreme(both, largest=False), extreme(both, largest=True)
    least_forward = extreme(forward, largest=False)[1].value
    most_forward = extreme(forward, largest=True)[1].value
    return Judgement(
        Verdict.of(not worse and 2 * len(better) > len(both)),
        f"At {at(HIGH)} in both directions SACK has {number(least[1].value)}"
        f" ({least[0].network.name}) to {number(most[1].value)} times ({most[0].network.name}) the"
        f" goodput of Reno: clearly more in {len(better)} of {len(both)} networks, less in"
        f" {len(worse)}. With errors on data only it has {number(least_forward)} to"
        f" {number(most_forward)} times.",
        most[1],
        most[0],
    )


def _delay_dominates(runs: Runs) -> Judgement:
    apart, sfn_apart = [], []
    for case in runs.cases(network=LTN, errors="both"):
        fat = case.but(rate_bps=LFN.rate_bps)
        apart.append((case, runs.ratio(fat, case)))
        short = case.but(rate_bps=SFN.rate_bps, one_way_delay_s=SFN.one_way_delay_s)
        sfn_apart.append((case, runs.ratio(short, case)))
    case, most = max(apart, key=lambda pair: max(pair[1].value, 1 / pair[1].value))
    short_least = extreme(sfn_apart, largest=False)[1]
    return Judgement(
        Verdict.of(1 - SMALL < most.value < 1 + SMALL),
        f"From {LTN.name} to {LFN.name} the goodput changes at most by a factor of"
        f" {interval(most)} ({case.variant}, {at(case.bit_error_rate)}), though the rate is"
        f" {LFN.rate_bps / LTN.rate_bps:.0f} times higher; from there to {SFN.name} at least by"
        f" {number(short_least.value)}.",
        most,
        case,
    )


def _gains(
    runs: Runs, rates: Sequence[float], errors: Sequence[str]
) -> list[tuple[Case, Estimate]]:
    return [
        (case, runs.gain(case))
        for case in runs.cases(eten=SIMULATED, bit_error_rate=rates, errors=errors)
    ]


def _improves(runs: Runs) -> Judgement:
    gains = _gains(runs, (HIGH,), DIRECTIONS)
    least, most = extreme(gains, largest=False), extreme(gains, largest=True)
    middle = _gains(runs, (MIDDLE,), DIRECTIONS)
    better = sum(gain.lo > 1 for _, gain in middle)
    return Judgement(
        Verdict.of(all(gain.lo > 1 for _, gain in gains)),
        f"At {at(HIGH)} the gain is {interval(least[1])} ({briefly(least[0])}) to"
        f" {interval(most[1])} ({briefly(most[0])}); at {at(MIDDLE)} it is clear in {better} of"
        f" {len(middle)} cells.",
        least[1],
        least[0],
    )


def _everywhere(runs: Runs) -> Judgement:
    told, agrees = [], True
    for recovery in RECOVERIES:
        gains = [
            (case, gain)
            for case, gain in _gains(runs, (HIGH,), ("both",))
            if case.recovery == recovery
        ]
        least, most = extreme(gains, largest=False), extreme(gains, largest=True)
        agrees = agrees and least[1].lo > 1 + MARKED
        told.append(
            f"{NAMES[recovery]} {number(least[1].value)} ({NAMES[least[0].eten]},"
            f" {least[0].network.name})"
            f" to {number(most[1].value)} ({NAMES[most[0].eten]}, {most[0].network.name})"
        )
    return Judgement(
        Verdict.of(agrees),
        f"Gain at {at(HIGH)} over all {len(runs.networks())} networks: {'; '.join(told)}.",
    )


def _degrades_late(runs: Runs) -> Judgement:
    shares = [
        (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten="oracle", errors="both")
        if case.bit_error_rate
    ]
    until = [pair for pair in shares if pair[0].bit_error_rate <= MIDDLE]
    high = [pair for pair in shares if pair[0].bit_error_rate == HIGH]
    least, least_high = extreme(until, largest=False), extreme(high, largest=False)
    stock = extreme(
        (
            (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
            for case in runs.cases(eten=NONE, errors="both", bit_error_rate=MIDDLE)
        ),
        largest=False,
    )
    return Judgement(
        Verdict.of(least[1].value > 1 - SMALL and least_high[1].value < 1 - SMALL),
        f"Up to {at(MIDDLE)} Oracle keeps at least {percent(least[1].value)} of the goodput"
        f" without errors ({briefly(least[0])}; stock TCP falls to {percent(stock[1].value)}); at"
        f" {at(HIGH)} down to {percent(least_high[1].value)} ({briefly(least_high[0])}).",
        least[1],
        least[0],
    )


def _below_oracle(runs: Runs) -> Judgement:
    cases = runs.cases(eten="backward", bit_error_rate=(MIDDLE, HIGH))
    shares = [(case, _backward_share(runs, case)) for case in cases]
    at_high = [pair for pair in shares if pair[0].bit_error_rate == HIGH]
    least, most = extreme(at_high, largest=False), extreme(at_high, largest=True)
    above = [pair for pair in shares if pair[1].lo > 1 + NOTHING]
    return Judgement(
        Verdict.of(not above and all(share.hi < 1 for _, share in at_high)),
        f"At {at(HIGH)} Backward has {percent(least[1].value)} ({briefly(least[0])}) to"
        f" {percent(most[1].value)} ({briefly(most[0])}) of Oracle's goodput; from"
        f" {at(MIDDLE)} on it is above Oracle's by more than {percent(NOTHING)} in {len(above)} of"
        f" {len(shares)} cells.",
        most[1],
        most[0],
    )


def _seven_times(runs: Runs) -> Judgement:
    gains = _gains(runs, (LOW, MIDDLE, HIGH), DIRECTIONS)
    case, most = extreme(gains, largest=True)
    about = [case for case, _ in gains if within(7.0, runs.single_gain(case))]
    beyond = [case for case, _ in gains if runs.single_gain(case)[0] > 7.0]
    return Judgement(
        Verdict.of(bool(about)),
        f"In {len(about)} of {len(gains)} cells single pairs of runs give about seven, in"
        f" {len(beyond)} more; the largest gain is {interval(most)} ({briefly(case)},"
        f" {at(case.bit_error_rate)} {ERRORS[case.errors]}).",
        most,
        case,
    )


TESTS: Mapping[str, Test] = {
    "stock-degrades": _stock_degrades,
    "oracle-helps-at-high-error-rates": _oracle_at_high_error_rates,
    "small-impact-at-1e-7": _small_impact,
    "no-help-at-low-error-rates": _no_help,
    "other-networks-gain-more": _others_gain_more,
    "backward-near-oracle-at-low-error-rates": _near_oracle,
    "backward-loses-notices": _loses_notices,
    "backward-sack-beats-reno": lambda runs: _sack_over_reno(runs, "backward"),
    "sack-beats-reno": lambda runs: _sack_over_reno(runs, NONE),
    "delay-dominates": _delay_dominates,
    "eten-improves": _improves,
    "oracle-degrades-late": _degrades_late,
    "backward-below-oracle": _below_oracle,
    "never-worse": no_better((NONE,), NOTIFIED, "Goodput without ETEN over goodput with"),
    "oracle-bounds": no_better(
        (NONE, *(of for of in NOTIFIED if of != "oracle")),
        ("oracle",),
        "Goodput over that with Oracle",
    ),
    "gains-everywhere": _everywhere,
    "seven-times": _seven_times,
}
