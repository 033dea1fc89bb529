"""What the mobile host finds of missing packets, and what they were (beyond obanaik2003 §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.obanaik2003.spep import bed
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Listed, Measure, Study
from lasthop.publications.study.verdict import Verdict
from lasthop.stats import Estimate, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lasthop.scenario import Scenario

_HANDOFFS = "obanaik2003/spep-handoffs"
#: What the mobile host may find, by the names of its counts.
FOUND: Mapping[str, tuple[str, str]] = {
    "corruption": ("lost_to_corruption", "damaged_as_corruption"),
    "congestion": ("lost_to_congestion", "damaged_as_congestion"),
    "forgotten": ("lost_and_forgotten", "damaged_as_forgotten"),
    "before station": ("lost_before_station", "damaged_as_before_station"),
}
#: Why corruption may be taken for congestion.
REORDERING, HANDOFF = "reordering", "handoff"


@dataclass(frozen=True)
class Situation:
    """What happens on the path, and which mistakes it may cause."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    scenario: str = bed.SCENARIO
    #: Why corruption may be taken for congestion; empty if it may not.
    excuse: str = ""
    #: Whether what is not corruption may be taken for it: what comes late behind the base station.
    late_behind: bool = False


def _losses(gap: str, length: int = 1) -> dict[str, Any]:
    bursts = {"gap": gap, "length": length, "damage": "corruption"}
    return {"links.2.forward.errors.bursts": bursts}


def _reordered(link: int, probability: float) -> dict[str, Any]:
    return {f"links.{link}.reordering": {"probability": probability, "delay": "5 ms"}}


_WINDOW = {"flows.0.tcp.receive_window": "1 MB"}
#: The wired queue overflows.
_CONGESTED = {**_WINDOW, "links.1.queue": "10 packets", "links.0.rate": "100 Mbit/s"}
#: Datagrams, which losses do not slow down, with many runs and long bursts.
_DATAGRAMS = {
    "flows": [
        {
            "name": "download",
            "from": "fixed",
            "to": "mobile",
            "ip": 6,
            "traffic": {"udp": {"rate": "4 Mbit/s", "packet": 1000}},
        }
    ],
    "links.1.forward": {"errors": {"packet": 0.1}},
    **_losses("32 KiB", 12),
}
_WRAPS = {"nodes.fixed.boxes": [{**bed.OPTION, "first_sequence": 4_294_966_000}]}
_MERGES = {"nodes.station.boxes": [{**bed.STATION, "merge": True}]}
_JOINED = "5 % late before, runs joined"
SITUATIONS: Mapping[str, Situation] = {
    "single losses": Situation(_losses("32 KiB")),
    "several in a window": Situation(_losses("8 KiB")),
    "bursts of 4": Situation(_losses("64 KiB", 4)),
    "numbers wrap": Situation({**_losses("32 KiB"), **_WRAPS}),
    "congestion": Situation({**_losses("256 KiB"), **_CONGESTED}),
    "congestion, bursts of 4": Situation({**_losses("256 KiB", 4), **_CONGESTED}),
    "station's queue overflows": Situation(
        {
            **_losses("256 KiB"),
            **_WINDOW,
            "links.2.queue": "5 packets",
            "links.*.rate": "100 Mbit/s",
            "links.2.rate": "10 Mbit/s",
        }
    ),
    **{
        f"{100 * probability:g} % late before": Situation(
            {**_losses("32 KiB"), **_reordered(1, probability)}, excuse=REORDERING
        )
        for probability in (0.01, 0.02, 0.05)
    },
    _JOINED: Situation({**_losses("32 KiB"), **_reordered(1, 0.05), **_MERGES}, excuse=REORDERING),
    **{
        f"{100 * probability:g} % late behind": Situation(
            {**_losses("32 KiB"), **_reordered(2, probability)},
            excuse=REORDERING,
            late_behind=True,
        )
        for probability in (0.01, 0.05)
    },
    "handoffs": Situation(scenario=_HANDOFFS, excuse=HANDOFF),
    "many runs, bursts of 12": Situation(_DATAGRAMS),
}


