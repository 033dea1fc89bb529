"""Parts of scenarios, written in Python.

Which keys there are, and what they mean, is what `lasthop schema` says: signatures and help are
made of it, and values are judged where files are, by the engine.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, Unpack

from lasthop import _lasthop as engine
from lasthop.errors import nearest
from lasthop.keys import FlowKeys, LinkKeys

#: A value of TOML: bool, int, float, str, and lists and dicts of them.
Plain = Any
Table = dict[str, Plain]

#: Longer values are not shown whole, characters.
_LONGEST = 60

_Function = TypeVar("_Function", bound=Callable[..., object])


@functools.cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(engine.schema())
    return schema


def follows(*path: str) -> Callable[[_Function], _Function]:
    """Gives a function whose `**keys` are those of a table of the schema their names and help."""
    schema = _schema()
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
def link(a: str, b: str, /, **keys: Unpack[LinkKeys]) -> Table:
    """A link between two nodes, both ways.

    >>> link("router", "phone", rate="4 Mbit/s", delay="15 ms", errors={"bit": 2e-6})

    Args:
        a: A node, from which *forward* is.
        b: Another.
    """
    _check("link", keys, LinkKeys)
    return {"between": [a, b], **keys}


@follows("properties", "flows", "items")
def flow(sender: str, receiver: str, /, **keys: Unpack[FlowKeys]) -> Table:
    """A connection, and what it carries.

    >>> flow("server", "phone", name="page", traffic={"size": "3 MB"})

    Args:
        sender: The node that sends data.
        receiver: The node that receives it.
    """
    _check("flow", keys, FlowKeys)
    named = {"name": keys["name"]} if "name" in keys else {}
    return {**named, "from": sender, "to": receiver, **keys}


def _check(table: str, keys: Iterable[str], known: type) -> None:
    """Refuses a key that there is not."""
    for key in keys:
        if key not in known.__annotations__:
            meant = nearest(key, known.__annotations__)
            hint = (
                f"did you mean `{meant}`?"
                if meant
                else f"expected {', '.join(known.__annotations__)}"
            )
            raise _wrong(f"{table}.{key}", f"unknown key; {hint}", None)


def plain(value: object, path: str) -> Plain:
    """The value as TOML has it; `path` is its place, for error messages.

    Tuples, ranges, and arrays and numbers of numpy and polars become lists and numbers. What is
    None in a table is left out of it.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _unfit(path, value, "an integer of at most 64 bits")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        if not is_unicode(value):
            raise _unfit(path, value, "text in UTF-8")
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


def is_unicode(text: str) -> bool:
    """Not so is what the system makes of arguments that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unfit(path: str, value: object, expected: str) -> engine.ScenarioError:
    shown = repr(value)
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}..."
    return _wrong(path, f"expected {expected}, not {type(value).__name__}: {shown}", shown)


def _wrong(path: str, message: str, value: str | None) -> engine.ScenarioError:
    error = engine.ScenarioError(f"`{path}`: {message}")
    finding = dict.fromkeys(("file", "line", "column", "key", "value", "message", "help"))
    error.findings = [{**finding, "key": path, "value": value, "message": message}]
    return error
