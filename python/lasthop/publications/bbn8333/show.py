"""The outcome of a simulation, for the terminal."""

from __future__ import annotations

from rich.markup import escape

from lasthop import terminal
from lasthop.publications.rows import Finding
from lasthop.publications.study.study import COLOURED
from lasthop.publications.study.verdict import Verdict
from lasthop.publications.study.words import FEW_SEEDS, interval, number


def show(experiment: str, found: list[Finding]) -> None:
    """Prints the statements, and whether they hold."""
    shown = terminal.table(f"{experiment}: published and measured")
    shown.add_column("statement", ratio=1)
    shown.add_column("published", justify="right")
    shown.add_column("measured, 95 % interval", justify="right")
    shown.add_column("factor", justify="right")
    shown.add_column("verdict")
    for finding in found:
        numbers = ("", "", "")
        if finding.published is not None and finding.measured is not None and finding.factor:
            factor = number(finding.factor.value)
            numbers = (f"{finding.published:g}", interval(finding.measured), factor)
        shown.add_row(escape(finding.claim), *map(escape, numbers), COLOURED[finding.verdict])
    terminal.out().print(shown)
    for finding in found:
        if finding.verdict is not Verdict.HOLDS:
            why = f"{escape(finding.claim)} [dim]{escape(finding.why)}[/]"
            terminal.say(f"{COLOURED[finding.verdict]}: {why}")
    count = {of: sum(finding.verdict is of for finding in found) for of in Verdict}
    terminal.say(
        f"[bold]{count[Verdict.HOLDS]} of {len(found)}[/] published statements hold,"
        f" {count[Verdict.DIFFERS]} differ, {count[Verdict.UNDECIDED]} are undecided."
    )
    if found[0].runs < FEW_SEEDS:
        terminal.say(
            f"[yellow]{found[0].runs} seeds a point: intervals are wide, and much stays"
            " undecided.[/]"
        )
