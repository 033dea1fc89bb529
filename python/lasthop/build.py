"""Parts of scenarios, written in Python.

Which keys there are, and what they mean, is what `lasthop schema` says: signatures and help are
made of it, and values are judged where files are, by the engine.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lasthop import _lasthop as engine

#: A value of TOML: bool, int, float, str, and lists and dicts of them.
Plain = Any
Table = dict[str, Plain]

_Function = TypeVar("_Function", bound=Callable[..., object])


def follows(*path: str) -> Callable[[_Function], _Function]:
    """Gives a function whose `**keys` are those of a table of the schema their names and help."""
    schema = json.loads(engine.schema())
    for step in path:
        schema = schema[step]

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        keys = {
            key: of
            for key, of in schema["properties"].items()
            if key.isidentifier() and key not in (*signature.parameters, "between", "from", "to")
        }
        needed = set(schema.get("required", ()))
        named = [
            inspect.Parameter(
                key,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if key in needed else None,
            )
            for key in keys
        ]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *sorted(named, key=lambda p: p.default is None)]
        )
        described = [f"    {key}: {_description(of)}" for key, of in keys.items()]
        text = inspect.cleandoc(function.__doc__ or "")
        heading = [] if "Args:" in text else ["", "Args:"]
        function.__doc__ = "\n".join([text, *heading, *described])
        return function

    return decorate


def _description(schema: Mapping[str, Any]) -> str:
    forms = schema.get("anyOf") or schema.get("oneOf") or [schema]
    example = next((form["examples"][0] for form in forms if "examples" in form), None)
    such = "" if example is None else f" Such as {json.dumps(example)}."
    return f"{schema.get('description', '')}{such}"


@follows("properties", "links", "items")
def link(a: str, b: str, /, **keys: object) -> Table:
    """A link between two nodes, both ways.

    >>> link("router", "phone", rate="4 Mbit/s", delay="15 ms", errors={"bit": 2e-6})

    Args:
        a: A node, from which *forward* is.
        b: Another.
    """
    return {"between": [a, b], **keys}


@follows("properties", "flows", "items")
def flow(sender: str, receiver: str, /, **keys: object) -> Table:
    """A connection, and what it carries.

    >>> flow("server", "phone", name="page", traffic={"size": "3 MB"})

    Args:
        sender: The node that sends data.
        receiver: The node that receives it.
    """
    named = {"name": keys.pop("name")} if "name" in keys else {}
    return {**named, "from": sender, "to": receiver, **keys}


def plain(value: object, path: str) -> Plain:
    """The value as TOML has it; `path` is its place, for error messages.

    Tuples, ranges, and arrays and numbers of numpy and polars become lists and numbers. What is
    None in a table is left out of it.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        table = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise _unfit(path, key, "a key that is text")
            if inner is not None:
                table[key] = plain(inner, f"{path}.{key}" if path else key)
        return table
    if hasattr(value, "tolist"):
        return plain(value.tolist(), path)
    # A set has no order that a second program would find again.
    if isinstance(value, Iterable) and not isinstance(value, (bytes, set, frozenset)):
        return [plain(inner, f"{path}.{index}") for index, inner in enumerate(value)]
    raise _unfit(path, value, 'text, a number, true or false, a list or a table, such as "320 ms"')


def _unfit(path: str, value: object, expected: str) -> engine.ScenarioError:
    message = f"expected {expected}, not {type(value).__name__}"
    error = engine.ScenarioError(f"`{path}`: {message}: {value!r}")
    finding = dict.fromkeys(("file", "line", "column", "key", "value", "message", "help"))
    error.findings = [{**finding, "key": path, "value": repr(value), "message": message}]
    return error
