"""What of the health checks goes into an image."""

import ast
import sys
from pathlib import Path, PurePosixPath

from images.build.node_files import HEALTH, agent_files, health_files
from images.build.plan import installable
from images.node.health.checks import CHECKS
from images.node.health.runner import AT_ONCE
from images.node.health.service import ASK_SECONDS

PYTHON = {entry.path: entry.content.decode() for entry in health_files() if entry.path.endswith(".py")}


def test_the_package_and_its_units_are_there_and_started() -> None:
    paths = {entry.path for entry in health_files()}
    assert f"{HEALTH}/images/node/health/__main__.py" in paths
    assert {f"{HEALTH}/images/node/health/checks/{check.name.replace('-', '_')}.py" for check in CHECKS} <= paths
    (link,) = [entry for entry in health_files() if entry.link is not None]
    assert (link.path, link.link) == (f"{HEALTH}/images/node/agent", "../../../agent")
    assert sorted(installable(health_files())) == ["netboot-health.service", "netboot-health.timer"]


def test_nothing_but_the_standard_library_and_what_is_in_the_image_is_imported() -> None:
    there = {PurePosixPath(entry.path).with_suffix("").name for entry in agent_files()}
    for path, text in PYTHON.items():
        for node in ast.walk(ast.parse(text)):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(str(node.module))
            for name in names:
                top, *rest = name.split(".")
                known = rest[0] == "node" and (rest[1] == "health" or rest[2] in there) if top == "images" else False
                assert known or top in sys.stdlib_module_names, f"{path} imports {name}"


def test_a_run_in_which_every_check_hangs_ends_before_its_unit_is_ended() -> None:
    unit = next(entry for entry in health_files() if entry.path.endswith(".service")).content.decode()
    (limit,) = [int(line.partition("=")[2]) for line in unit.splitlines() if line.startswith("TimeoutStartSec=")]
    longest = max(check.seconds for check in CHECKS)
    telling = 3 * 15 + 7
    assert ASK_SECONDS + sum(check.seconds for check in CHECKS) / AT_ONCE + longest + telling < limit


def test_every_check_is_described() -> None:
    page = (Path(__file__).parents[3] / "docs/health.md").read_text()
    for check in CHECKS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{check.name}` |")]
        assert f"| {check.severity} | {check.seconds:g} s |" in row
