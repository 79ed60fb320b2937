"""Each record of an act says what it concerns as it was and as it is, or is named here with the reason why not."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys import ROOT

BOTH = {"before", "after"}
LEFT_OUT = {
    ("declared.py", "declare"): "a list of machines that nobody declared before",
    ("delete_node.py", "delete-node"): "the Node is gone",
    ("freeze.py", "unfreeze"): "the freeze is gone",
    ("join_tokens.py", "token"): "the token is new",
    ("join_tokens.py", "token-revoked"): "the token is gone",
    ("enrolments.py", "import"): "the list changed nothing: all were so already",
    ("operators.py", "act"): "what it left could not be read",
    ("remedies.py", "remedies-pause"): "a line of the log: GET /v1/remedies/pause has it",
    ("remedies.py", "remedy-{}"): "a line of the log: the remedy is on record, with its evidence",
    (
        "holds.py",
        "'hold' if isinstance(step.order, PutOn) else 'unhold'",
    ): "a line: the history has it",
    ("rollout_words.py", "rollout-auto-undo"): "a line of the log: the rollout's history has it",
}
"""File and act of records without `before`, without `after`, or without both."""


def functions(folder: str) -> Iterator[tuple[Path, ast.FunctionDef]]:
    """All of a room."""
    for path in sorted((ROOT / "netboot" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path, node


def called(act: ast.expr) -> str:
    """As it is written: a literal, `{}` where a value is put into it, or the name of what holds it."""
    if isinstance(act, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in act.values)
    return str(act.value) if isinstance(act, ast.Constant) else ast.unparse(act)


def said(call: ast.Call, function: ast.FunctionDef) -> set[str]:
    """Names of what a call is given, also by `**about` of a dictionary that the function writes out."""
    names = {each.arg for each in call.keywords if each.arg is not None}
    names |= {"after"} if isinstance(call.func, ast.Name) and call.func.id == "audit_each" else set()
    unpacked = {ast.unparse(each.value) for each in call.keywords if each.arg is None}
    for node in ast.walk(function):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if targets and ast.unparse(targets[0]) in unpacked:
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert isinstance(node.value, ast.Dict)
            names |= {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    return names


def records() -> dict[tuple[str, str], set[str]]:
    """File and act → what all of its records have."""
    found: dict[tuple[str, str], set[str]] = {}
    for folder in ("web", "controllers"):
        for path, function in functions(folder):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in ("audit", "audit_each"):
                    key, has = (path.name, called(call.args[0])), said(call, function) & BOTH
                    found[key] = found.get(key, BOTH) & has
    return found


def test_each_act_is_recorded_with_what_was_before_and_is_after() -> None:
    found = records()
    assert len(found) > 20
    assert {key for key, has in found.items() if has != BOTH} == LEFT_OUT.keys()


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("def f():\n audit('a', before=x, after=y)", {"before", "after"}),
        ("def f():\n about = {'before': 1}\n audit('a', after=2, **about)", {"before", "after"}),
        ("def f():\n audit_each('a', now, {}, '')", {"after"}),
        ("def f():\n audit('a', before=x)", {"before"}),
    ],
)
def test_the_reading_of_calls(text: str, has: set[str]) -> None:
    [function] = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    [call] = [
        each for each in ast.walk(function) if isinstance(each, ast.Call) and ast.unparse(each.func).startswith("audit")
    ]
    assert said(call, function) & BOTH == has
