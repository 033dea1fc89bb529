"""The keys of files as Markdown, from their schemas.

python docs/reference.py
    writes those of scenario files into docs/scenarios.md
lasthopd schema | python docs/reference.py gateway
    writes those of lasthopd's configuration into docs/gateway.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "scenarios.md"
GATEWAY = DOCS / "gateway.md"
BEGIN, END = "<!-- keys:begin -->\n", "<!-- keys:end -->\n"

#: What the page itself explains.
ELSEWHERE = ("sweep",)

#: Keys that name which of several tables one is.
NAMES = ("box", "application", "mechanism", "policy")

Schema = dict[str, Any]


def page() -> str:
    """docs/scenarios.md with its keys as they are now."""
    from lasthop import _lasthop as engine

    return with_keys(PAGE, json.loads(engine.schema()))


def with_keys(path: Path, schema: Schema) -> str:
    """A page with the keys of a schema."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{keys(schema)}\n{END}{after}"


def keys(schema: Schema) -> str:
    """A table for every table of a file."""
    parts = []
    shown: list[Schema] = []
    found = list(tables("", schema))
    # The settings of a box's own TCP are those of a flow.
    outside = [schema for name, schema in found if "]." not in name]
    for name, schema in found:
        # What stands in several places is shown where it is first, what has only a name not at all.
        if called(schema) and len(schema["properties"]) == 1:
            continue
        others = [*shown, *outside] if "]." in name else shown
        if any(schema["properties"].items() <= other["properties"].items() for other in others):
            continue
        shown.append(schema)
        heading = "Top level" if not name else f"`{name}`"
        rows = [row(key, of, schema) for key, of in schema["properties"].items()]
        parts.append(f"### {heading}")
        if name and schema["description"]:
            parts.append(schema["description"])
        parts.append("\n".join(["| key | value | meaning |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def tables(name: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Every table with keys that is in a schema, from the outermost, and where it stands."""
    if schema.get("properties"):
        yield name, schema
    # A table whose keys are names of the file's own.
    if isinstance(named := schema.get("additionalProperties"), dict):
        yield from tables(f"{name}.*", named)
    for key, of in schema.get("properties", {}).items():
        if name or key not in ELSEWHERE:
            path = f"{name}.{key}" if name else key
            for inner in forms(of):
                if inner.get("type") == "array":
                    for entry in forms(inner["items"]):
                        yield from tables(path + (called(entry) or ".*"), entry)
                else:
                    yield from tables(path + called(inner), inner)


def called(table: Schema) -> str:
    """What a table is called among others of its kind, if it has a name there."""
    properties: Schema = table.get("properties", {})
    names = (properties[tag]["const"] for tag in NAMES if "const" in properties.get(tag, {}))
    return next((f"[{name}]" for name in names), "")


def forms(schema: Schema) -> list[Schema]:
    """The kinds of value that a schema allows."""
    alternatives: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return [{"description": schema.get("description", ""), **form} for form in alternatives]


def row(key: str, schema: Schema, table: Schema) -> str:
    """A key's line."""
    default = schema.get("default")
    if key in table.get("required", ()):
        meaning = f"*Needed.* {schema.get('description', '')}"
    elif default is not None:
        meaning = f"{schema.get('description', '')} Default: `{written(default)}`."
    else:
        meaning = schema.get("description", "")
    return f"| `{key}` | {value(schema)} | {meaning.strip()} |"


def value(schema: Schema) -> str:
    """What may be written, in a few words."""
    return " or ".join(dict.fromkeys(kind(form) for form in forms(schema)))


def kind(form: Schema) -> str:
    """One kind of value."""
    if "const" in form:
        return f"`{written(form['const'])}`"
    if "enum" in form:
        return ", ".join(f"`{written(word)}`" for word in form["enum"])
    if "examples" in form:
        return f"{form['title']}, such as `{written(form['examples'][0])}`"
    if "title" in form:
        return str(form["title"])
    match form.get("type"):
        case "boolean":
            return "`true`, `false`"
        case "integer" | "number" as number:
            name = "whole number" if number == "integer" else "number"
            low = form.get("minimum", form.get("exclusiveMinimum"))
            high = form.get("maximum")
            return f"{name}, {low} to {high}" if high is not None else name
        case "array" if form["items"] == {"type": "string"}:
            return "list of texts"
        case "array" if form["items"].get("type") == "integer":
            return "list of whole numbers"
        case "array" if "examples" in form["items"]:
            return f"list, each a {kind(form['items'])}"
        case "array" if "enum" in form["items"]:
            return f"list of {kind(form['items'])}"
        case "array":
            return "list of tables"
        case "object":
            return "table"
        case _:
            return "text"


def written(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(of)}" for key, of in value.items()) + " }"
    return json.dumps(value)


if __name__ == "__main__":
    if sys.argv[1:] == ["gateway"]:
        GATEWAY.write_text(with_keys(GATEWAY, json.load(sys.stdin)), encoding="utf-8")
    else:
        PAGE.write_text(page(), encoding="utf-8")
