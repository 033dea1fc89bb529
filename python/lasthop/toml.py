"""TOML as a person would write a scenario: sections, and small tables inside a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Characters; a table that would make a longer line becomes a section of its own.
WIDEST = 100


def write(document: Mapping[str, Any]) -> str:
    """The text of a document of plain values: bool, int, float, str, and lists and dicts of them.

    Keys keep their order, except that sections come after what stands outside of them.
    """
    return "\n\n".join(_sections("", "", document)) + "\n"


def _sections(header: str, path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A table under its header, then the sections inside of it."""
    lines: dict[str, str] = {}
    inner: list[tuple[str, str, Mapping[str, Any]]] = []
    for name, value in table.items():
        key, written = _key(name), inline(value)
        place = f"{path}.{key}" if path else key
        wide = not path or len(key) + len(written) > WIDEST
        if wide and isinstance(value, dict):
            inner.append((f"[{place}]", place, value))
        elif wide and value and isinstance(value, list) and all(isinstance(v, dict) for v in value):
            inner += [(f"[[{place}]]", place, entry) for entry in value]
        else:
            lines[key] = written
    width = max(map(len, lines), default=0)
    text = [header] if header else []
    text += [f"{key:<{width}} = {written}" for key, written in lines.items()]
    if text:
        yield "\n".join(text)
    for section in inner:
        yield from _sections(*section)


def inline(value: object) -> str:
    """A value inside of a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {inline(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    # 2e-06 is 2e-6.
    return re.sub(r"e([+-])0*", r"e\1", repr(value))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for the one control character that JSON lets pass.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
