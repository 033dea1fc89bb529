"""What moves the numbers that differ: factors changed alone and in pairs, for every table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.obanaik2003.fairness import bed, policies, simulation, words
from lasthop.publications.obanaik2003.fairness.changed import (
    AS_IS,
    BUFFER,
    FACTORS,
    FOUND,
    FRESH,
    SCREENED,
    SEEDS,
    SIMULATION,
    TESTBED,
    Base,
    Combination,
    bases,
    cells,
    combinations,
    look,
    name,
)
from lasthop.publications.obanaik2003.fairness.policies import POLICIES
from lasthop.publications.obanaik2003.fairness.simulation import (
    ALL,
    LINK_NAMES,
    LTN,
    PUBLICATION,
    SLOW,
)
from lasthop.publications.obanaik2003.fairness.window import LIMITED, NO_LIMIT
from lasthop.publications.study.kept import Kept
from lasthop.publications.study.published import Answer, Number
from lasthop.publications.study.runs import Case, Cell, Runs, observe
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Verdict, typical_factor, would_decide
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --- What comes of it ------------------------------------------------------------------------


def _log(measured: Estimate, number: Number) -> float:
    """How far a value is off; what is published as none is off by what is measured."""
    if not number.value:
        return 100 * measured.value
    return abs(math.log(measured.value / number.value)) if measured.value > 0 else math.inf


def candidate(runs: Runs, base: Base, number: Number) -> Combination | None:
    """The combination that is to meet a number: of those whose mean lies where it is met a single
    factor before a pair, and of these the nearest; if there is none, the nearest of all."""
    found = []
    for combination in combinations(base.path, base.policy):
        case = base.cell(combination, 1).case
        measured = runs.mean(case, number.metric) if combination and case in runs.found else None
        if measured is not None:
            met = measured.value in number.of.band
            order = (not met, len(combination) if met else 0, _log(measured, number))
            found.append((order, combination))
    return min(found, key=lambda of: of[0])[1] if found else None


class _Factors(Study):
    """With fresh runs of the combinations that are to meet a number."""

    def decide(self, runs: Runs, *, threads: int = 0, kept: Kept | None = None) -> Runs:
        """Of each number that is not met: a combination is found by some runs, and shown by
        others, so that the number of those that were tried counts for nothing."""
        wanted: dict[Case, Cell] = {}
        for base in bases():
            as_is = base.cell((), SEEDS).case
            for number in base.numbers():
                if number.of.judge(runs.mean(as_is, number.metric)) is Verdict.HOLDS:
                    continue
                combination = candidate(runs, base, number)
                if combination is not None:
                    cell = base.cell(combination, SCREENED + SEEDS)
                    wanted[cell.case] = cell
        jobs = [(cell, cell.seeds) for cell in wanted.values()]
        again = observe(jobs, look, threads=threads, kept=kept)
        fresh = {
            case.but(runs=FRESH): {metric: values[SCREENED:] for metric, values in of.items()}
            for case, of in zip(wanted, again, strict=True)
        }
        return runs.joined(Runs(fresh))


def _answers(runs: Runs) -> Sequence[Answer]:
    of_numbers = [
        explained(runs, base, number)
        for base in sorted(bases(), key=lambda base: _order(base.table))
        for number in base.numbers()
    ]
    return [*of_numbers, *_by_table(runs)]


def _order(table: str) -> int:
    return int(table.rpartition(".")[2])


def _scale(number: Number) -> tuple[float, str, str]:
    """What to divide by; words after it; the unit."""
    return {
        "losses_packets": (1.0, " losses", "packets"),
        bed.SHARE: (0.01, " % lost", "1"),
    }.get(number.metric, (1e3, " kb/s", "bit/s"))


def explained(runs: Runs, base: Base, number: Number) -> Answer:
    """Whether a published number is met, and with what it is."""
    scale, words_of, unit = _scale(number)
    case = base.cell((), SEEDS).case
    as_is = runs.mean(case, number.metric)
    assert as_is is not None
    verdict = number.of.judge(as_is)
    why = f"Measured {words.number(as_is, scale)}."
    if verdict is Verdict.UNDECIDED:
        why += f" {would_decide(number.of.needs(as_is))}"
    if verdict is not Verdict.HOLDS:
        why += f" {_which(runs, base, number, scale)}"
    more = "" if base.enabled == ALL else ", standard for connection 3"
    more += f", buffer {base.buffer}" if base.buffer != BUFFER else ""
    if base.window in (LIMITED, bed.SMALL_WINDOW):
        more += f", window {base.window // 1024} KB"
    return Answer(
        f"{base.path.capitalize()}, {LINK_NAMES[base.link]},"
        f" {words.policy(base.case)}{more}: {number.value / scale:g}{words_of}.",
        base.table,
        verdict,
        why,
        case,
        as_is,
        unit,
        published=number.value,
        effect_of="none",
        criterion=number.of.criterion,
    )


MET = "It is met with"


def _which(runs: Runs, base: Base, number: Number, scale: float) -> str:
    combination = candidate(runs, base, number)
    if combination is None:
        return "Nothing was tried."
    case = base.cell(combination, SEEDS).case
    fresh = case.but(runs=FRESH)
    what = f"{name(combination)}: {words.number(runs.mean(case, number.metric), scale)}"
    if fresh not in runs.found:
        return f"The nearest is {what}; no fresh runs were made."
    measured = runs.mean(fresh, number.metric)
    what = f"{name(combination)}: {words.number(measured, scale)}"
    verdict = number.of.judge(measured)
    if verdict is Verdict.HOLDS:
        return f"{MET} {what}."
    if verdict is Verdict.UNDECIDED:
        return f"Whether it is met with {what} is undecided."
    return f"Nothing that was tried meets it; the nearest is {what}."


def _by_table(runs: Runs) -> Iterator[Answer]:
    """Which factor and which pair would bring a whole table nearest, and all of them."""
    tables: dict[str, list[Base]] = {}
    for base in sorted(bases(), key=lambda base: _order(base.table)):
        tables.setdefault(base.table, []).append(base)
    for path in FACTORS:
        tables[f"all tables of the {path}"] = [base for base in bases() if base.path == path]
    for table, of in tables.items():
        path = of[0].path
        every = {
            name(combination): combination
            for policy in POLICIES
            for combination in combinations(path, policy)
        }
        off = {changed: _typical(runs, of, combination) for changed, combination in every.items()}
        known = {changed: value for changed, value in off.items() if value is not None}
        summary = [f"as it is by a factor of {known[AS_IS]:.2f}"] if AS_IS in known else []
        for many, what in ((1, "least with one factor"), (2, "least with two")):
            among = {of: value for of, value in known.items() if len(every[of]) == many}
            if among:
                best = min(among, key=among.__getitem__)
                summary.append(f"{what}, {best}, by {among[best]:.2f}")
        yield Answer(
            f"What brings all numbers of {table} nearest?",
            table if table.startswith("table") else "tables 3.1 to 3.13",
            None,
            f"They are off {'; '.join(summary)}.",
        )


def _typical(runs: Runs, of: Sequence[Base], combination: Combination) -> float | None:
    """By what factor a table's numbers are off with a combination, by the runs that screened it. A
    factor that does not touch a policy leaves it as it is."""
    factors = []
    for base in of:
        own = tuple(factor for factor in combination if base.policy in factor.only)
        case = base.cell(own, SEEDS).case
        for number in base.numbers():
            measured = runs.mean(case, number.metric) if case in runs.found else None
            if measured is None:
                return None
            if number.value:
                factors.append(measured.value / number.value)
    return typical_factor(factors)


def _outcome(runs: Runs) -> str:
    found = [answer for answer in _answers(runs) if answer.verdict is not None]
    met = sum(answer.verdict is Verdict.HOLDS for answer in found)
    by_factor = sum(MET in answer.why for answer in found)
    return (
        f"Of {len(found)} numbers in tables 3.1 to 3.13, {met} are met as it is, and"
        f" {by_factor} more with one or two factors changed."
    )


# --- Drawn -----------------------------------------------------------------------------------


def _figure(path: str) -> Drawn:
    return Drawn(
        f"{path.capitalize()}: goodput of connection 3 with one factor changed; lines: as it is.",
        lambda runs: _drawn(runs, path),
    )


def singles(path: str) -> list[str]:
    """Nothing changed, and each factor alone."""
    return [AS_IS, *(factor.name for factor in FACTORS[path])]


def _drawn(runs: Runs, path: str) -> Figure:
    """A row for every factor, a panel for every last hop."""
    names = singles(path)
    full = bed.WINDOW if path == TESTBED else NO_LIMIT
    with pictures.figure(9.4, 1.2 + 0.3 * len(names)) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, link in zip(axes, (SLOW, LTN), strict=True):
            for policy in POLICIES:
                line = policies.line(policy)
                one = Base(path, link, policy, "", "", window=full)
                wanted = {**one.case, "factor": tuple(names), "runs": FOUND}
                means = {
                    case["factor"]: runs.mean(case, one.metrics[0]) for case in runs.cases(**wanted)
                }
                known = {name: mean for name, mean in means.items() if mean is not None}
                ax.errorbar(
                    [mean.value / 1e3 for mean in known.values()],
                    [names.index(name) for name in known],
                    xerr=[mean.half / 1e3 for mean in known.values()],
                    color=line.colour,
                    marker=line.marker,
                    markersize=4.5,
                    linestyle="",
                    label=line.label,
                )
                if AS_IS in known:
                    at = known[AS_IS].value / 1e3
                    ax.axvline(at, color=line.colour, linewidth=0.8, alpha=0.5)
            ax.set_title(LINK_NAMES[link].capitalize())
            ax.set_xlabel("goodput, kb/s")
            ax.set_xlim(0)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=5)
    return drawn


STUDY = _Factors(
    publication=PUBLICATION,
    experiment="fairness/factors",
    title="What moves the numbers that differ",
    asks="Much of the simulations and of the test-bed is not published: the kind of TCP, its"
    " timers, windows, the delays of half the links. Which of it, alone or two together, moves the"
    " numbers of tables 3.1 to 3.13 to what they are in the thesis?",
    where="tables 3.1 to 3.13",
    method=(
        f"Every cell of the tables with each factor changed, and each pair: {SCREENED} runs each,"
        f" and {SEEDS} of what is as it is. The combination that seems to meet a published number,"
        " one factor before two, is then run again with"
        f" {SEEDS} other seeds, and these alone are held against the number.",
        "The paths as they are: see the reports of the slow link, the long thin network and the"
        " test-bed, where constant rate has c = 10 here.",
        '"Short paths" have 100 ms instead of the calibrated delay of sources 3 to 5. "Last buffer'
        ' + 1" has a packet more than the table says, and "- 1" one less.',
    ),
    cells=cells,
    observe=look,
    measures=(*simulation.MEASURES, bed.MEASURES[2]),
    figures=[_figure(SIMULATION), _figure(TESTBED)],
    answers=_answers,
    keys={
        "path": "path",
        "link": "last hop",
        "policy": "policy",
        "enabled": "policy on",
        "buffer_packets": "buffer",
        "receive_window_bytes": "receive window",
        "factor": "factor",
        "runs": "runs",
    },
    outcome=_outcome,
)
