"""What the speed of a run depends on, and how the comparison shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import speed

import lasthop

#: The least share of segments that are to be on the fast path.
LEAST = {
    "timestamps": 0.99,
    "no timestamps": 0.99,
    "delayed ACKs": 0.98,
    "Backward ETEN, bit errors 1e-6": 0.98,
}


@pytest.mark.parametrize("case", speed.CASES)
@pytest.mark.parametrize("variant", speed.VARIANTS)
def test_nearly_all_segments_of_the_comparison_take_the_fast_path(case: str, variant: str) -> None:
    tcp, bit_error_rate = speed.VARIANTS[variant]
    short = replace(speed.CASES[case], duration=10)
    share = lasthop.run(short.scenario(tcp, bit_error_rate)).fast_path_share
    assert share is not None
    assert LEAST[variant] <= share <= 1


def test_a_run_whose_packets_are_watched_one_by_one_has_no_fast_path(tmp_path: Path) -> None:
    tcp, _ = speed.VARIANTS["timestamps"]
    short = replace(speed.CASES["one"], duration=1).scenario(tcp)
    assert lasthop.run(short, events=tmp_path / "events.jsonl").fast_path_share == 0


def test_the_table_shows_the_share_and_the_memory_of_a_flow() -> None:
    row = speed.crowd(speed.Case.of_many(100, duration=1))
    head = {"simulator": "lasthop", "version": "0", "variant": speed.REFERENCE, "case": "100"}
    (summary,) = speed.summarised([{**head, **row}])
    circumstances = {"lasthop": "0", "rustc": "1", "machine": {"cpu": "", "cores": 1}, "date": ""}
    shown = speed.table({"rows": [summary], **circumstances})
    assert f"| {summary['fast_path_share']:.1%} | {summary['kib_per_flow']:.0f} KiB |" in shown
