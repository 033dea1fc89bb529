"""The forms in which nodes report losses, and traceback messages (bbn8333 §2.2, §4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.bbn8333.beyond import ceten
from lasthop.publications.bbn8333.beyond.ceten import (
    ADAPTIVE_A,
    HIGH,
    MEDIUM,
    OTHERS,
    PUBLISHED_A,
)
from lasthop.publications.bbn8333.beyond.question import question
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.words import NEGLIGIBLE, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "bbn8333/beyond/forms"
#: Of the bottleneck, with errors: without, there is no corruption to report.
BIT_ERROR_RATES = (MEDIUM, 5e-6, HIGH)
#: Of routers' messages, one packet in so many.
MESSAGES = (0.001, 0.01, 0.1)
EXACT = "probability"
FORMS: Mapping[str, Mapping[str, Any]] = {
    EXACT: {"ceten.form": "probability"},
    "levels": {"ceten.form": "levels"},
    "binary": {"ceten.form": "binary"},
    "relative": {"ceten.form": "relative"},
    **{
        f"traceback {of:g}": {"ceten.transport": "traceback", "ceten.messages": of}
        for of in MESSAGES
    },
}
TRACEBACK = tuple(form for form in FORMS if form.startswith("traceback"))
#: Strategies, and the weights of a new sample that each is run with.
SENDERS = (
    ("published", PUBLISHED_A),
    ("loss-ratio", PUBLISHED_A),
    ("loss-ratio", ADAPTIVE_A),
    ("adaptive", ADAPTIVE_A),
)
_LOOKS = (
    (pictures.BLACK, "s"),
    (pictures.BLUE, "o"),
    (pictures.SKY, "v"),
    (pictures.PURPLE, "D"),
    (pictures.ORANGE, "^"),
    (pictures.GREEN, "<"),
    (pictures.GREY, ">"),
)
LINES = tuple(
    draw.Line(form, {"form": form}, colour, marker)
    for form, (colour, marker) in zip(FORMS, _LOOKS, strict=True)
)


def cells() -> list[Cell]:
    """Every form with every sender, alone and beside others; without ETEN there is none."""
    found = []
    for others in (0, OTHERS):
        for rate in BIT_ERROR_RATES:
            found += [
                ceten.cell(
                    SCENARIO,
                    strategy,
                    rate,
                    others=others,
                    a=a,
                    settings=settings,
                    alpha=a,
                    form=form,
                )
                for strategy, a in SENDERS
                for form, settings in FORMS.items()
            ]
            found.append(
                ceten.cell(SCENARIO, NONE, rate, others=others, alpha=PUBLISHED_A, form=EXACT)
            )
    return found


def gain(runs: Runs, case: Case) -> Estimate | None:
    """Goodput over that without ETEN."""
    plain = case.but(eten=NONE, strategy="", alpha=PUBLISHED_A, form=EXACT)
    return None if plain == case else runs.ratio(case, plain, "goodput_bps")


def kept(runs: Runs, case: Case) -> Estimate | None:
    """Goodput over that with exact probabilities in every header."""
    exact = case.but(form=EXACT)
    return None if exact == case else runs.ratio(case, exact, "goodput_bps")


def figure(runs: Runs) -> Figure:
    """The gain over the error rate, by strategy, alone and beside others."""

    def panel(strategy: str, a: float, others: int) -> draw.Panel:
        beside = f"beside {others}" if others else "alone"
        return draw.Panel(
            f"{strategy}, a = {a:.3g}, {beside}",
            {"strategy": strategy, "alpha": a, "competitors": others},
            gain,
            "goodput with / without",
            lines=LINES,
        )

    rows = [[panel(*sender, others) for sender in SENDERS] for others in (0, OTHERS)]
    words: Mapping[Any, str] = {rate: units.scientific(rate) for rate in BIT_ERROR_RATES}
    return draw.panels(runs, rows, "bit_error_rate", "bit errors", words)


def answers(runs: Runs) -> Sequence[Answer]:
    """What each form leaves of the goodput that exact probabilities give."""
    coded = [form for form in FORMS if form != EXACT and form not in TRACEBACK]
    words = {
        "levels": "reports three levels of loss",
        "binary": "reports whether the loss exceeds a threshold",
        "relative": "reports that the level of loss has changed",
    }
    found = [
        _kept(runs, (form,), f"What is left if a header {words[form]}?", "§2.2") for form in coded
    ]
    traceback = "What is left if routers send messages in place of fields in headers?"
    return [*found, _kept(runs, TRACEBACK, traceback, "§4.1")]


def _kept(runs: Runs, forms: Sequence[str], claim: str, where: str) -> Answer:
    summary = []
    for form in forms:
        cells_ = [(case, kept(runs, case)) for case in runs.cases(form=form)]
        known = [(case, ratio) for case, ratio in cells_ if ratio is not None]
        least = min(known, key=lambda pair: pair[1].value)
        most = max(known, key=lambda pair: pair[1].value)
        less = sum(ratio.hi < 1 - NEGLIGIBLE for _, ratio in known)
        more = sum(ratio.lo > 1 + NEGLIGIBLE for _, ratio in known)
        share = form.removeprefix("traceback ")
        name = f"with {share} of a packet a message, " if form in TRACEBACK else ""
        summary.append(
            f"{name}from {phrase(least[1])} ({_at(least[0])}) to {phrase(most[1])}"
            f" ({_at(most[0])}), clearly less in {less} of {len(known)} cells and clearly more in"
            f" {more}"
        )
    return Answer(
        claim,
        where,
        None,
        f"Goodput over that with probabilities in every header: {'; '.join(summary)}.",
    )


def _at(case: Case) -> str:
    """A cell in words."""
    beside = f"beside {case['competitors']}" if case["competitors"] else "alone"
    return (
        f"{case['strategy']}, a = {case['alpha']:.3g}, {beside},"
        f" {units.scientific(case['bit_error_rate'])}"
    )


STUDY = question(
    id="forms",
    title="Forms of CETEN's reports, and traceback messages",
    asks="Nodes may report losses in fewer bits than a probability takes, or in messages of their"
    " own in place of fields in every header. How much of the gain of cumulative ETEN is left?",
    where="§2.2, §4.1",
    method=(
        ceten.ONE_SENDER,
        "Forms: the probability of survival; the loss as low, medium (from 1 %) or high (from"
        " 10 %); whether it is 1 % or more; whether it has gone up or down one of these levels."
        " Traceback: a router sends a message of 44 bytes about a link with the probability"
        " 0.001, 0.01 or 0.1 for each packet of the connection, and headers stay as they are.",
        "The weight of a new sample is the report's 0.5, or 1/64, which the adaptive strategy"
        " needs.",
    ),
    cells=cells,
    collect=ceten.collect,
    measures=(
        mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
        Measure("ratio", "1", "with / without", gain),
        Measure("over_exact", "1", "over probabilities", kept),
        mean("share_of_fair", "1", "of a fair share"),
    ),
    figure=figure,
    caption="Goodput over that without ETEN, by form and strategy.",
    answers=answers,
    keys={
        "competitors": "others",
        "bit_error_rate": "bit errors",
        "strategy": "strategy",
        "alpha": "a",
        "form": "form",
    },
)
