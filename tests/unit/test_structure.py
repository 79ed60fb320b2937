"""What no linter of ours sees of the structure: no circle of modules, no file that is too long to be read at once."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("netboot", "images", "ipxe", "tokens", "lab", "bench")
MOST_LINES = 250
MADE = {"netboot/client/api.py", "netboot/client/models.py"}
"""By a program, from the API's document: nobody has to read them at once."""


def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name; a package by its own."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths)
    return dict(zip(names, paths, strict=True))


def imports(name: str, path: Path, known: Collection[str]) -> Iterator[str]:
    """What a module imports, wherever the import stands: `from a import b` is the module `a.b` where there is one."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = (f"{base}.{alias.name}" for alias in node.names)
            yield from (module if module in known else base for module in inner)


def arrows(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """Module → those of ours that it imports."""
    return {name: {*imports(name, path, known)} & known.keys() - {name} for name, path in known.items()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(arrows(modules())) == []


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of the graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_is_seen(tmp_path: Path) -> None:
    files = {"a": "from b import c", "b": "", "b.c": "def late():\n    from . import d", "b.d": "import a"}
    known = {}
    for name, text in files.items():
        path = known[name] = tmp_path / f"{name}.py"
        path.write_text(text)
    assert set(circle(arrows(known))) == {"a", "b.c", "b.d"}
    known["b.d"].write_text("import json")
    assert circle(arrows(known)) == []


@pytest.mark.parametrize("name", PACKAGES)
def test_no_file_is_too_long_to_be_read_at_once(name: str) -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / name).rglob("*.py")}
    long = {str(path.relative_to(ROOT)) for path, count in lines.items() if count > MOST_LINES}
    assert long - MADE == set()


def test_values_of_sql_are_named_or_in_order() -> None:
    """`?1` is neither to Python's sqlite3: 3.12 warns of it, and 3.14 refuses it."""
    numbered = re.compile(r"\?\d")
    texts = {
        f"{path.relative_to(ROOT)}:{node.lineno}": node.value
        for path in (ROOT / "netboot/stores").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [place for place, text in texts.items() if numbered.search(text)] == []
