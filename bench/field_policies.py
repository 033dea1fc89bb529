"""Table 3.7 of obanaik2003 by the kernel's TCP with the policies in BPF, beside the lab.

python bench/field_policies.py [--repeats 5] [--parallel 10]

Three sources with Linux's TCP send to three sinks over the test-bed's path (the scenario
obanaik2003/testbed), on real packets through lasthop's emulator. All connections have the policy.
It needs root, and loads and unloads the controls of `lasthopd cc`.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import field_path
import namespaces
import peers
import record

import lasthop
from lasthop.publications.obanaik2003.fairness import bed, policies, single
from lasthop.publications.obanaik2003.fairness.simulation import LTN, PUBLICATION, SLOW
from lasthop.publications.study.published import Section

RESULT = record.RESULTS / "field-policies.json"
#: Runs of the lab.
LAB_RUNS = 20
#: A void run is made again, so often at most.
ATTEMPTS = 3
METRICS = ("payload_bps", "loss_share")
#: The kernel's own control, which counts acknowledged segments.
RENO = "reno"


@dataclass(frozen=True)
class Policy:
    """A policy in the lab and in the kernel."""

    variant: bed.Variant
    #: The kernel's name, and the words of `lasthopd cc load`; nothing is loaded without.
    control: str
    load: Sequence[str] = ()


#: One increase per acknowledgment, as in the thesis. The kernel has one control of a name at a
#: time.
ROUNDS = (
    (
        Policy(bed.Variant(policies.IBK), "lasthop_byk", ("increase-by-k", "--k", f"{bed.K}")),
        Policy(bed.Variant(policies.CANIT), "lasthop_canit", ("canit",)),
        Policy(bed.Variant(policies.CR, 10.0), "lasthop_rate", ("constant-rate", "--c", "10")),
        Policy(bed.Variant(policies.AUTO), "lasthop_auto", ("auto",)),
        Policy(bed.Variant(RENO), RENO),
    ),
    (
        Policy(bed.Variant(policies.STANDARD), "lasthop_byk", ("increase-by-k", "--k", "1")),
        Policy(bed.Variant(policies.CR, 100.0), "lasthop_rate", ("constant-rate", "--c", "100")),
    ),
)


@contextlib.contextmanager
def loaded(lasthopd: Path, chosen: Sequence[Policy]) -> Iterator[None]:
    """Loads controls, and unloads them at the end."""

    def cc(*words: str) -> None:
        subprocess.run([str(lasthopd), "cc", *words], check=True, stdout=subprocess.DEVNULL)

    with contextlib.ExitStack() as stack:
        for policy in chosen:
            if policy.load:
                cc("load", *policy.load, "--per-ack")
                stack.callback(cc, "unload", policy.load[0])
        yield


def scenario(link: str, policy: Policy, in_kernel: bool) -> tuple[str, Mapping[str, Any]]:
    """The test-bed's scenario, and the settings of a policy there."""
    of_kernel = policy.variant.policy == RENO
    cell = bed.cell(link, bed.STANDARD_ALONE if of_kernel else policy.variant)
    settings = dict(cell.settings)
    if in_kernel:
        stack = {"from": "linux", "to": "linux", "congestion": policy.control}
        settings |= {f"flows.{flow}.stack": stack for flow in range(3)}
    return cell.scenario, settings


def run(link: str, policy: Policy, in_kernel: bool, seed: int) -> Mapping[str, float]:
    """What connection 3 gets in one run; if all attempts are void, in the last one."""
    name, settings = scenario(link, policy, in_kernel)
    void = True
    attempts = 0
    while void and attempts < ATTEMPTS:
        attempts += 1
        result = lasthop.run(name, settings=settings, seed=seed, testbed=in_kernel)
        void = result.health is not None and result.health.void is not None
    rows = {row["flow"]: row for row in result.rows.iter_rows(named=True)}
    links = {row["link"]: row for row in result.links.iter_rows(named=True)}
    last = links[single.LAST_HOP]
    return {
        "payload_bps": rows[single.OWN]["payload_bps"],
        "loss_share": last["dropped"] / max(1, last["packets"] + last["dropped"]),
        "void": float(void),
        "attempts": float(attempts),
    }


def summarised(found: Sequence[Mapping[str, float]]) -> record.Row:
    """Means and 95 % intervals."""
    row: record.Row = {"runs": len(found), "void": round(sum(one["void"] for one in found))}
    for metric in METRICS:
        values = [one[metric] for one in found]
        interval = peers.interval95([1e3 * value for value in values]) or [1e3 * values[0]] * 2
        row[metric] = float(f"{statistics.fmean(values):.4g}")
        row[f"{metric}_ci95"] = [float(f"{end / 1e3:.4g}") for end in interval]
    return row


def published(link: str, policy: Policy) -> record.Row:
    """The thesis's values."""
    numbers = Section.of(PUBLICATION, "fairness/testbed").numbers
    case = {"link": link, "policy": policy.variant.policy}
    return {
        number.metric: number.value
        for number in numbers
        if number.metric in METRICS and case.items() <= dict(number.case).items()
    }


def main() -> None:
    """Measures, and keeps the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs of the kernel")
    parser.add_argument("--parallel", type=int, default=10, help="runs at a time")
    options = parser.parse_args()
    namespaces.need("ip")
    namespaces.ended_in_order()
    lasthopd = field_path.lasthopd()
    rows: list[record.Row] = []
    # Threads of the engine do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.parallel, mp_context=context) as pool:
        for chosen in ROUNDS:
            cells = [(link, policy) for link in (SLOW, LTN) for policy in chosen]
            with loaded(lasthopd, chosen):
                jobs = [
                    (link, policy, seed)
                    for seed in range(1, options.repeats + 1)
                    for link, policy in cells
                ]
                kernel = {job: pool.submit(run, job[0], job[1], True, job[2]) for job in jobs}
                for number, (job, future) in enumerate(kernel.items(), 1):
                    what = f"{job[0]}, {job[1].variant.policy}"
                    record.say(f"{number} of {len(jobs)}: {what}: {future.result()}")
            for link, policy in cells:
                of_kernel = [kernel[link, policy, n + 1].result() for n in range(options.repeats)]
                row: record.Row = {"link": link, **policy.variant.case, "control": policy.control}
                if policy.variant.policy != RENO:
                    seeds = range(1, LAB_RUNS + 1)
                    lab = [pool.submit(run, link, policy, False, seed) for seed in seeds]
                    row["published"] = published(link, policy)
                    row["lab"] = summarised([future.result() for future in lab])
                row["kernel"] = summarised(of_kernel)
                rows.append(row)
    order = [policies.STANDARD, RENO, policies.IBK, policies.CANIT, policies.CR, policies.AUTO]
    rows.sort(key=lambda row: (row["link"] == LTN, order.index(row["policy"]), row["c"] or 0))
    result = {
        "experiment": "field-policies",
        **record.circumstances(),
        "kernel": os.uname().release,
    }
    record.keep(RESULT, result | {"rows": rows})


if __name__ == "__main__":
    main()
