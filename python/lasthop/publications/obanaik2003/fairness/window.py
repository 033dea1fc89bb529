"""A limited receive window instead (§3.2.4): tables 3.5, 3.6."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import policies, simulation, words
from lasthop.publications.obanaik2003.fairness.policies import (
    ALTERNATIVES,
    CANIT,
    CR,
    IBK,
    STANDARD,
)
from lasthop.publications.obanaik2003.fairness.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import (
    Band,
    Check,
    Joint,
    Judgement,
    above,
    below,
    between,
    every,
)
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, percent

#: Of connection 3: no limit, and what RFC 3150 recommends.
NO_LIMIT, LIMITED = 65_536, 2_048
#: As calibrated; and with 100 ms instead of 400, for which 2 KB are more nearly what the path and
#: the buffer hold.
CALIBRATED, NEARER = "calibrated", "nearer"
_NEARER = {f"links.{link}.delay": "100 ms" for link in (2, 3, 4)}
#: "Marginal": at most this less.
MARGINAL = 0.2


def cells() -> list[Cell]:
    """Every policy with both windows, over both paths."""
    return [
        simulation.cell(
            link,
            policy,
            rtt,
            settings={
                "flows.2.tcp.receive_window": window,
                **(_NEARER if path == NEARER else {}),
            },
            receive_window_bytes=window,
            path=path,
        )
        for path in (CALIBRATED, NEARER)
        for link in (SLOW, LTN)
        for policy in (STANDARD, *ALTERNATIVES)
        for rtt in policies.round_trips(policy)
        for window in (NO_LIMIT, LIMITED)
        if path == CALIBRATED or rtt == policies.default_rtt(policy)
    ]


def _where(case: Case) -> str:
    return f"{LINK_NAMES[case['link']]}, {words.policy(case)}"


def _pairs(runs: Runs, *policies: str, path: str = CALIBRATED) -> list[tuple[Case, Case]]:
    found = runs.cases(policy=policies, receive_window_bytes=LIMITED, path=path)
    return [(case, case.but(receive_window_bytes=NO_LIMIT)) for case in found]


def _ratios(runs: Runs, pairs: list[tuple[Case, Case]], metric: str) -> list[float]:
    found = [runs.ratio(*pair, metric) for pair in pairs]
    return [ratio.value for ratio in found if ratio is not None]


def _fewer_losses(runs: Runs) -> Judgement:
    pairs = _pairs(runs, *ALTERNATIVES)
    fewer = [
        Check(runs.difference(*pair, "losses_packets", 1 - MARKED), below(0.0)) for pair in pairs
    ]
    return every(fewer).judged(
        "Losses over those without a limit:"
        f" {words.ratios(runs, pairs, 'losses_packets', _where)}. Markedly fewer are"
        f" {percent(MARKED)} fewer."
    )


def _goodput(runs: Runs, pairs: list[tuple[Case, Case]]) -> str:
    summary = words.ratios(runs, pairs, "goodput_bps", _where)
    return f"Goodput over that without a limit: {summary}."


def _all_in(runs: Runs, pairs: list[tuple[Case, Case]], band: Band) -> Joint:
    return every([Check(runs.ratio(*pair, "goodput_bps"), band) for pair in pairs])


def _canit_gains(runs: Runs) -> Judgement:
    pairs = _pairs(runs, CANIT)
    return _all_in(runs, pairs, above(1 + MARKED)).judged(_goodput(runs, pairs))


def _others_lose(runs: Runs) -> Judgement:
    pairs = _pairs(runs, IBK, CR)
    band = between(1 - MARGINAL, 1 - NEGLIGIBLE)
    return _all_in(runs, pairs, band).judged(_goodput(runs, pairs))


def _no_cure(runs: Runs) -> Judgement:
    pairs = [
        (case, simulation.standard(case["link"], receive_window_bytes=NO_LIMIT, path=CALIBRATED))
        for case in runs.cases(policy=ALTERNATIVES, receive_window_bytes=LIMITED, path=CALIBRATED)
    ]
    summary = words.ratios(runs, pairs, "goodput_bps", _where)
    return _all_in(runs, pairs, below(1 - NEGLIGIBLE)).judged(
        f"Goodput with 2 KB over that of the standard without a limit: {summary}."
    )


def _nearer(runs: Runs) -> Answer:
    """A path that the window fits."""
    pairs = _pairs(runs, *policies.POLICIES, path=NEARER)
    return Answer(
        "2 KB are meant to be slightly more than the path and the buffer hold, which the calibrated"
        " path is too long for. What if its round trip is 360 ms instead of 960?",
        "§3.2.4",
        None,
        f"Losses over those without a limit: {words.ratios(runs, pairs, 'losses_packets', _where)}."
        f" {_goodput(runs, pairs)}",
    )


def _outcome(runs: Runs) -> str:
    ratios = _ratios(runs, _pairs(runs, *ALTERNATIVES), "losses_packets")
    return (
        f"2 KB leave {min(ratios):.2f} to {max(ratios):.2f} of the policies' losses, and make"
        f" {sum(gain > 1 for gain in _ratios(runs, _pairs(runs, *ALTERNATIVES), 'goodput_bps'))} of"
        f" {len(ratios)} cells faster."
    )


def _row(metric: str, words_of: str, scale: float) -> list[draw.Panel]:
    lines = [
        policies.line(STANDARD),
        *(
            policies.line(policy, rtt, words.policy({"policy": policy, "rtt": rtt}))
            for policy in ALTERNATIVES
            for rtt in policies.round_trips(policy)
        ),
    ]
    return [
        draw.Panel(
            LINK_NAMES[link].capitalize(),
            {"link": link, "path": CALIBRATED},
            lambda runs, case: runs.mean(case, metric),
            words_of,
            lines=lines,
            scale=scale,
        )
        for link in (SLOW, LTN)
    ]


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/window",
    title="A limited receive window",
    asks="Hosts behind slow links could advertise small receive windows. Does that take the harm"
    " out of"
    " the policies?",
    where="§3.2.4, tables 3.5, 3.6",
    method=(*simulation.METHOD, "Connection 3 has a receive window of 2 KiB, eight segments."),
    cells=cells,
    observe=simulation.observe(),
    measures=simulation.MEASURES,
    figures=[
        Drawn(
            "Goodput and losses of connection 3, by its receive window.",
            lambda runs: draw.panels(
                runs,
                [
                    _row("goodput_bps", "goodput, kb/s", 1e3),
                    _row("losses_packets", "losses, packets", 1.0),
                ],
                "receive_window_bytes",
                "receive window",
                {NO_LIMIT: "64 KiB", LIMITED: "2 KiB"},
            ),
        )
    ],
    keys={**simulation.KEYS, "receive_window_bytes": "receive window", "path": "path"},
    tests={
        "fewer-losses": _fewer_losses,
        "canit-gains": _canit_gains,
        "others-lose-little": _others_lose,
        "no-cure": _no_cure,
    },
    answers=lambda runs: [_nearer(runs)],
    most_seeds=simulation.MOST_SEEDS,
    outcome=_outcome,
)
