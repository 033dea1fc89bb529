"""Files that are written whole or not at all, and what may be replaced by them.

A file that exists is replaced if lasthop wrote it, which is seen by its content: pictures, packets
and Parquet files name lasthop as the program that made them, other files begin in a way that is
lasthop's own. Any other file is replaced only on request (`--force`), and a file that the same
command reads is never replaced.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lasthop.errors import UserError

#: How much of a file's start and end is looked at, bytes.
_SEEN = 64 << 10

_STARTS = re.compile(
    rb"\x89PNG\r\n.{0,200}tEXtSoftware\0lasthop"
    rb"|<\?xml .*<dc:title>lasthop</dc:title>"
    # pcapng: the section's header, with its option shb_userappl.
    rb"|\n\r\r\n.*\x04\0\x07\0lasthop"
    # The log of events; time series; rows of sweeps.
    rb'|\{"t_s":'
    rb"|t_s,"
    rb"|[^\n]*,format,lasthop,scenario\r?\n"
    # results.json, explanations.json, report.html.
    rb'|\[\n\{"publication": "'
    rb'|\[\n \{\n  "(ratio|statement)": "|\[\]\n\Z'
    rb"|<!doctype html>.* lasthop</title>",
    re.DOTALL,
)
_ENDS = re.compile(rb"lasthop.*PAR1\Z|/Creator \(lasthop\).*%%EOF\s*\Z", re.DOTALL)


def is_ours(path: Path) -> bool:
    """Whether lasthop wrote a file, or it is empty: nothing is lost with it."""
    with path.open("rb") as file:
        start = file.read(_SEEN)
        file.seek(max(0, file.seek(0, os.SEEK_END) - _SEEN))
        return not start or bool(_STARTS.match(start) or _ENDS.search(file.read(_SEEN)))


def claim(*outputs: Path, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuses to write to a file that is not lasthop's, or that is also something else.

    Called with all that a command will write, before it does anything.
    """
    read = [path for path in inputs if path.exists()]
    for at, path in enumerate(outputs):
        if path.is_dir():
            raise UserError(f"{str(path)!r} is a folder: name a file in it")
        if any(_same(path, other) for other in outputs[:at]):
            raise UserError(f"{str(path)!r} would be written twice: give each output its own file")
        if not path.is_file():
            continue
        if any(path.samefile(other) for other in read):
            raise UserError(f"{str(path)!r} is read by this command: write to another file")
        if not force and not is_ours(path):
            raise UserError(
                f"{str(path)!r} exists, and lasthop did not write it: write to another file, or"
                " replace it with --force (in Python: force=True)"
            )


def claim_folder(path: Path) -> None:
    """Refuses what is no folder, where one is to be written to."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{str(path)!r} is a file: name a folder")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write to; what is there becomes `path` when all went well, and is gone if not.

    What is no file, such as a pipe, is written to as it is. Where `path` is a link, what it leads
    to is written.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    place = Path(os.path.realpath(path))
    # No name that anybody else has.
    new = place.with_name(f"{place.name}.{secrets.token_hex(4)}.new")
    try:
        new.touch(exist_ok=False)
        yield new
        with new.open("rb") as written:
            os.fsync(written.fileno())
        new.replace(place)
    except OSError as error:
        new.unlink(missing_ok=True)
        of_python = error.filename is None and error.errno not in (None, errno.EPIPE)
        if not of_python and str(new) not in str(error):
            raise
        # The user knows the file by its own name.
        words = error.strerror or str(error).replace(str(new), str(path))
        raise OSError(error.errno, words, str(path)) from None
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@contextmanager
def held(path: Path, refusal: str) -> Iterator[None]:
    """Keeps a file that grows for this process alone.

    It is made if it is not there, and is gone in the end if nothing was written. Raises UserError
    with the words of `refusal` if another process keeps it.
    """
    import fcntl  # Not on every platform.

    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(refusal) from None
            # Who kept it before may have removed it after it was opened here.
            if not path.exists() or not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                continue
            try:
                yield
            finally:
                if path.exists() and path.stat().st_size == 0:
                    path.unlink()
            return


def write_text(path: Path, text: str) -> None:
    """A text file, in UTF-8."""
    with whole(path) as new:
        new.write_text(text, encoding="utf-8")


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
