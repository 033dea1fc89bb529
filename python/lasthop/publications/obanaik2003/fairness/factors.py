"""What moves the numbers that differ: factors changed alone and in pairs, for every table."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.obanaik2003.fairness import bed, policies, simulation, words
from lasthop.publications.obanaik2003.fairness.policies import (
    ALTERNATIVES,
    CANIT,
    CR,
    IBK,
    POLICIES,
    PROPAGATION,
)
from lasthop.publications.obanaik2003.fairness.simulation import (
    ALL,
    LINK_NAMES,
    LTN,
    OTHERS,
    PUBLICATION,
    SLOW,
)
from lasthop.publications.obanaik2003.fairness.window import CALIBRATED, LIMITED, NO_LIMIT
from lasthop.publications.study.kept import Kept
from lasthop.publications.study.published import Answer, Number, Section
from lasthop.publications.study.runs import Case, Cell, Runs, observe
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Verdict, typical_factor, would_decide
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIMULATION, TESTBED = "simulation", "test-bed"
AS_IS = "as is"
#: Of every combination; of what is as it is, and of the combination that is to meet a number.
SCREENED, SEEDS = 2, 20
#: The runs that found a combination, and others that it is held against.
FOUND, FRESH = "screening", "fresh"
#: Its packets in the scenarios as they are.
_BUFFER = 3

# --- What is changed -------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """One thing that is other than in the scenario."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Of what a policy does: rtt, cap, k, c.
    increase: Mapping[str, Any] = field(default_factory=dict)
    #: The policies that it makes a difference to.
    only: Sequence[str] = POLICIES
    #: Packets more in the last hop's buffer.
    buffer: int = 0
    #: Of those that say the same thing only one at a time.
    about: str = ""


def _all(key: str, value: Any) -> Mapping[str, Any]:
    return {f"flows.*.tcp.{key}": value}


_CAP = Factor("cap 1", increase={"cap": 1.0}, only=(CR, CANIT))
FACTORS: Mapping[str, Sequence[Factor]] = {
    SIMULATION: (
        *(
            Factor(name, _all("recovery", value), about="recovery")
            for name, value in (("Reno", "reno"), ("NewReno", "newreno"), ("SACK", "sack"))
            if value != simulation.RECOVERY
        ),
        Factor("propagation", increase={"rtt": PROPAGATION}, only=(CR, CANIT)),
        _CAP,
        Factor("K = 2", increase={"k": 2}, only=(IBK,)),
        Factor("RTO min. 1 s", _all("rto.minimum", "1 s")),
        Factor("windows of 20", _all("receive_window", "20 segments")),
        Factor("short paths", {f"links.{link}.delay": "100 ms" for link in (2, 3, 4)}),
        Factor("shared buffer 30", {"links.6.queue": "30 packets"}),
        Factor("last buffer + 1", buffer=1),
    ),
    TESTBED: (
        Factor("Reno", _all("recovery", "reno")),
        Factor("c = 100", increase={"c": 100.0}, only=(CR,)),
        _CAP,
        Factor("K = 4", increase={"k": 4}, only=(IBK,)),
        Factor("RTO min. 200 ms", _all("rto.minimum", "200 ms")),
        Factor("no delayed ACKs", _all("delayed_ack", "off")),
        Factor("296 bytes for all", _all("mss", 256)),
        Factor("shared buffer 20", {"links.3.queue": "20 packets"}, about="shared buffer"),
        Factor("shared buffer 100", {"links.3.queue": "100 packets"}, about="shared buffer"),
        Factor("last buffer - 1", buffer=-1),
    ),
}
Combination = tuple[Factor, ...]


def combinations(path: str, policy: str) -> Iterator[Combination]:
    """Nothing changed, each factor that touches a policy, and each pair of them."""
    factors = [factor for factor in FACTORS[path] if policy in factor.only]
    yield ()
    yield from ((factor,) for factor in factors)
    for a, b in itertools.combinations(factors, 2):
        if not a.about or a.about != b.about:
            yield a, b


def name(combination: Combination) -> str:
    """As the key `factor` of a case has it."""
    return " and ".join(factor.name for factor in combination) or AS_IS


# --- What it is changed of -------------------------------------------------------------------


@functools.cache
def _section(name: str) -> Section:
    """Read once: every combination is held against it."""
    return Section.of(PUBLICATION, name)


