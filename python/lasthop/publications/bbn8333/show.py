"""The outcome of a simulation, for the terminal."""

from __future__ import annotations

from rich.markup import escape

from lasthop import terminal
from lasthop.publications.rows import Finding
from lasthop.publications.study.words import FEW_SEEDS, interval


def show(experiment: str, found: list[Finding]) -> None:
    """Prints the statements, and whether they hold."""
    shown = terminal.table(f"{experiment}: published and measured")
    shown.add_column("statement", ratio=1)
    shown.add_column("published", justify="right")
    shown.add_column("measured, 95 % interval", justify="right")
    shown.add_column("agrees")
    for finding in found:
        numbers = ("", "")
        if finding.published is not None and finding.measured is not None:
            numbers = (f"{finding.published:g}", interval(finding.measured))
        verdict = "[green]yes[/]" if finding.agrees else "[red]no[/]"
        shown.add_row(escape(finding.claim), *map(escape, numbers), verdict)
    terminal.out().print(shown)
    for finding in found:
        if not finding.agrees:
            terminal.say(f"[red]differs:[/] {escape(finding.claim)} [dim]{escape(finding.why)}[/]")
    agree = sum(finding.agrees is True for finding in found)
    terminal.say(f"[bold]{agree} of {len(found)}[/] published statements hold.")
    if found[0].runs < FEW_SEEDS:
        terminal.say(
            f"[yellow]{found[0].runs} seeds a point: intervals are wide, and a statement may fail"
            " for lack of runs alone.[/]"
        )
