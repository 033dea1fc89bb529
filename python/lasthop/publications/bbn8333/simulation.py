"""A simulation: what it runs, what the report says of it, and what is made of both.

A simulation's own file lists its variants, blocks, statements and variations; the rest is here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lasthop import lab, library, terminal
from lasthop.files import write_text
from lasthop.publications import rows
from lasthop.publications.bbn8333 import page
from lasthop.publications.bbn8333.cases import NONE, PERIOD, Case, Network, Runs, Variant
from lasthop.publications.bbn8333.findings import Evidence, Test, findings
from lasthop.publications.bbn8333.grid import Block, measure
from lasthop.publications.bbn8333.show import show
from lasthop.publications.bbn8333.variations import Variation
from lasthop.publications.rows import Finding, Outcome, Row
from lasthop.publications.study.published import published
from lasthop.stats import Estimate

PUBLICATION = "bbn8333"
QUICK_SEEDS = 3
#: Of the figures' networks and of all without cross traffic; with it elsewhere; and at 100 Mb/s.
SEEDS, CROSS_SEEDS, FAST_CROSS_SEEDS = 30, 10, 3
_FAST = 100e6
#: Of every variation.
VARIATION_SEEDS = 10

#: All networks of the report's table 1.
NETWORKS = tuple(
    Network(rate, delay) for rate in (1.5e6, 10e6, 100e6) for delay in (0.01, 0.1, 0.32)
)


@dataclass(frozen=True)
class Lead:
    """What a simulation is about, and how it came out, in a sentence or two each."""

    about: str
    outcome: str


@dataclass(frozen=True)
class Simulation:
    """One of the report's."""

    id: str
    variants: tuple[Variant, ...]
    #: What is run over some networks, with any number of seeds.
    blocks: Callable[[tuple[Network, ...]], Sequence[Block]]
    #: Networks of the report's figures, by number; None: only its appendix has them.
    figures: Mapping[int | None, tuple[Network, ...]]
    #: The panels of a figure: a title, and what is shown under it.
    panels: Mapping[str, Mapping[str, Any]]
    #: Who is in the figures; those who are not are in the appendix's.
    shown: tuple[Variant, ...]
    tests: Mapping[str, Test]
    variations: tuple[Variation, ...]
    lead: Callable[[Runs], Lead]
    #: Two of these at once.
    pairs: tuple[Variation, ...] = ()
    #: The first is the report's; others are run over the networks of the figures.
    profiles: tuple[str, ...] = (PERIOD,)

    @property
    def number(self) -> int:
        """Its number in the report."""
        return int(self.id.removeprefix("sim"))

    @property
    def appendix(self) -> str:
        """Where the report has all of it: A for the first."""
        return chr(ord("A") + self.number - 1)

    @property
    def where(self) -> str:
        """Its figures and its appendix in the report."""
        numbers = [number for number in self.figures if number]
        last = f" to {numbers[-1]}" if len(numbers) > 1 else ""
        drawn = f"figure{'s' if last else ''} {numbers[0]}{last}, " if numbers else ""
        return f"Simulation {self.number}: {drawn}appendix {self.appendix}"

    @property
    def hops(self) -> int:
        """Links of its path."""
        return self.blocks(self.networks)[0].hops

    @property
    def networks(self) -> tuple[Network, ...]:
        """Those of its figures."""
        return tuple(network for networks in self.figures.values() for network in networks)

    def plan(self, seeds: int | None, quick: bool) -> list[tuple[Block, Variation | None]]:
        """Blocks of the figures, then those of the appendix, then of every variation."""
        drawn = [
            replace(block, seeds=QUICK_SEEDS if quick else seeds or _seeds(block), profile=profile)
            for profile in self.profiles
            for block in self.blocks(self.networks)
            if profile == PERIOD or not block.beyond
        ]
        if quick:
            return [(b, None) for b in drawn if not b.beyond or not b.competitors]
        rest: list[Block] = []
        for rate in sorted({network.rate_bps for network in NETWORKS}):
            others = tuple(n for n in NETWORKS if n.rate_bps == rate and n not in self.networks)
            rest += [replace(b, seeds=seeds or _others_seeds(b)) for b in self.blocks(others)]
        tried: list[tuple[Block, Variation | None]] = [
            (replace(block, seeds=min(seeds or _others_seeds(block), VARIATION_SEEDS)), variation)
            for variation in (*self.variations, *self.pairs)
            for block in self.blocks(self.networks)
            if not block.beyond
        ]
        return [*((block, None) for block in [*drawn, *rest]), *tried]

    def measure(
        self,
        *,
        seeds: int | None = None,
        quick: bool = False,
        threads: int = 0,
        progress: lab.Progress | None = None,
    ) -> Evidence:
        """All runs. A quick one has the figures alone, and tries nothing."""
        plan = self.plan(seeds, quick)
        measured = measure(plan, threads, progress)
        parts: dict[tuple[str, str], list[Runs]] = {}
        for (block, variation), runs in zip(plan, measured, strict=True):
            of = block.profile, variation.id if variation else ""
            parts.setdefault(of, []).append(runs)
        joined = {of: Runs.joined(*runs) for of, runs in parts.items()}
        runs, *today = (joined.pop((profile, "")) for profile in self.profiles)
        modern = today[0] if today else None
        if quick:
            return Evidence(runs, {}, modern=modern)
        varied = {id: runs for (_, id), runs in joined.items()}
        return Evidence(runs, varied, self.variations, self.pairs, self.networks, modern)

    def write(self, folder: Path, evidence: Evidence) -> Outcome:
        """Writes the results and the report."""
        everything = library.published(PUBLICATION)
        stated = everything[self.id]
        found = findings(self.id, stated, evidence, self.tests)
        all_rows: list[Row | Finding] = [*found, *self._measurements(stated, evidence)]
        rows.write(folder / "results.json", all_rows)
        told = json.dumps(self._explanations(stated, evidence), indent=1)
        write_text(folder / "explanations.json", told + "\n")
        page.write(folder / "report.html", everything, self, evidence, found)
        line = self.lead(evidence.runs).outcome
        return Outcome(self.id, stated["title"], self.where, line, all_rows)

    def reproduce(self, folder: Path, *, seeds: int | None, quick: bool, threads: int) -> Outcome:
        """Runs everything and writes what came of it."""
        with terminal.progress(f"{PUBLICATION}/{self.id}") as progress:
            evidence = self.measure(seeds=seeds, quick=quick, threads=threads, progress=progress)
        outcome = self.write(folder, evidence)
        show(f"{PUBLICATION}/{self.id}", outcome.findings)
        for name, what in (
            ("results.json", "all values"),
            ("explanations.json", "what one factor changes"),
            ("report.html", "report"),
        ):
            terminal.written(folder / name, what)
        return outcome

    def _measurements(self, stated: Mapping[str, Any], evidence: Evidence) -> list[Row]:
        """Goodput of every case, and the ratio to no notification."""
        numbers = {
            Case(**ratio["case"], profile=PERIOD): published(ratio)
            for ratio in stated.get("ratio", ())
        }
        measured = []

        def add(case: Case, metric: str, unit: str, value: Estimate) -> None:
            row = Row(PUBLICATION, self.id, case.as_dict(), metric, unit, value)
            of = numbers.get(case) if metric == "ratio" else None
            if of is not None:
                verdict = of.judge(value, evidence.runs.single_gain(case))
                row = replace(row, published=of.value, verdict=verdict)
            measured.append(row)

        for runs in (evidence.runs, evidence.modern or Runs({})):
            for case in runs:
                add(case, "goodput_bps", "bit/s", runs.goodput(case))
                plain = case.but(eten=NONE)
                if case.eten != NONE and runs.is_alive(case) and runs.is_alive(plain):
                    add(case, "ratio", "1", runs.gain(case))
        return measured

    def _explanations(self, stated: Mapping[str, Any], evidence: Evidence) -> list[dict[str, Any]]:
        """What every variation makes of every published number and statement."""
        told: list[dict[str, Any]] = []

        def tell(of: Mapping[str, Any], variation: Variation, **what: Any) -> None:
            told.append({**of, "variation": variation.id, "with": variation.name, **what})

        for ratio in stated.get("ratio", ()):
            case = Case(**ratio["case"], profile=PERIOD)
            for move in evidence.moved(case):
                tell(
                    {"ratio": ratio["id"], "case": case.as_dict(), "published": ratio["value"]},
                    move.variation,
                    reproduced=move.baseline.value,
                    measured=move.ratio.value,
                    ci95=[move.ratio.lo, move.ratio.hi],
                    runs=move.ratio.n,
                    moves=move.clear,
                )
        for statement in stated["statement"]:
            test = self.tests[statement["id"]]
            for variation in (*evidence.variations, *evidence.pairs):
                judged = test(evidence.varied[variation.id])
                measured = judged.measured
                tell(
                    {"statement": statement["id"]},
                    variation,
                    agrees=judged.verdict.agrees,
                    verdict=judged.verdict,
                    measured=None if measured is None else measured.value,
                    ci95=None if measured is None else [measured.lo, measured.hi],
                    why=judged.why,
                )
        return told


def _seeds(block: Block) -> int:
    """Of a figure's network."""
    return _others_seeds(block) if block.beyond else SEEDS


def _others_seeds(block: Block) -> int:
    """Of a network that only the appendix has."""
    if not block.competitors:
        return SEEDS
    return FAST_CROSS_SEEDS if block.networks[0].rate_bps >= _FAST else CROSS_SEEDS
