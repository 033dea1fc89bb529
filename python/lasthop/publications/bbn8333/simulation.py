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
from lasthop.publications.bbn8333 import overview
from lasthop.publications.bbn8333.cases import NONE, Network, Runs, Variant
from lasthop.publications.bbn8333.findings import Evidence, Test, findings
from lasthop.publications.bbn8333.grid import Block, measure
from lasthop.publications.bbn8333.show import show
from lasthop.publications.bbn8333.variations import Variation
from lasthop.publications.rows import Finding, Row
from lasthop.stats import Estimate

PUBLICATION = "bbn8333"
QUICK_SEEDS = 3
#: Of the networks that no figure shows: without cross traffic, with it, and at 100 Mb/s.
SEEDS, CROSS_SEEDS, FAST_CROSS_SEEDS = 30, 10, 3
_FAST = 100e6
#: Of every variation.
VARIATION_SEEDS = 10

#: All networks of the report's table 1.
NETWORKS = tuple(
    Network(rate, delay) for rate in (1.5e6, 10e6, 100e6) for delay in (0.01, 0.1, 0.32)
)


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
    #: The outcome in some sentences.
    lead: Callable[[Runs], str]

    @property
    def networks(self) -> tuple[Network, ...]:
        """Those of its figures."""
        return tuple(network for networks in self.figures.values() for network in networks)

    def plan(self, seeds: int | None, quick: bool) -> list[tuple[Block, Variation | None]]:
        """Blocks of the figures, then those of the appendix, then of every variation."""
        drawn = [replace(b, seeds=seeds or SEEDS) for b in self.blocks(self.networks)]
        if quick:
            drawn = [replace(block, seeds=QUICK_SEEDS) for block in drawn]
            return [(block, None) for block in drawn]
        rest: list[Block] = []
        for rate in sorted({network.rate_bps for network in NETWORKS}):
            others = tuple(n for n in NETWORKS if n.rate_bps == rate and n not in self.networks)
            rest += [replace(b, seeds=seeds or _seeds(b)) for b in self.blocks(others)]
        tried: list[tuple[Block, Variation | None]] = [
            (replace(block, seeds=min(seeds or VARIATION_SEEDS, VARIATION_SEEDS)), variation)
            for variation in self.variations
            for block in self.blocks(self.networks)
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
        by_variation: dict[str, list[Runs]] = {}
        for (_, variation), runs in zip(plan, measured, strict=True):
            by_variation.setdefault(variation.id if variation else "", []).append(runs)
        joined = {id: Runs.joined(*parts) for id, parts in by_variation.items()}
        base = joined.pop("")
        if quick:
            return Evidence(base, {})
        return Evidence(base, joined, self.variations, self.networks)

    def write(self, folder: Path, evidence: Evidence) -> list[Finding]:
        """Writes the results and the report; returns the verdicts on the published statements."""
        published = library.published(PUBLICATION)
        stated = published[self.id]
        found = findings(self.id, stated, evidence, self.tests)
        rows.write(folder / "results.json", [*found, *self._measurements(evidence.runs)])
        told = json.dumps(self._explanations(stated, evidence), indent=1)
        write_text(folder / "explanations.json", told + "\n")
        overview.write(folder / "report.html", published, self, evidence, found)
        return found

    def reproduce(self, folder: Path, *, seeds: int | None, quick: bool, threads: int) -> None:
        """Runs everything and writes what came of it."""
        with terminal.progress(f"{PUBLICATION}/{self.id}") as progress:
            evidence = self.measure(seeds=seeds, quick=quick, threads=threads, progress=progress)
        show(f"{PUBLICATION}/{self.id}", self.write(folder, evidence))
        for name, what in (
            ("results.json", "all values"),
            ("explanations.json", "what one factor changes"),
            ("report.html", "report"),
        ):
            terminal.written(folder / name, what)

    def _measurements(self, runs: Runs) -> list[Row]:
        """Goodput of every case, and the ratio to no notification."""
        measured = []

        def add(case: Any, metric: str, unit: str, value: Estimate) -> None:
            measured.append(Row(PUBLICATION, self.id, case.as_dict(), metric, unit, value))

        for case in runs:
            add(case, "goodput_bps", "bit/s", runs.goodput(case))
            plain = case.but(eten=NONE)
            if case.eten != NONE and runs.is_alive(case) and runs.is_alive(plain):
                add(case, "ratio", "1", runs.gain(case))
        return measured

    def _explanations(self, stated: Mapping[str, Any], evidence: Evidence) -> list[dict[str, Any]]:
        """What every variation makes of every statement."""
        told: list[dict[str, Any]] = []
        for statement in stated["statement"]:
            test = self.tests[statement["id"]]
            for variation in evidence.variations:
                verdict = test(evidence.varied[variation.id])
                measured = verdict.measured
                told.append(
                    {
                        "statement": statement["id"],
                        "variation": variation.id,
                        "with": variation.name,
                        "agrees": verdict.agrees,
                        "measured": None if measured is None else measured.value,
                        "ci95": None if measured is None else [measured.lo, measured.hi],
                        "why": verdict.why,
                    }
                )
        return told


def _seeds(block: Block) -> int:
    if not block.competitors:
        return SEEDS
    return FAST_CROSS_SEEDS if block.networks[0].rate_bps >= _FAST else CROSS_SEEDS
