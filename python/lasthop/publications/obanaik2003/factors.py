"""What moves the numbers that differ: one factor changed at a time, all else equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.obanaik2003 import bed, policies, simulation, words
from lasthop.publications.obanaik2003.bed import VARIANTS
from lasthop.publications.obanaik2003.policies import CANIT, CR, POLICIES, PROPAGATION
from lasthop.publications.obanaik2003.simulation import LINK_NAMES, LTN, PUBLICATION, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer, Number, Section
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Verdict, would_decide
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIMULATION, TESTBED = "simulation", "test-bed"
AS_IS = "as is"
SEEDS = 10


@dataclass(frozen=True)
class Factor:
    """One thing that is other than in the scenario."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The round trip that policies go by, if that is what differs.
    rtt: str | None = None
    cap: float | None = None

    def touches(self, policy: str) -> bool:
        """Whether it makes a difference to a policy at all."""
        return policy in (CR, CANIT) or (self.rtt is None and self.cap is None)


def _all(key: str, value: Any) -> Mapping[str, Any]:
    return {f"flows.*.tcp.{key}": value}


_TCP = (
    Factor("Tahoe", _all("recovery", "tahoe")),
    Factor("SACK", _all("recovery", "sack")),
    Factor("cap 1", cap=1.0),
    Factor("propagation", rtt=PROPAGATION),
)
FACTORS: Mapping[str, Sequence[Factor]] = {
    SIMULATION: (
        Factor(AS_IS),
        *_TCP,
        Factor("NewReno", _all("recovery", "newreno")),
        Factor("RTO min. 1 s", _all("rto.minimum", "1 s")),
        Factor("delayed ACKs", _all("delayed_ack", "100 ms")),
        Factor("windows of 20", _all("receive_window", "20 segments")),
        Factor("short paths", {f"links.{link}.delay": "100 ms" for link in (2, 3, 4)}),
        Factor("shared buffer 20", {"links.6.queue": "20 packets"}),
        Factor("last buffer 4", {"links.9.queue": "4 packets"}),
        Factor("last buffer in bytes", {"links.9.queue": "888 B"}),
    ),
    TESTBED: (
        Factor(AS_IS),
        *_TCP,
        Factor("Reno", _all("recovery", "reno")),
        Factor("RTO min. 200 ms", _all("rto.minimum", "200 ms")),
        Factor("no delayed ACKs", _all("delayed_ack", "off")),
        Factor("296 bytes for all", _all("mss", 256)),
        Factor("shared buffer 20", {"links.3.queue": "20 packets"}),
        Factor("shared buffer 100", {"links.3.queue": "100 packets"}),
        Factor("last buffer 2", {"links.7.queue": "2 packets"}),
        Factor("last buffer in bytes", {"links.7.queue": "888 B"}),
    ),
}
#: What is published for the cells as they are, and the metric that it counts as goodput.
_TABLES = {
    (SIMULATION, SLOW): ("fairness/slow", "table 3.1"),
    (SIMULATION, LTN): ("fairness/ltn", "table 3.2"),
    (TESTBED, SLOW): ("fairness/testbed", "table 3.7"),
    (TESTBED, LTN): ("fairness/testbed", "table 3.7"),
}
_GOODPUT = {SIMULATION: "goodput_bps", TESTBED: "payload_bps"}
_LOSSES = "losses_packets"


def cells() -> list[Cell]:
    """Every cell of tables 3.1, 3.2 and 3.7 with every factor that touches it."""
    found = []
    for link in (SLOW, LTN):
        for factor in FACTORS[SIMULATION]:
            found += [_simulated(link, p, factor) for p in POLICIES if factor.touches(p)]
        for factor in FACTORS[TESTBED]:
            found += [_bed(link, v, factor) for v in VARIANTS if factor.touches(v.policy)]
    return found


def _simulated(link: str, policy: str, factor: Factor) -> Cell:
    rtt = policies.default_rtt(policy) if factor.rtt is None else factor.rtt
    value = policies.increase(policy, rtt, cap=factor.cap)
    case = Case(path=SIMULATION, link=link, policy=policy, c=bed.NO_CONSTANT, factor=factor.name)
    settings = {
        **simulation.LINKS[link],
        **simulation.with_policy(value, policy),
        **factor.settings,
    }
    return Cell(case, simulation.SCENARIO, settings, SEEDS, simulation.QUICK_SEEDS)


def _bed(link: str, variant: bed.Variant, factor: Factor) -> Cell:
    cell = bed.cell(link, variant, rtt=factor.rtt, settings=factor.settings)
    settings = dict(cell.settings)
    if factor.cap is not None:
        for flow in range(3):
            key = f"flows.{flow}.tcp.increase"
            settings[key] = {**settings[key], "cap": factor.cap}
    case = Case(path=TESTBED, link=link, **variant.case, factor=factor.name)
    return Cell(case, bed.SCENARIO, settings, SEEDS, bed.QUICK_SEEDS)


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """Either topology's."""
    of = bed.observe() if Path(scenario.name).stem == "testbed" else simulation.observe()
    return of(scenario, seed)


def _published(case: Case, metric: str) -> tuple[Number | None, str]:
    section, table = _TABLES[case["path"], case["link"]]
    of = Case(
        link=case["link"],
        policy=case["policy"],
        enabled=simulation.ALL,
        buffer_packets=bed.BUFFERS[0],
        receive_window_bytes=bed.WINDOW,
    )
    return Section.of(PUBLICATION, section).number(of, metric), table


