"""The keys of scenario files as types of Python, from their schema.

python docs/python_keys.py
    writes python/lasthop/keys.py, which type checkers read for `link`, `flow` and `Scenario`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reference import forms

FILE = Path(__file__).resolve().parent.parent / "python" / "lasthop" / "keys.py"

HEAD = '''"""The keys of scenario files as types, made from the schema by docs/python_keys.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict
'''

#: The tables: the name of their type, where they are in the schema, and what is given otherwise:
#: as a positional argument, or as one with a type of its own.
TABLES = (
    ("ScenarioKeys", (), {"title", "duration", "nodes", "links", "flows"}),
    ("LinkKeys", ("properties", "links", "items"), {"between"}),
    ("FlowKeys", ("properties", "flows", "items"), {"from", "to"}),
)

Schema = dict[str, Any]


def module() -> str:
    """The module's text."""
    from lasthop import _lasthop as engine

    parts = [HEAD]
    for name, path, elsewhere in TABLES:
        schema = json.loads(engine.schema())
        for step in path:
            schema = schema[step]
        lines = [f"class {name}(TypedDict, total=False):", f'    """{schema["description"]}"""', ""]
        lines += [
            f"    {key}: {kind(of)}"
            for key, of in schema["properties"].items()
            if key not in elsewhere
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def kind(schema: Schema) -> str:
    """What a key may have; None is as if it were absent."""
    found = dict.fromkeys(one(form) for form in forms(schema))
    words = [word for word in found if word.startswith("Literal")]
    if "str" in found:
        # Any text includes the words.
        found = dict.fromkeys(of for of in found if of not in words)
    return " | ".join([*found, "None"])


def one(form: Schema) -> str:
    """One kind of value."""
    if "const" in form or "enum" in form:
        words = [form["const"]] if "const" in form else form["enum"]
        texts = [word for word in words if not isinstance(word, bool)]
        literal = f"Literal[{', '.join(map(json.dumps, texts))}]"
        return literal if len(texts) == len(words) else f"bool | {literal}"
    match form.get("type"):
        case "boolean":
            return "bool"
        case "integer":
            return "int"
        case "number":
            return "float"
        case "string":
            return "str"
        case "array":
            return "Sequence[Mapping[str, Any]]" if tables(form["items"]) else "Sequence[Any]"
        case "object":
            return "Mapping[str, Any]"
        case other:
            raise ValueError(f"no type for {other!r}: {form}")


def tables(schema: Schema) -> bool:
    """Whether all forms of a value are tables."""
    return all(form.get("type") == "object" for form in forms(schema))


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")
