"""How the command ends: the exit status, and one message for whatever went wrong."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from lasthop import _lasthop as engine
from lasthop import terminal
from lasthop.build import is_unicode
from lasthop.errors import INTERRUPTED, RUN_FAILED, USER_ERROR, UserError


def status(app: Callable[[], object]) -> int:
    """Runs the command; gives its exit status. No mistake of the user's ends in a traceback."""
    _streams()
    said = _status(app)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of standard output has enough.
        _discard()
    except OSError as error:
        _discard()
        # Only once.
        if said == 0:
            terminal.say_error(f"cannot write standard output: {error.strerror or error}")
            said = USER_ERROR
    return said


def _status(app: Callable[[], object]) -> int:
    try:
        for word in sys.argv[1:]:
            if not is_unicode(word):
                raise UserError(f"the argument {word!r} is not UTF-8: write it in UTF-8")
            if word.startswith("-") and not word.isprintable() and "\n" not in word:
                raise UserError(f"no option has control characters: {word!r}")
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else RUN_FAILED if ended.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except (UserError, engine.ScenarioError, engine.TestbedError) as error:
        terminal.say_error(str(error))
        return USER_ERROR
    except (engine.RunError, engine.TransferError) as error:
        terminal.say_error(str(error))
        return RUN_FAILED
    except OSError as error:
        terminal.say_error(_words(error))
        return USER_ERROR
    return 0


def _streams() -> None:
    """Standard output and error that can be written to, or say so."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode shows a question mark instead of a bar, and goes on.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


class _Closed(io.TextIOBase):
    """Standard output that was closed before the command began: writing there is an error."""

    def __init__(self) -> None:
        # No other file gets its number.
        os.open(os.devnull, os.O_WRONLY)

    def write(self, _: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _discard() -> None:
    """What standard output still holds goes nowhere, so that the interpreter's end is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def writing(hint: str = "") -> Iterator[None]:
    """A context for writing files: a full disk or a forbidden folder is an error of the user's."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.say("[bold]interrupted[/]")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"{_words(error)}{hint}") from None


def _words(error: OSError) -> str:
    where = f" {str(error.filename)!r}" if error.filename else ""
    remedy = "; make its folder first" if isinstance(error, FileNotFoundError) else ""
    return f"cannot write{where}: {error.strerror or error}{remedy}"
