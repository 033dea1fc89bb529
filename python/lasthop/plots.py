"""Pictures. All of them go through `figure`, so that they look alike and two equal runs give two
equal files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop.files import whole
from lasthop.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that stay apart for colour-blind readers, and in print (Okabe and Ito).
BLACK, ORANGE, SKY, GREEN = "#2b2b2b", "#d55e00", "#56b4e9", "#009e73"
BLUE, PURPLE, GREY = "#0072b2", "#cc79a7", "#9a9a9a"

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.labelcolor": "#333333",
    "axes.labelsize": 9.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


@contextmanager
def figure(width: float, height: float, settings: dict[Any, Any] | None = None) -> Iterator[Figure]:
    """An empty figure of so many inches, in the house style, which ends with the block."""
    # Without pyplot: it would keep every figure alive and pick a window system.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_STYLE, **(settings or {})}):
        yield Figure(figsize=(width, height))


def save(figure: Figure, path: Path) -> Path:
    """Writes a picture, of the kind that the file's name says."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE), whole(path) as new:
        figure.savefig(new, dpi=160, format=path.suffix.lstrip(".") or None)
    return path


def svg(figure: Figure, name: str) -> str:
    """The picture as an <svg> element to put into a page; `name` keeps its ids from others'."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :]
    # The glyphs' ids are those of the characters, the same in every picture of the page.
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", element)
    # The page says how wide it is; the height follows.
    return re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*"', r"\1", element, count=2)


def trace(result: Result, title: str) -> Figure:
    """The congestion window of every flow, its round-trip times, and the queues, over time."""
    queues = {name: rows for name, rows in result.queues.items() if rows["packets"].max()}
    with figure(9, 6.5 if queues else 4.6) as drawn:
        panels: Sequence[Axes] = drawn.subplots(3 if queues else 2, 1, sharex=True)
        colours = [BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK]
        for i, (name, rows) in enumerate(result.flows.items()):
            colour = colours[i % len(colours)]
            t = rows["t_s"].to_numpy()
            kilobytes = {
                column: rows[column].to_numpy() / 1e3
                for column in ("cwnd_bytes", "cwnd_plus_dupacked_bytes")
            }
            widened = kilobytes["cwnd_plus_dupacked_bytes"]
            panels[0].step(t, widened, where="post", color=colour, alpha=0.35, linewidth=0.9)
            panels[0].step(t, kilobytes["cwnd_bytes"], where="post", color=colour, label=name)
            panels[1].step(t, rows["srtt_s"].to_numpy() * 1e3, where="post", color=colour)
            rto = rows["rto_s"].to_numpy() * 1e3
            panels[1].step(t, rto, where="post", color=colour, alpha=0.45, linestyle=":")
        panels[0].set_title(title)
        panels[0].set_ylabel("cwnd, kB\n(pale: + dupacked)")
        panels[0].legend(loc="upper right", ncols=4)
        panels[1].set_ylabel("smoothed RTT, ms\n(dotted: RTO)")
        panels[1].set_yscale("log")
        for i, (name, rows) in enumerate(queues.items()):
            colour = colours[i % len(colours)]
            panels[2].step(
                rows["t_s"].to_numpy(),
                rows["packets"].to_numpy(),
                where="post",
                color=colour,
                linewidth=0.9,
                label=name,
            )
        if queues:
            panels[2].set_ylabel("queue, packets")
            panels[2].legend(loc="upper right", ncols=4)
        panels[-1].set_xlabel("time, s")
        panels[-1].set_xlim(left=0)
    return drawn
