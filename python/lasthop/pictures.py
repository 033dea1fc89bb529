"""The look of all pictures, and how they become files: two equal runs give two equal ones."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop.errors import UserError, printable
from lasthop.files import claim, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that stay apart for colour-blind readers, and in print (Okabe and Ito).
BLACK, ORANGE, SKY, GREEN = "#2b2b2b", "#d55e00", "#56b4e9", "#009e73"
BLUE, PURPLE, GREY = "#0072b2", "#cc79a7", "#9a9a9a"

#: Of lines, in this order; on white and on black.
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, GREY)

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


#: What says in a file of each kind that lasthop made it, and takes out when.
_MADE: dict[str, dict[str, str | None]] = {
    ".png": {"Software": "lasthop"},
    ".svg": {"Creator": "lasthop", "Date": None},
    ".pdf": {"Creator": "lasthop", "CreationDate": None},
}


def known(file: str | Path) -> Path:
    """The place of a picture, if its name says of which kind it is."""
    path = Path(file)
    if path.suffix.lower() not in _MADE:
        raise UserError(f"a picture is a .png, .svg or .pdf file, not {str(file)!r}")
    return path


def save(figure: Figure, file: str | Path, *, force: bool = False) -> Path:
    """Writes a picture, of the kind that the file's name says.

    A file that lasthop did not write is replaced only with `force`.
    """
    import matplotlib as mpl

    path = known(file)
    kind = path.suffix.lower()
    claim(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({**STYLE, "svg.hashsalt": "lasthop"}), whole(path) as new:
        said = {"Title": described(figure)} if kind == ".svg" else {}
        figure.savefig(new, dpi=160, format=kind[1:], metadata={**_MADE[kind], **said})
    return path


def text(words: str) -> str:
    """Words of a user's, which matplotlib takes as they are: a $ begins no formula."""
    return printable(words).replace("$", r"\$")


def svg(figure: Figure, name: str, title: str) -> str:
    """The picture as an <svg> element to put into a page; `name` keeps its ids from others'.

    Programs that read pages aloud say its title, and what its panels show.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :]
    # The glyphs' ids are those of the characters, the same in every picture of the page.
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", element)
    # The page says how wide it is, and knows by the width in points how large its words are.
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*"', r"\1", element, count=2)
    labels = f'role="img" aria-labelledby="{name}-title {name}-about"'
    labels += f' style="--points: {72 * figure.get_figwidth():g}"'
    words = (
        f'<title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-about">{html.escape(described(figure))}</desc>'
    )
    return re.sub(r"<svg([^>]*)>", lambda tag: f"<svg {labels}{tag[1]}>{words}", element, count=1)


def described(figure: Figure) -> str:
    """The panels of a figure in words: titles, axes and lines."""
    panels = []
    for ax in figure.axes:
        title, x, y = ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()
        axes = f"{y} over {x}" if x and y else x or y
        lines = ", ".join(dict.fromkeys(ax.get_legend_handles_labels()[1]))
        said = [words for words in (title, axes, f"lines: {lines}" if lines else "") if words]
        panels.append(" ".join("; ".join(said).split()))
    return ". ".join(panel for panel in panels if panel) + "."
