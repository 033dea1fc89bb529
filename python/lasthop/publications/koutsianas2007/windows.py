"""The receive window, which the report leaves open: what holds with which."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lasthop.publications.study.verdict import Joint, Judgement, Verdict

#: In segments: around a bandwidth-delay product (41), that and a queue (91), and beyond.
WINDOWS = (
    *(20, 25, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 45, 50, 55, 60, 65, 70, 75, 80, 85),
    *(86, 88, 89, 90, 95, 100, 105, 110, 115, 120, 130, 140, 150, 160, 165, 170, 175, 200, 250),
    *(300, 400, 500),
)
#: Those of them for experiments of many runs.
FEW = (20, 30, 41, 50, 75, 100, 130, 200, 500)
#: With which of these the times of figures 4.2 and 4.3 are those that are printed, to the digit.
LIKELY = (41, 50, 75, 130, 200, 500)


def setting(window: int) -> dict[str, Any]:
    """Of a flow's `tcp`."""
    return {"receive_window": f"{window} segments"}


def stretches(chosen: Collection[int], of: Sequence[int]) -> str:
    """As in "41 to 85 and 115 to 150", of windows that were tried."""
    found = []
    for is_chosen, group in itertools.groupby(sorted(of), lambda window: window in chosen):
        if is_chosen:
            windows = list(group)
            first, last = windows[0], windows[-1]
            found.append(f"{first}" if first == last else f"{first} to {last}")
    return " and ".join(found) if found else "none"


def joined(by_window: Mapping[int, Joint], why: str, **measured: Any) -> Judgement:
    """A statement holds, or differs, if it does with all windows that are likely. Where they
    disagree, what was not published decides."""
    likely = {by_window[window].verdict for window in LIKELY}
    verdict = likely.pop() if len(likely) == 1 else Verdict.UNDECIDED
    said = "; ".join(
        f"{of} with {stretches(chosen, tuple(by_window))}"
        for of in Verdict
        for chosen in [[w for w, joint in by_window.items() if joint.verdict is of]]
        if chosen
    )
    return Judgement(
        verdict,
        f"{why} By the receive window, in segments: {said}. Those that meet the times of figures"
        f" 4.2 and 4.3 count: {stretches(LIKELY, FEW)}.",
        criterion=f"with every window of {stretches(LIKELY, FEW)}",
        **measured,
    )
