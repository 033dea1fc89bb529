"""What the report says of one transfer without cross traffic, held against the runs.

Over one hop (simulation 1) and over three (simulation 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    ERRORS,
    HIGH,
    LFN,
    LOW,
    LOWEST,
    LTN,
    MIDDLE,
    NAMES,
    NONE,
    NOTIFIED,
    RECOVERIES,
    SFN,
    SIMULATED,
    at,
    briefly,
    extreme,
    gain_of,
    network_name,
    network_of,
    networks,
    ratio_of,
    sender_name,
)
from lasthop.publications.bbn8333.comparisons import LESS, MORE, checks, no_better
from lasthop.publications.study.published import Section, Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import (
    Check,
    Judgement,
    above,
    below,
    between,
    every,
    most,
    some,
)
from lasthop.publications.study.words import MARKED, NOTHING, SMALL, interval, number, percent
from lasthop.stats import Estimate, quotient


def _stock_degrades(runs: Runs) -> Judgement:
    left = [
        (case, ratio_of(runs, case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten=NONE, bit_error_rate=HIGH, errors="both")
    ]
    least, most_of = extreme(left, largest=False), extreme(left, largest=True)
    return every(checks(left, below(1 - MARKED))).judged(
        f"At {at(HIGH)} stock TCP keeps {percent(least[1].value)} ({briefly(least[0])}) to"
        f" {percent(most_of[1].value)} ({briefly(most_of[0])}) of its goodput without errors.",
        most_of[1],
        most_of[0],
    )


def _oracle_at_high_error_rates(runs: Runs) -> Judgement:
    parts, summary = [], []
    for recovery in RECOVERIES:
        gains = {
            case["bit_error_rate"]: gain_of(runs, case)
            for case in runs.cases(**LFN, recovery=recovery, eten="oracle", errors="both")
        }
        parts += [Check(gains[HIGH], above(1 + MARKED)), Check(gains[MIDDLE], MORE)]
        # "Above all": more there than at any lower rate.
        parts += [
            Check(quotient(gains[high], gain), above(1.0))
            for rate, gain in gains.items()
            for high in (MIDDLE, HIGH)
            if rate < MIDDLE
        ]
        numbers = ", ".join(f"{number(g.value)} at {at(rate)}" for rate, g in gains.items() if rate)
        summary.append(f"{NAMES[recovery]} {numbers}")
    return every(parts).judged(f"Oracle's gain at {network_name(LFN)}: {'; '.join(summary)}.")


def _small_impact(runs: Runs) -> Judgement:
    gains = [
        (case, gain_of(runs, case))
        for case in runs.cases(**LFN, bit_error_rate=LOW, errors="both", eten=NOTIFIED)
    ]
    case, gain = extreme(gains, largest=True)
    at_high = gain_of(runs, case.but(bit_error_rate=HIGH))
    return every(checks(gains, below(1 + SMALL))).judged(
        f"The largest gain there is {interval(gain)} ({sender_name(case)}); at {at(HIGH)} it is"
        f" {interval(at_high)}. Small is taken as less than {percent(SMALL)}.",
        gain,
        case,
    )


def _no_help(runs: Runs) -> Judgement:
    gains = [
        (case, gain_of(runs, case))
        for case in runs.cases(eten=NOTIFIED)
        if case["bit_error_rate"] <= LOWEST
    ]
    case, gain = extreme(gains, largest=True)
    return every(checks(gains, below(1 + NOTHING))).judged(
        f"At {at(LOWEST)} and without errors the largest gain of all networks is {interval(gain)}"
        f" ({briefly(case)}). No help is taken as less than {percent(NOTHING)}.",
        gain,
        case,
    )


def _others_gain_more(runs: Runs) -> Judgement:
    """For each sender there is another network in which it gains much more."""
    parts, summary = [], []
    for case in runs.cases(**LFN, bit_error_rate=HIGH, errors="both", eten=SIMULATED):
        gain = gain_of(runs, case)
        who = {"recovery": case["recovery"], "eten": case["eten"], "errors": "both"}
        others = [
            (other, gain_of(runs, other))
            for other in runs.cases(**who, bit_error_rate=HIGH)
            if network_of(other) != LFN
        ]
        parts.append(some([Check(quotient(of, gain), above(1 + MARKED)) for _, of in others]))
        best, most_of = extreme(others, largest=True)
        summary.append(
            f"{sender_name(best)} {number(gain.value)} there and up to {number(most_of.value)}"
            f" ({network_name(best)})"
        )
    return every(parts).judged(f"At {at(HIGH)}: {'; '.join(summary)}.")


def _backward_share(runs: Runs, case: Case) -> Estimate:
    """Backward's goodput over Oracle's."""
    return ratio_of(runs, case.but(eten="backward"), case.but(eten="oracle"))


def _near_oracle(runs: Runs) -> Judgement:
    shares = [
        (case, _backward_share(runs, case))
        for case in runs.cases(**SFN, recovery="sack", eten="backward", errors="both")
        if case["bit_error_rate"] <= LOW
    ]
    case, share = extreme(shares, largest=False)
    return every(checks(shares, above(1 - SMALL))).judged(
        f"Up to {at(LOW)} Backward has at least {percent(share.value)} of Oracle's goodput"
        f" (at {at(case['bit_error_rate'])}).",
        share,
        case,
    )


def _loses_notices(runs: Runs) -> Judgement:
    """Its share of Oracle's goodput falls at every step, and less where no notice is lost."""
    rates = (LOW, MIDDLE, HIGH)
    both, forward = (
        [
            _backward_share(runs, case)
            for rate in rates
            for case in runs.cases(
                **SFN,
                recovery="sack",
                eten="backward",
                errors=errors,
                bit_error_rate=rate,
            )
        ]
        for errors in ("both", "forward")
    )
    falls = [Check(quotient(b, a), below(1.0)) for a, b in itertools.pairwise(both)]
    costs = Check(quotient(forward[-1], both[-1]), above(1.0))
    shares = ", ".join(
        f"{percent(share.value)} at {at(rate)}" for rate, share in zip(rates, both, strict=True)
    )
    (case,) = runs.cases(
        **SFN, recovery="sack", eten="backward", errors="both", bit_error_rate=HIGH
    )
    return every([*falls, costs]).judged(
        f"Backward's share of Oracle's goodput at {network_name(SFN)} with SACK: {shares}. With an"
        " error-free way back, where no notice is lost, it is"
        f" {percent(forward[-1].value)} at {at(HIGH)}.",
        both[-1],
        case,
    )


