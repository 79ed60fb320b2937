"""The import contracts of pyproject.toml: docs/architecture.md tells each, and each catches what it is there for."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS: list[dict[str, Any]] = PYPROJECT["tool"]["importlinter"]["contracts"]
PACKAGES: list[str] = PYPROJECT["tool"]["importlinter"]["root_packages"]

VIOLATIONS = {
    "the service sits on three libraries": ("ipxe/values.py", "images.errors"),
    "inside the service": ("netboot/machines/match.py", "netboot.stores.lock"),
    "inside the images": ("images/values/files.py", "images.artifact.manifest"),
    "what runs on machines stands alone": ("images/node/health/result.py", "images.errors"),
    "nobody imports what runs on machines": ("images/build/initrd.py", "images.node.health.result"),
    "images and scripts know no credentials": ("images/registry/push.py", "tokens.wire"),
    "the boot server holds no credentials": ("netboot/boot/reports.py", "netboot.kube.leases"),
    "the service never builds": ("netboot/controllers/fetcher.py", "images.build.pipeline"),
    "the client imports nothing of the service": ("netboot/client/base.py", "netboot.stores.lock"),
    "commands ask by the client": ("netboot/cli/boot.py", "requests"),
    "Flask stays in web": ("netboot/lifecycle/views.py", "werkzeug.exceptions"),
    "aiohttp stays in the servers of machines": ("netboot/web/channels.py", "aiohttp"),
    "the Kubernetes client stays in kube": ("netboot/join/issue.py", "kubernetes.client"),
    "the registry's library stays in registry": ("images/store/store.py", "dxf"),
    "processes are started behind three doors": ("images/registry/pull.py", "subprocess"),
    "what is installed imports nothing of the workshop": ("netboot/cli/serve.py", "lab.servers"),
}
"""For each contract the file that breaks it, and what that file must not import."""
NEW_ROOMS = {"inside the service": "netboot/attic.py", "inside the images": "images/attic.py"}
"""For each exhaustive contract a module that has no floor in it."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages' Python files and the contracts, to be broken and mended again."""
    copy = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = copy / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    shutil.copyfile(ROOT / "pyproject.toml", copy / "pyproject.toml")
    return copy


def checked(tree: Path) -> str:
    """What import-linter has to say about a tree."""
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    return done.stdout


def broken(report: str, contract: str) -> str:
    """What a report says of one broken contract; empty: it is kept."""
    sections = re.split(r"\n\n(?=[^\n]+\n-+\n)", report.partition("Broken contracts")[2])
    return next((section for section in sections if section.strip().startswith(f"{contract}\n")), "")


def test_every_contract_is_kept(tree: Path) -> None:
    assert re.search(r"Contracts: \d+ kept, 0 broken\.", report := checked(tree)), report


def test_every_contract_has_a_violation() -> None:
    assert [contract["name"] for contract in CONTRACTS] == list(VIOLATIONS)
    assert {contract["name"] for contract in CONTRACTS if contract.get("exhaustive")} == set(NEW_ROOMS)


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_violation_is_caught(contract: str, tree: Path) -> None:
    name, imported = VIOLATIONS[contract]
    file = tree / name
    source = file.read_text()
    file.write_text(f"{source}\nimport {imported}\n")
    try:
        report = checked(tree)
    finally:
        file.write_text(source)
    importer, line = name.removesuffix(".py").replace("/", "."), source.count("\n") + 2
    external = imported.partition(".")[0] not in PACKAGES
    shown = imported.partition(".")[0] if external else imported
    assert f"{importer} -> {shown} (l.{line})" in broken(report, contract), report


@pytest.mark.parametrize("contract", NEW_ROOMS)
def test_a_room_without_a_floor_is_caught(contract: str, tree: Path) -> None:
    file = tree / NEW_ROOMS[contract]
    file.touch()
    try:
        report = checked(tree)
    finally:
        file.unlink()
    assert "attic" in broken(report, contract), report


@pytest.mark.parametrize(("part", "needed"), [("agent", {"tokens", "cryptography"}), ("health", set())])
def test_what_runs_on_machines_needs_what_its_image_has(part: str, needed: set[str]) -> None:
    """Debian's Python has no more than comes with it; an image that joins also has python3-cryptography."""
    imported = set()
    for file in (ROOT / "images" / "node" / part).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(str(node.module).partition(".")[0])
    assert imported - sys.stdlib_module_names == needed


def test_the_prose_has_every_contract_in_the_same_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition("## Import contracts\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\d+\. \*\*(.+?)\*\*: \S", section, re.MULTILINE) == [
        contract["name"] for contract in CONTRACTS
    ]