def cells() -> list[Cell]:
    """Every situation."""
    return [
        Cell(Case(situation=name), of.scenario, of.settings, bed.SEEDS, 1)
        for name, of in SITUATIONS.items()
    ]


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """Missing packets by what was found, those that the hop damaged and the others; late ones."""
    result = lab.run(scenario, seed=seed)
    counts = {
        row["what"]: row["count"]
        for row in result.box_counts.iter_rows(named=True)
        if row["node"] == "mobile"
    }
    found: dict[str, float | None] = {}
    for name, (all_of_them, damaged) in FOUND.items():
        mistaken = counts.get(damaged, 0)
        found[f"damaged as {name}"] = float(mistaken)
        found[f"other as {name}"] = float(counts.get(all_of_them, 0) - mistaken)
    found["damaged late"] = float(counts.get("damaged_late", 0))
    found["late"] = float(counts.get("late", 0))
    hops = result.links.filter(result.links["link"].str.ends_with("->mobile"))
    found["damaged"] = float(hops["corrupted"].sum())
    return found


def total(runs: Runs, case: Case, metric: str) -> int:
    """Over all runs."""
    return round(sum(runs.values(case, metric)))


# --- Answers ---------------------------------------------------------------------------------


def mistakes(runs: Runs, case: Case) -> dict[str, int]:
    """Corruption that is taken for congestion, by the reason."""
    excuse = SITUATIONS[case["situation"]].excuse
    late, between, before = (
        total(runs, case, metric)
        for metric in ("damaged late", "damaged as congestion", "damaged as before station")
    )
    # After reordering a run that was pushed out may lie between two that are left.
    reordering = late + between if excuse == REORDERING else 0
    handoff = between + before if excuse == HANDOFF else 0
    return {
        "more runs than blocks": total(runs, case, "damaged as forgotten"),
        REORDERING: reordering,
        HANDOFF: handoff,
        "no reason": late + between + before - reordering - handoff,
    }


def _damaged(runs: Runs) -> int:
    return sum(total(runs, case, "damaged") for case in runs)


def _no_corruption_as_congestion(runs: Runs) -> Answer:
    summed: dict[str, int] = {}
    for case in runs:
        for reason, count in mistakes(runs, case).items():
            summed[reason] = summed.get(reason, 0) + count
    none = summed.pop("no reason", 0)
    reordered = [c for c in runs if SITUATIONS[c["situation"]].excuse == REORDERING]
    between = sum(total(runs, case, "damaged as congestion") for case in reordered)
    joined = sum(total(runs, c, "damaged as congestion") for c in runs.cases(situation=_JOINED))
    listed = ", ".join(f"{reason} {count:,}" for reason, count in summed.items())
    return Answer(
        "No corruption is taken for congestion but after reordering, at a handoff, or where the"
        " base station has had more than three runs between two packets that arrive.",
        "§4.3, beyond",
        Verdict.of(none == 0),
        f"Of {_damaged(runs):,} damaged packets {none:,} were, apart from these: {listed}. After"
        f" reordering {between:,} were not late themselves, but in a run that had been pushed out"
        f" although runs on both sides of it were left ({joined:,} of these with joined runs).",
        effect_of="station",
        criterion="none at all",
    )