def _sack_over_reno(runs: Runs, eten: str) -> Judgement:
    both, forward = (
        [
            (case, ratio_of(runs, case, case.but(recovery="reno")))
            for case in runs.cases(recovery="sack", eten=eten, bit_error_rate=HIGH, errors=errors)
        ]
        for errors in ("both", "forward")
    )
    least, most_of = extreme(both, largest=False), extreme(both, largest=True)
    least_forward = extreme(forward, largest=False)[1].value
    most_forward = extreme(forward, largest=True)[1].value
    return most(checks(both, MORE)).judged(
        f"At {at(HIGH)} in both directions SACK has {number(least[1].value)}"
        f" ({network_name(least[0])}) to {number(most_of[1].value)} times"
        f" ({network_name(most_of[0])}) the goodput of Reno; with errors on data only"
        f" {number(least_forward)} to {number(most_forward)} times.",
        most_of[1],
        most_of[0],
    )


def _delay_dominates(runs: Runs) -> Judgement:
    apart, sfn_apart = [], []
    for case in runs.cases(**LTN, errors="both"):
        fat = case.but(rate_bps=LFN["rate_bps"])
        apart.append((case, ratio_of(runs, fat, case)))
        short = case.but(rate_bps=SFN["rate_bps"], one_way_delay_s=SFN["one_way_delay_s"])
        sfn_apart.append((case, ratio_of(runs, short, case)))
    case, most_of = max(apart, key=lambda pair: max(pair[1].value, 1 / pair[1].value))
    short_least = extreme(sfn_apart, largest=False)[1]
    return every(checks(apart, between(1 - SMALL, 1 + SMALL))).judged(
        f"From {network_name(LTN)} to {network_name(LFN)} the goodput changes at most by a factor"
        f" of"
        f" {interval(most_of)} ({sender_name(case)}, {at(case['bit_error_rate'])}), though the"
        f" rate is"
        f" {LFN['rate_bps'] / LTN['rate_bps']:.0f} times higher; from there to {network_name(SFN)}"
        f" at least by"
        f" {number(short_least.value)}.",
        most_of,
        case,
    )


def _gains(
    runs: Runs, rates: Sequence[float], errors: Sequence[str]
) -> list[tuple[Case, Estimate]]:
    return [
        (case, gain_of(runs, case))
        for case in runs.cases(eten=SIMULATED, bit_error_rate=rates, errors=errors)
    ]


