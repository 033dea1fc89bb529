"""The manual page of the command, made of its help."""

from __future__ import annotations

import re
from collections.abc import Iterator

import typer
from typer.core import TyperGroup

from lasthop._lasthop import __version__


def page(command: TyperGroup) -> str:
    """The page in the language of man(7)."""
    context = typer.Context(command, info_name="lasthop")
    summary, _, rest = (command.help or "").partition("\n\n")
    lines = [
        f'.TH LASTHOP 1 "" "lasthop {__version__}" "User Commands"',
        ".SH NAME",
        f"lasthop \\- {_text(summary)}",
        ".SH SYNOPSIS",
        ".B lasthop",
        ".I COMMAND",
        "[options]",
        ".SH DESCRIPTION",
        _text(rest),
        ".PP",
        _text(command.epilog or ""),
        ".SH COMMANDS",
        *_commands(context, command),
    ]
    return "\n".join(lines) + "\n"


def _commands(context: typer.Context, group: TyperGroup) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = typer.Context(command, info_name=name, parent=context)
        if isinstance(command, TyperGroup):
            yield from _commands(inner, command)
            continue
        usage = " ".join([inner.command_path, *command.collect_usage_pieces(inner)])
        yield f".SS {_text(usage)}"
        for paragraph in (command.help or "").split("\n\n"):
            yield from (_text(paragraph), ".PP")
        for parameter in command.get_params(inner):
            record = parameter.get_help_record(inner)
            if record is not None:
                yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1]))


def _text(words: str) -> str:
    """Text without line breaks of its own, in which nothing is a request or an escape."""
    line = " ".join(words.split()).replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", line)
