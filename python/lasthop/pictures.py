"""The look of all pictures, and how they become files: two equal runs give two equal ones."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop.files import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that stay apart for colour-blind readers, and in print (Okabe and Ito).
BLACK, ORANGE, SKY, GREEN = "#2b2b2b", "#d55e00", "#56b4e9", "#009e73"
BLUE, PURPLE, GREY = "#0072b2", "#cc79a7", "#9a9a9a"

#: For matplotlib's rc.
STYLE: dict[Any, Any] = {
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

    with mpl.rc_context({**STYLE, **(settings or {})}):
        yield Figure(figsize=(width, height))


def save(figure: Figure, file: str | Path) -> Path:
    """Writes a picture, of the kind that the file's name says."""
    import matplotlib as mpl

    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE), whole(path) as new:
        figure.savefig(new, dpi=160, format=path.suffix.lstrip(".") or None)
    return path


def svg(figure: Figure, name: str) -> str:
    """The picture as an <svg> element to put into a page; `name` keeps its ids from others'."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :]
    # The glyphs' ids are those of the characters, the same in every picture of the page.
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", element)
    # The page says how wide it is; the height follows.
    return re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*"', r"\1", element, count=2)