@dataclass(frozen=True)
class Base:
    """A cell of the thesis' tables."""

    path: str
    link: str
    policy: str
    #: Where its numbers are in published.toml, and the table of the thesis.
    section: str
    table: str
    enabled: str = ALL
    buffer: int = _BUFFER
    window: int = NO_LIMIT

    @property
    def case(self) -> Case:
        """Of its cells."""
        return Case(
            path=self.path,
            link=self.link,
            policy=self.policy,
            enabled=self.enabled,
            buffer_packets=self.buffer,
            receive_window_bytes=self.window,
        )

    @property
    def metrics(self) -> tuple[str, str]:
        """Goodput and losses, as the tables have them."""
        if self.path == SIMULATION:
            return "goodput_bps", "losses_packets"
        return "payload_bps", bed.SHARE

    def numbers(self) -> Iterator[Number]:
        """What is published of it."""
        where = self.case.but(path=CALIBRATED)
        for metric in self.metrics:
            number = _section(self.section).number(where, metric)
            if number is not None and not number.misprint:
                yield number

    def cell(self, combination: Combination, seeds: int) -> Cell:
        """With some factors changed."""
        settings: dict[str, Any] = {}
        increase: dict[str, Any] = {}
        for factor in combination:
            settings |= factor.settings
            increase |= factor.increase
        size = self.buffer + sum(factor.buffer for factor in combination)
        case = Case(**self.case, factor=name(combination), runs=FOUND)
        built = self._simulated if self.path == SIMULATION else self._bed
        own = built(increase, settings, size)
        return Cell(case, own.scenario, own.settings, seeds, 1)

    def _simulated(
        self, increase: Mapping[str, Any], settings: Mapping[str, Any], size: int
    ) -> Cell:
        rtt = increase.get("rtt", policies.default_rtt(self.policy))
        of = {key: value for key, value in increase.items() if key != "rtt"}
        value = policies.increase(self.policy, rtt, **of)
        window = {"flows.2.tcp.receive_window": self.window} if self.window != NO_LIMIT else {}
        return simulation.cell(
            self.link,
            self.policy,
            rtt,
            enabled=self.enabled,
            settings={
                **simulation.with_policy(value, self.policy, self.enabled),
                **settings,
                "links.9.queue": f"{size} packets",
                **window,
            },
        )

    def _bed(self, increase: Mapping[str, Any], settings: Mapping[str, Any], size: int) -> Cell:
        c = increase.get("c", bed.CONSTANTS[0]) if self.policy == CR else bed.NO_CONSTANT
        return bed.cell(
            self.link,
            bed.Variant(self.policy, c),
            enabled=self.enabled,
            buffer=size,
            window=self.window,
            settings=settings,
            k=increase.get("k", bed.K),
            cap=increase.get("cap"),
        )


def bases() -> Sequence[Base]:
    """Every cell of tables 3.1 to 3.13."""
    found = []
    for at, link in enumerate((SLOW, LTN)):

        def table(first: int, at: int = at) -> str:
            return f"table 3.{first + at}"

        for policy in POLICIES:
            found.append(Base(SIMULATION, link, policy, f"fairness/{link}", table(1)))
            one = Base(TESTBED, link, policy, "fairness/testbed", "table 3.7", window=bed.WINDOW)
            found.append(one)
            found += [
                replace(one, section="fairness/testbed-buffers", table=table(8), buffer=size)
                for size in bed.BUFFERS[1:]
            ]
            found.append(
                replace(
                    one,
                    section="fairness/testbed-window",
                    table=table(10),
                    window=bed.SMALL_WINDOW,
                )
            )
        for policy in ALTERNATIVES:
            one = Base(SIMULATION, link, policy, "fairness/disabled", table(3), enabled=OTHERS)
            found.append(one)
            found.append(
                replace(one, section="fairness/window", table=table(5), enabled=ALL, window=LIMITED)
            )
            found.append(
                Base(
                    TESTBED,
                    link,
                    policy,
                    "fairness/testbed-disabled",
                    table(12),
                    enabled=OTHERS,
                    window=bed.WINDOW,
                )
            )
    return found


def cells() -> list[Cell]:
    """Every cell of the tables with every combination that touches it."""
    return [
        base.cell(combination, SCREENED if combination else SEEDS)
        for base in bases()
        for combination in combinations(base.path, base.policy)
    ]


def look(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """Either topology's."""
    of = bed.observe() if Path(scenario.name).stem == "testbed" else simulation.observe()
    return of(scenario, seed)


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
    more += f", buffer {base.buffer}" if base.buffer != _BUFFER else ""
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
