"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write to; what is there becomes `path` when all went well, and is gone if not.

    What is no file, such as a pipe, is written to as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    new = path.with_name(f"{path.name}.new")
    try:
        yield new
        with new.open("rb") as written:
            os.fsync(written.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """A text file, in UTF-8."""
    with whole(path) as new:
        new.write_text(text, encoding="utf-8")
