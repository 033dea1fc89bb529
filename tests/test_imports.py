"""No circle of imports among the Python files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Folders from which modules are imported.
SOURCES = ("python", "bench", "docs", "tests")


def modules(sources: list[Path]) -> dict[str, Path]:
    """Every module's file by the module's name."""
    found = {}
    for source in sources:
        for file in source.rglob("*"):
            # The compiled module has a stub.
            if file.suffix not in (".py", ".pyi"):
                continue
            parts = file.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a file imports, also in functions and for type checkers alone."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{file}: relative import"
            for alias in node.names:
                of = f"{node.module}.{alias.name}"
                yield of if of in files else node.module


def circle(sources: list[Path]) -> list[str]:
    """The modules of a circle, the first of them again at the end; empty if there is none."""
    files = modules(sources)
    graph = {
        name: {of for of in imported(file, files) if of in files} for name, file in files.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_circle_of_imports() -> None:
    assert circle([ROOT / name for name in SOURCES]) == []


@pytest.mark.parametrize(
    "back", ["import pack.a", "from pack import a", "def later():\n    from pack.a import one"]
)
def test_a_circle_is_found(tmp_path: Path, back: str) -> None:
    (tmp_path / "pack").mkdir()
    files = {"__init__": "", "a": "from pack.b import two", "b": "", "c": "import pack.a"}
    for name, text in files.items():
        (tmp_path / "pack" / f"{name}.py").write_text(text)
    assert circle([tmp_path]) == []
    (tmp_path / "pack" / "b.py").write_text(back)
    found = circle([tmp_path])
    assert set(found) == {"pack.a", "pack.b"}
    assert found[0] == found[-1]
