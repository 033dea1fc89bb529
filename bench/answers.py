"""The answers of `lasthop advise` that the book shows, shortened.

python bench/answers.py                writes them anew, between the comments that name them
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pages

PAGE = pages.ROOT / "docs" / "advice.md"
#: Columns of the terminal.
COLUMNS = 80
#: How the list of remedies begins, and its lines before the first of them.
REMEDIES, HEAD = "What would help", 2
#: What is left out.
DOTS = "..."


@dataclass(frozen=True)
class Answer:
    """A command, and what the book shows of its answer."""

    command: str
    #: The beginnings of the paragraphs that are shown.
    paragraphs: Sequence[str]
    #: Words of the remedies that are shown. Others are left out, with dots in their place.
    remedies: Sequence[str] = ()


ANSWERS: Mapping[str, Answer] = {
    "lossy": Answer(
        'lasthop advise --rate "2 Mbit/s" --delay "300 ms" --bit-errors 1e-6',
        ("2 Mbit/s", "today", "What limits", "Best", REMEDIES, "Helps less", "The same TCP with"),
        ('eten = "forward"', 'eten = "backward"', 'congestion = "hybla"'),
    ),
    "bloated": Answer(
        'lasthop advise --rate "2 Mbit/s" --delay "75 ms" --queue "2 MB"',
        ("2 Mbit/s", "today", "The delay", "What limits", "Nothing here"),
    ),
    "latency": Answer(
        'lasthop advise --rate "2 Mbit/s" --delay "75 ms" --queue "2 MB" --goal latency',
        ("What limits", "Best", REMEDIES),
        (
            'congestion = "bbr"',
            'queue = { codel = { interval = "150 ms", target = "15 ms" } }',
            'queue = "12 packets"',
            'queue = "25 packets"',
        ),
    ),
}


def said(command: str) -> str:
    """What a command prints."""
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        env={**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def shortened(text: str, answer: Answer) -> str:
    """The paragraphs and remedies of a text that the book shows.

    Raises `LookupError` if one of them is not there, or not just once.
    """
    paragraphs = text.strip().split("\n\n")
    shown = []
    for beginning in answer.paragraphs:
        number = only(beginning, [paragraph.startswith(beginning) for paragraph in paragraphs])
        is_list = beginning == REMEDIES
        paragraph = paragraphs[number]
        shown.append(with_some(paragraph, answer.remedies) if is_list else paragraph)
    return "\n\n".join(shown)


def with_some(paragraph: str, wanted: Sequence[str]) -> str:
    """The list of remedies with those that have some words, and dots for the others."""
    lines = paragraph.splitlines()
    # A remedy begins with its gain; all its other lines are indented.
    starts = [number for number, line in enumerate(lines) if number >= HEAD and line[0] != " "]
    remedies = [lines[first:end] for first, end in pairwise([*starts, len(lines)])]
    words = [" ".join(" ".join(remedy).split()) for remedy in remedies]
    chosen = {only(of, [of in text for text in words]) for of in wanted}
    shown = lines[:HEAD]
    for number, remedy in enumerate(remedies):
        if number in chosen:
            shown += remedy
        elif shown[-1] != DOTS:
            shown.append(DOTS)
    return "\n".join(shown)


def only(what: str, found: Sequence[bool]) -> int:
    """The place of the only one that was found."""
    if found.count(True) != 1:
        raise LookupError(f"{found.count(True)} have {what!r}: expected one")
    return found.index(True)


def page(answers: Mapping[str, str]) -> str:
    """The page with these answers."""
    return pages.with_tables(PAGE.read_text(encoding="utf-8"), answers, "answer")


def written(answer: Answer) -> str:
    """A command with its answer, as Markdown."""
    return f"```text\n$ {answer.command}\n\n{shortened(said(answer.command), answer)}\n```"


def every() -> dict[str, str]:
    """All answers."""
    return {name: written(answer) for name, answer in ANSWERS.items()}


if __name__ == "__main__":
    PAGE.write_text(page(every()), encoding="utf-8")
