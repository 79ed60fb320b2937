"""A public name says what it is for. A method of an interface of ours says it there, and need not say it again."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("netboot", "images", "ipxe", "tokens", "lab", "bench")
EMPTY = re.compile(r"(?:(?:see|as|like)\s+)?\S*", re.IGNORECASE)
"""One word, or only the name of another place."""
Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def named(tree: ast.Module) -> Iterator[tuple[Named, ast.AST]]:
    """Public classes, functions and methods, each with what it stands in."""
    parents: list[ast.AST] = [tree]
    while parents:
        parent = parents.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, Named) and not node.name.startswith("_"):
                yield node, parent
                parents += [node] if isinstance(node, ast.ClassDef) else []


def interfaces(trees: list[ast.Module]) -> set[str]:
    """Names of the methods of all Protocols."""
    return {
        node.name
        for tree in trees
        for node, parent in named(tree)
        if isinstance(parent, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in parent.bases)
    }


def silent(tree: ast.Module, declared: set[str]) -> list[str]:
    """Public names of a module whose docstring is missing or says nothing, with their lines."""
    faults = [] if ast.get_docstring(tree) or not tree.body else ["1: the module has no docstring"]
    for node, parent in named(tree):
        text = ast.get_docstring(node)
        if text is None and not (isinstance(parent, ast.ClassDef) and node.name in declared):
            faults.append(f"{node.lineno}: {node.name} has no docstring")
        elif text is not None and EMPTY.fullmatch(text):
            faults.append(f"{node.lineno}: {node.name} says nothing: {text}")
    return faults


def test_public_names_say_what_they_are_for() -> None:
    trees = {path: ast.parse(path.read_text()) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
    declared = interfaces(list(trees.values()))
    faults = {str(path.relative_to(ROOT)): silent(tree, declared) for path, tree in trees.items()}
    assert {path: lines for path, lines in faults.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('def f(): "See `X.f`."', ["2: f says nothing: See `X.f`."]),
        ('def f(): "Nothing."', ["2: f says nothing: Nothing."]),
        ("class C: pass", ["2: C has no docstring"]),
        ("class C:\n 'A thing.'\n def f(self): pass\n def stated(self): pass", ["4: f has no docstring"]),
        ("def _f(): pass", []),
    ],
)
def test_a_docstring_that_says_nothing_is_none(text: str, faults: list[str]) -> None:
    assert silent(ast.parse(f'"""A module."""\n{text}'), {"stated"}) == faults
