"""The rules of the lifecycle: docs/lifecycle-rules.md names the tests that show each, and these are there. Rules of
which no other test speaks by name have theirs here."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from netboot.confine.access import access_of
from netboot.join.errors import ConflictError
from netboot.join.node_drains import DrainedNode
from netboot.join.ports import NodeView
from netboot.kube.drains import KubeDrains
from netboot.kube.errors import StatusError
from netboot.kube.manifests import manifests
from netboot.kube.nodes import KubeNodes
from netboot.process import Kind
from tests.sites import make_site

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lifecycle-rules.md"
ROW = re.compile(
    r"^\| (?!rule |---)(?P<rule>[^|]+) \|(?P<holds>[^|]*)\|(?P<shown>[^|]*)\|(?P<left>[^|]*)\|$", re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FLAW = re.compile(r"flaw (\d+)")
KINDS: tuple[Kind, ...] = get_args(Kind)


@cache
def rows() -> tuple[dict[str, str], ...]:
    return tuple(found.groupdict() for found in ROW.finditer(PAGE.read_text(encoding="utf-8")))


@cache
def functions_of(file: str) -> frozenset[str]:
    """The names of all that a file defines."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def missing(text: str) -> list[str]:
    """Tests that a text names and that are not there."""
    named = TEST.findall(text)
    return [f"{file}::{name}" for file, name in named if not (ROOT / file).is_file() or name not in functions_of(file)]


def test_each_rule_has_its_row() -> None:
    numbered = [row["rule"].strip() for row in rows() if row["rule"].strip().startswith("L")]
    assert numbered == [f"L{number}" for number in range(1, 21)]


def test_each_test_that_a_rule_names_is_there() -> None:
    assert {row["rule"]: missing(row["shown"]) for row in rows() if missing(row["shown"])} == {}
    assert missing("`tests/unit/test_docs.py::test_nothing` `tests/unit/none.py::test_x`") == [
        "tests/unit/test_docs.py::test_nothing",
        "tests/unit/none.py::test_x",
    ]


def test_a_rule_without_a_test_says_that_it_does_not_hold_and_by_which_flaw() -> None:
    assert [
        row["rule"]
        for row in rows()
        if bool(row["holds"].strip()) != bool(TEST.findall(row["shown"]))
        or not (row["holds"].strip() or FLAW.findall(row["left"]))
    ] == []
    critiques = (ROOT / "docs" / "critiques.md").read_text(encoding="utf-8").partition("\n## Mended")[0]
    open_flaws = set(re.findall(r"^- (\d+) ·", critiques, re.MULTILINE))
    assert {flaw for row in rows() for flaw in FLAW.findall(row["left"])} - open_flaws == set()


def test_each_rule_was_tried_with_a_real_control_plane_or_in_a_virtual_machine() -> None:
    real = re.compile(r"`tests/(cluster|boot)/")
    without = [row["rule"].strip() for row in rows() if row["rule"].startswith("L") and not real.search(row["shown"])]
    assert without == []


def test_nothing_of_ours_writes_unschedulable() -> None:
    """L4: that field is a person's; we say what we mean by taints. It is read, by `get`, and named nowhere else."""
    read: list[str] = []
    named: list[str] = []
    for path in [*(ROOT / "netboot").rglob("*.py"), *(ROOT / "images" / "node").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = [each.value for each in ast.iter_child_nodes(node) if isinstance(each, ast.Constant)]
            if "unschedulable" in words:
                getter = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
                (read if getter else named).append(path.name)
    assert (sorted(read), named) == (["drains.py", "nodes.py"], [])
    shell = [path for path in (ROOT / "images" / "node").rglob("*") if path.is_file() and path.suffix != ".py"]
    assert [path.name for path in shell if b"unschedulable" in path.read_bytes()] == []


@pytest.mark.parametrize("name", ["intents.db", "rollouts.db"])
def test_what_is_wanted_is_written_by_two_kinds_of_process_alone(tmp_path: Path, name: str) -> None:
    """L8: who observes, or lets machines in, can neither put on nor take off what is wanted."""
    config = make_site(tmp_path)
    file = config.data / name
    writers = set()
    for kind in KINDS:
        access = access_of(kind, kind, "default" if kind in ("approver", "nodes") else "", config)
        if file in access.databases or any(file.is_relative_to(folder) for folder in access.write):
            writers.add(kind)
    assert writers == {"controllers", "management"}


def test_no_account_of_ours_may_impersonate_anybody() -> None:
    """L15: nobody acts with another's rights through us."""
    rules = [rule for each in manifests() for rule in each.get("rules") or ()]
    assert len(rules) > 10
    granted = {verb for rule in rules for verb in rule.get("verbs", ())}
    assert granted & {"impersonate", "*", "escalate", "bind"} == set()


class Patched:
    """A connection whose API server refuses what it is asked to change, for somebody else was there before."""

    api = None

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def patch(self, _path: str, body: dict[str, Any], expected: tuple[int, ...] = ()) -> None:
        assert 409 in expected
        self.bodies.append(body)
        raise StatusError(409, b"{}")


def test_each_write_of_taints_is_of_the_very_list_that_was_read() -> None:
    """L18: lists of taints are replaced whole, so that without the version somebody else's would be lost."""
    asked: Any = Patched()
    taint = {"key": "netboot.dev/held", "value": "Held", "effect": "NoSchedule"}
    read: dict[str, Any] = {"name": "n-1", "uid": "u-1", "version": "7"}
    view = NodeView._make([None] * len(NodeView._fields))._replace(written=(), **read)
    drained = DrainedNode._make([None] * len(DrainedNode._fields))._replace(**read)
    for write in (
        lambda: KubeNodes(asked).taint(view, [taint]),
        lambda: KubeNodes(asked).taint(view, [], {"topology.kubernetes.io/zone": "a"}),
        lambda: KubeDrains(asked).change(drained, [taint], {}),
    ):
        with pytest.raises(ConflictError, match="the Node n-1 was changed by somebody else since"):
            write()
    named = [(body["metadata"]["uid"], body["metadata"]["resourceVersion"]) for body in asked.bodies]
    assert named == [("u-1", "7")] * 3