def _answers(runs: Runs) -> Sequence[Answer]:
    found = []
    for case in runs.cases(factor=AS_IS):
        for metric in (_GOODPUT[case["path"]], _LOSSES):
            number, table = _published(case, metric)
            assert number is not None, case
            found.append(_explained(runs, case, metric, number, table))
    return found


def _explained(runs: Runs, case: Case, metric: str, number: Number, table: str) -> Answer:
    """Whether a published number is met, and with which factor it is."""
    scale, unit = (1.0, " losses") if metric == _LOSSES else (1e3, " kb/s")
    as_is = runs.mean(case, metric)
    assert as_is is not None
    others = [
        other for other in runs.cases(**{**case, "factor": _names(case["path"])}) if other != case
    ]
    means = {other["factor"]: runs.mean(other, metric) for other in others}
    known = {name: mean for name, mean in means.items() if mean is not None}
    met = {name: mean for name, mean in known.items() if number.of.judge(mean) is Verdict.HOLDS}
    verdict = number.of.judge(as_is)
    why = f"Measured {words.number(as_is, scale)}."
    if verdict is Verdict.UNDECIDED:
        why += f" {would_decide(number.of.needs(as_is))}"
    if verdict is not Verdict.HOLDS:
        why += f" {_which(number, known, met, as_is, scale)}"
    return Answer(
        f"{case['path'].capitalize()}, {LINK_NAMES[case['link']]}, {words.policy(case)}:"
        f" {number.value / scale:g}{unit}.",
        table,
        verdict,
        why,
        case,
        as_is,
        "packets" if metric == _LOSSES else "bit/s",
        published=number.value,
        effect_of="none",
    )


def _names(path: str) -> tuple[str, ...]:
    return tuple(factor.name for factor in FACTORS[path])


def _which(
    number: Number,
    known: Mapping[str, Estimate],
    met: Mapping[str, Estimate],
    as_is: Estimate,
    scale: float,
) -> str:
    if met:
        return (
            "It is met with "
            + ", ".join(f"{name}: {words.number(mean, scale)}" for name, mean in met.items())
            + "."
        )
    name, nearest = min(known.items(), key=lambda pair: abs(pair[1].value - number.value))
    if abs(nearest.value - number.value) >= abs(as_is.value - number.value):
        return "No single factor tried comes nearer."
    return (
        f"No single factor tried meets it; the nearest is {name}: {words.number(nearest, scale)}."
    )


def _outcome(runs: Runs) -> str:
    found = _answers(runs)
    met = sum(answer.verdict is Verdict.HOLDS for answer in found)
    by_factor = sum("It is met with" in answer.why for answer in found)
    return (
        f"Of {len(found)} numbers in tables 3.1, 3.2 and 3.7, {met} are met as it is, and"
        f" {by_factor}"
        " more with one factor changed."
    )


def _figure(path: str) -> Drawn:
    return Drawn(
        f"{path.capitalize()}: goodput of connection 3 with one factor changed; lines: as it is.",
        lambda runs: _drawn(runs, path),
    )


def _drawn(runs: Runs, path: str) -> Figure:
    """A row for every factor, a panel for every last hop."""
    names = _names(path)
    with pictures.figure(9.4, 1.2 + 0.3 * len(names)) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, link in zip(axes, (SLOW, LTN), strict=True):
            for line in _lines(path):
                means = {
                    case["factor"]: runs.mean(case, _GOODPUT[path])
                    for case in runs.cases(path=path, link=link, **line.where)
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
                ax.axvline(known[AS_IS].value / 1e3, color=line.colour, linewidth=0.8, alpha=0.5)
            ax.set_title(LINK_NAMES[link].capitalize())
            ax.set_xlabel("goodput, kb/s")
            ax.set_xlim(0)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=5)
    return drawn


def _lines(path: str) -> Sequence[draw.Line]:
    found = [policies.line(policy) for policy in POLICIES] if path == SIMULATION else bed.lines()
    # Constants have the same colour.
    return [
        replace(
            line,
            where={key: value for key, value in line.where.items() if key != "rtt"},
            marker="x" if line.where.get("c") == bed.CONSTANTS[1] else line.marker,
        )
        for line in found
    ]


STUDY = Study(
    publication=PUBLICATION,
    experiment="fairness/factors",
    title="What moves the numbers that differ",
    asks="Much of the simulations and of the test-bed is not published: the kind of TCP, its"
    " timers, windows,"
    " the delays of half the links. Which of it moves the numbers of tables 3.1, 3.2 and 3.7, and"
    " which"
    " makes them what they are in the thesis?",
    where="tables 3.1, 3.2, 3.7",
    method=(
        f"Every cell of the three tables with one factor changed for all connections, {SEEDS}"
        " runs each.",
        "The paths as they are: see the reports of the slow link, the long thin network and the"
        " test-bed.",
        '"Short paths" have 100 ms instead of the calibrated delay, so that connection 3\'s'
        " round trip is near"
        ' the 500 ms that the thesis speaks of. "Last buffer in bytes" is three full packets,'
        " 888 bytes.",
    ),
    cells=cells,
    observe=observe,
    measures=simulation.MEASURES,
    figures=[_figure(SIMULATION), _figure(TESTBED)],
    answers=_answers,
    keys={"path": "path", "link": "last hop", "policy": "policy", "c": "c", "factor": "factor"},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
