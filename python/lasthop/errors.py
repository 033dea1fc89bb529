"""Errors that a user can correct, and the exit statuses of the command."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

#: The exit status, besides 0: a check inside a run failed, or a connection; an error that the user
#: can correct (also typer's own errors); Ctrl-C, as in typer.
RUN_FAILED, USER_ERROR, INTERRUPTED = 1, 2, 130


def printable(text: str) -> str:
    """The text with its control characters escaped: none of a user's reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else c.encode("unicode_escape").decode() for c in text)


def _is_shown(c: str) -> bool:
    # Spaces of other widths are harmless, and not "printable".
    return c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs"


class UserError(ValueError):
    """A request of the user cannot be fulfilled; the message says why, in one sentence."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` most likely meant, if any is close.

    Of names with a slash the last part alone may also be meant.
    """
    names = list(known)
    folded = {name.lower(): name for name in names}
    folded |= {name.rpartition("/")[2].lower(): name for name in names}
    matches = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def unknown(kind: str, word: str, known: Iterable[str]) -> UserError:
    """The error for a word that is none of the known ones; it names the nearest, else all."""
    names = sorted(known)
    meant = nearest(word, names)
    hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(names) or 'none'}"
    return UserError(f"no {kind} {word!r}; {hint}")