def _no_congestion_as_corruption(runs: Runs) -> Answer:
    metric = "other as corruption"
    behind = {case for case in runs if SITUATIONS[case["situation"]].late_behind}
    mistaken = sum(total(runs, case, metric) for case in runs if case not in behind)
    names = [f"other as {name}" for name in FOUND]
    others = sum(total(runs, case, name) for case in runs if case not in behind for name in names)
    excused = sum(total(runs, case, metric) for case in behind)
    return Answer(
        "Nothing else is taken for corruption but what comes late behind the base station.",
        "beyond",
        Verdict.of(mistaken == 0),
        f"Of {others:,} packets that were late, or lost elsewhere, {mistaken:,} were. Where the hop"
        f" behind the base station reorders, {excused:,} that were only late.",
        effect_of="station",
        criterion="none at all",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """Which mistakes there are."""
    return [_no_corruption_as_congestion(runs), _no_congestion_as_corruption(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    right = sum(total(runs, case, "damaged as corruption") for case in runs)
    return (
        f"Of {_damaged(runs):,} packets that the hop damaged {right:,} were found to be corrupted."
    )


# --- Tables and pictures ---------------------------------------------------------------------


def _matrix(runs: Runs) -> list[list[str]]:
    return [
        [
            case["situation"],
            truth,
            *(f"{total(runs, case, f'{truth} as {name}'):,}" for name in FOUND),
            f"{total(runs, case, 'damaged late'):,}" if truth == "damaged" else "",
        ]
        for case in runs
        for truth in ("damaged", "other")
    ]


def figure(runs: Runs) -> Figure:
    """What was found of what the hop damaged, and of the others."""
    colours = (pictures.BLUE, pictures.ORANGE, pictures.PURPLE, pictures.SKY, pictures.GREY)
    names = [*FOUND, "late"]
    with pictures.figure(11, 5.2) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, truth, title in zip(
            axes,
            ("damaged", "other"),
            ("Damaged by the hop", "Lost elsewhere, or late"),
            strict=True,
        ):
            labels = [case["situation"] for case in runs]
            left = [0.0] * len(labels)
            for name, colour in zip(names, colours, strict=True):
                metric = "damaged late" if name == "late" else f"{truth} as {name}"
                counts = [
                    0 if (truth, name) == ("other", "late") else total(runs, case, metric)
                    for case in runs
                ]
                wholes = [_whole(runs, case, truth) for case in runs]
                shares = [
                    100 * count / whole if whole else 0.0
                    for count, whole in zip(counts, wholes, strict=True)
                ]
                ax.barh(labels, shares, left=left, color=colour, height=0.65, label=name)
                left = [before + share for before, share in zip(left, shares, strict=True)]
            ax.set_title(title)
            ax.set_xlabel("found to be, %")
            ax.set_xlim(0, 100)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=len(names))
    return drawn


def _whole(runs: Runs, case: Case, truth: str) -> int:
    """Of all that was found of it."""
    found = sum(total(runs, case, f"{truth} as {name}") for name in FOUND)
    return found + (total(runs, case, "damaged late") if truth == "damaged" else 0)


def _sum(metric: str) -> Callable[[Runs, Case], Estimate | None]:
    return lambda runs, case: mean_interval(runs.values(case, metric))


STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/classification",
    title="What is found of missing packets",
    asks="Does the mobile host tell corruption from congestion, with reordering and handoffs, too?",
    where="§4.2.3, §4.3, beyond",
    method=(
        bed.METHOD[0],
        "The delay is 20 ms. One packet in 32 KiB is damaged where nothing else is said, and with"
        f" congestion one in 256 KiB. {bed.SEEDS} runs; counts are of all of them together.",
        "A link tells the simulator which packets it has damaged; the mobile host does not learn"
        " of it. The others were dropped by a queue, lost before the base station or at a handoff,"
        " or came late.",
        "Late: 5 ms, before the base station or behind it. A damaged packet that was late counts"
        " as lost to congestion from when it was overtaken. Handoffs: nine, between two base"
        " stations.",
        "Many runs: datagrams, of which one in ten is lost before the base station, and bursts of"
        " 12 behind it: more runs than the option has blocks lie between two packets that arrive.",
    ),
    cells=cells,
    observe=observe,
    measures=tuple(
        Measure(metric, "1", metric, _sum(metric))
        for metric in (
            "damaged",
            *(f"{truth} as {name}" for truth in ("damaged", "other") for name in FOUND),
            "damaged late",
            "late",
        )
    ),
    figures=(
        Drawn("Missing packets by what they were and what was found of them.", figure, bars=False),
    ),
    lists=(
        Listed(
            "Confusion matrices",
            "Packets of all runs by what they were (rows) and what was found (columns). Forgotten"
            " and before station are not known, and count as congestion.",
            ("situation", "truth", *FOUND, "late"),
            _matrix,
        ),
    ),
    answers=answers,
    keys={"situation": "situation"},
    outcome=outcome,
)
