"""What the commands show: tables on standard output, words for people on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich import markup
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lasthop import units
from lasthop.errors import printable
from lasthop.results import Progress as Report
from lasthop.stats import Estimate

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def out() -> Console:
    """Standard output. Wide enough, where it is no terminal, that no table is cut."""
    return _console(stderr=False)


def err() -> Console:
    """Standard error."""
    return _console(stderr=True)


class _Clean:
    """What is printed, without control characters that came from elsewhere than rich."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            yield Segment(text if control else printable(text), style, control)


class _CleanAll(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Clean(of) for of in renderables]


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    console.push_render_hook(_CleanAll())
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 160
    return console


def escape(text: str) -> str:
    """Text of a user's, or of another machine's, which is shown as it is: it has no markup, and
    nothing that a terminal obeys."""
    return markup.escape(printable(text))


def say(words: str) -> None:
    """A sentence for the person at the terminal; it may have rich's markup."""
    err().print(words)


def say_error(message: str) -> None:
    """An error; a report of many lines stands below the word."""
    gap = "\n" if "\n" in message.strip() else " "
    err().print(f"[bold red]error:[/]{gap}{escape(message.rstrip())}", soft_wrap=True)


def written(path: Path, what: str) -> None:
    """Says which file was written."""
    err().print(f"[dim]{what}:[/] {escape(str(path))}", soft_wrap=True)


def table(title: str | None = None, caption: str | None = None) -> Table:
    """An empty table in the house style."""
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="bold",
    )


def bar(share: float, width: int = 24, style: str = "") -> Text:
    """A horizontal bar that fills so much of its width (0 to 1)."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[part] if part else "")
    return Text(drawn.ljust(width), style=style)


def rate(estimate: Estimate) -> str:
    """A mean rate with half the width of its interval, in one unit: 145 ± 2.1 kb/s."""
    mean, unit = units.rate(estimate.value).split()
    if not estimate.half:
        return f"{mean} {unit}"
    scale = estimate.value / float(mean) if float(mean) else 1.0
    return f"{mean} ± {units.significant(estimate.half / scale, 2)} {unit}"


def number(estimate: Estimate) -> str:
    """A mean with half the width of its interval."""
    if not estimate.half:
        return f"{estimate.value:.4g}"
    return f"{estimate.value:.4g} ± {estimate.half:.2g}"


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """A progress bar with an estimate of the time left, on standard error if that is a terminal.

    Gives the function to call with the runs done and all there are.
    """
    console = err()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("[dim]left[/]"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        yield report


@contextmanager
def bytes_moved(what: str, size: int | None) -> Iterator[Callable[[int, list[str]], None]]:
    """A progress bar of bytes, on standard error if that is a terminal; sentences stand above it.

    Gives the function to call with the bytes moved and with new sentences.
    """
    console = err()
    left = (TextColumn("[dim]left[/]"), TimeRemainingColumn()) if size else ()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=False),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        *left,
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(escape(what), total=size)

        def report(moved: int, said: list[str]) -> None:
            for words in said:
                console.print(f"[dim]{escape(words)}[/]", soft_wrap=True)
            shown.update(task, completed=moved)

        yield report