def _improves(runs: Runs) -> Judgement:
    gains = _gains(runs, (HIGH,), DIRECTIONS)
    least, most_of = extreme(gains, largest=False), extreme(gains, largest=True)
    middle = every(checks(_gains(runs, (MIDDLE,), DIRECTIONS), MORE))
    return every(checks(gains, MORE)).judged(
        f"At {at(HIGH)} the gain is {interval(least[1])} ({briefly(least[0])}) to"
        f" {interval(most_of[1])} ({briefly(most_of[0])}); at {at(MIDDLE)} it is shown in"
        f" {middle.shown} of {len(middle.parts)} cells.",
        least[1],
        least[0],
    )


def _everywhere(runs: Runs) -> Judgement:
    gains = _gains(runs, (HIGH,), ("both",))
    summary = []
    for recovery in RECOVERIES:
        own = [(case, gain) for case, gain in gains if case["recovery"] == recovery]
        least, most_of = extreme(own, largest=False), extreme(own, largest=True)
        summary.append(
            f"{NAMES[recovery]} {number(least[1].value)} ({NAMES[least[0]['eten']]},"
            f" {network_name(least[0])})"
            f" to {number(most_of[1].value)} ({NAMES[most_of[0]['eten']]},"
            f" {network_name(most_of[0])})"
        )
    return every(checks(gains, above(1 + MARKED))).judged(
        f"Gain at {at(HIGH)} over all {len(networks(runs))} networks: {'; '.join(summary)}.",
    )


def _degrades_late(runs: Runs) -> Judgement:
    shares = [
        (case, ratio_of(runs, case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten="oracle", errors="both")
        if case["bit_error_rate"]
    ]
    until = [pair for pair in shares if pair[0]["bit_error_rate"] <= MIDDLE]
    high = [pair for pair in shares if pair[0]["bit_error_rate"] == HIGH]
    least, least_high = extreme(until, largest=False), extreme(high, largest=False)
    stock = extreme(
        (
            (case, ratio_of(runs, case, case.but(bit_error_rate=0.0)))
            for case in runs.cases(eten=NONE, errors="both", bit_error_rate=MIDDLE)
        ),
        largest=False,
    )
    late = some(checks(high, below(1 - SMALL)))
    return every([*checks(until, above(1 - SMALL)), late]).judged(
        f"Up to {at(MIDDLE)} Oracle keeps at least {percent(least[1].value)} of the goodput"
        f" without errors ({briefly(least[0])}; stock TCP falls to {percent(stock[1].value)}); at"
        f" {at(HIGH)} down to {percent(least_high[1].value)} ({briefly(least_high[0])}).",
        least[1],
        least[0],
    )


def _below_oracle(runs: Runs) -> Judgement:
    cases = runs.cases(eten="backward", bit_error_rate=(MIDDLE, HIGH))
    shares = [(case, _backward_share(runs, case)) for case in cases]
    at_high = [pair for pair in shares if pair[0]["bit_error_rate"] == HIGH]
    middle = [pair for pair in shares if pair[0]["bit_error_rate"] == MIDDLE]
    least, most_of = extreme(at_high, largest=False), extreme(at_high, largest=True)
    return every([*checks(at_high, LESS), *checks(middle, below(1 + NOTHING))]).judged(
        f"At {at(HIGH)} Backward has {percent(least[1].value)} ({briefly(least[0])}) to"
        f" {percent(most_of[1].value)} ({briefly(most_of[0])}) of Oracle's goodput, which is to be"
        f" less; at {at(MIDDLE)} it is to be no more, give or take {percent(NOTHING)}.",
        most_of[1],
        most_of[0],
    )


def _seven_times(runs: Runs) -> Judgement:
    gains = _gains(runs, (LOW, MIDDLE, HIGH), DIRECTIONS)
    of = Section.of("bbn8333", "sim1").value("seven-times")
    beyond = sum(gain.lo > of.band.hi for _, gain in gains)
    case, most_of = extreme(gains, largest=True)
    return some(checks(gains, of.band)).judged(
        f"About seven is {of.band.lo:.3g} to {of.band.hi:.3g}; clearly more are {beyond} of"
        f" {len(gains)} cells, and the largest gain is {interval(most_of)} ({briefly(case)},"
        f" {at(case['bit_error_rate'])} {ERRORS[case['errors']]}).",
        most_of,
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
