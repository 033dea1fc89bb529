"""The congestion window over the acknowledgments that came (figures 3.2, 3.3, 3.9, 3.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.obanaik2003.fairness import policies
from lasthop.publications.obanaik2003.fairness.policies import NAMES, STANDARD
from lasthop.publications.obanaik2003.fairness.single import OWN, windows
from lasthop.publications.study.runs import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: All panels are of one run each, the first.
SEED = 1


def steps(cell: Cell, mss: int) -> Sequence[float]:
    """The window in segments after each acknowledgment, of connection 3."""
    return windows(lab.run(cell.single(0)[0], seed=SEED, trace=True).series(OWN), mss)


def figure(panels: Mapping[str, tuple[Cell, Cell]], mss: int, shown: int) -> Figure:
    """Each policy beside the standard, the first so many acknowledgments."""
    with pictures.figure(1.2 + 4.1 * len(panels), 3.4) as drawn:
        axes = drawn.subplots(1, len(panels), squeeze=False)[0]
        for ax, (title, (cell, plain)) in zip(axes, panels.items(), strict=True):
            policy = cell.case["policy"]
            lines = ((plain, STANDARD), (cell, policy))
            for of, name in lines:
                ax.plot(
                    steps(of, mss)[:shown],
                    color=policies.colour(name),
                    label=NAMES[name],
                    linewidth=1.1,
                )
            ax.set_title(title)
            ax.set_xlabel("acknowledgments")
            ax.set_ylim(0)
        axes[0].set_ylabel("congestion window, segments")
        handles: dict[str, Any] = {}
        for ax in axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        drawn.legend(handles.values(), list(handles), loc="outside upper right", ncols=4)
    return drawn
