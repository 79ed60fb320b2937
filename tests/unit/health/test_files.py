"""What of the join agent and the health checks goes into an image, and what it imports."""

import ast
import sys
from pathlib import Path, PurePosixPath

from images.build.node_files import HOME, installable, node_files
from images.node.health import names
from images.node.health.active import TESTS
from images.node.health.checks import CHECKS
from images.node.health.floors import FLOORS
from images.node.health.own import MOST
from images.node.health.runner import AT_ONCE, REAP_SECONDS
from images.node.health.service import ASK_SECONDS
from images.node.health.thresholds import THRESHOLDS

PYTHON = {
    PurePosixPath(entry.path).relative_to(HOME): entry.content.decode()
    for entry in node_files()
    if entry.path.endswith(".py")
}
NODE = {path: text for path, text in PYTHON.items() if path.parts[0] == "node"}


def module(path: PurePosixPath) -> str:
    """`node/health/__init__.py` is `node.health`."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(path: PurePosixPath, text: str) -> set[str]:
    """Modules by their absolute names; relative imports are resolved as Python does."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(path.parts[: len(path.parts) - node.level]) if node.level else ""
            whole = f"{base}.{node.module}" if base and node.module else base or str(node.module)
            modules = {f"{whole}.{alias.name}" for alias in node.names} & {module(other) for other in PYTHON}
            names |= modules or {whole}
    return names


def test_the_packages_and_their_units_are_there_and_started() -> None:
    paths = {entry.path for entry in node_files()}
    assert {f"{HOME}/node/{name}/__main__.py" for name in ("agent", "health", "status")} < paths
    assert {f"{HOME}/node/health/checks/{check.name.replace('-', '_')}.py" for check in CHECKS} < paths
    assert {path.name for path in PYTHON if path.parts[0] == "tokens"} == {"__init__.py", "errors.py", "wire.py"}
    assert {path.parts[0] for path in PYTHON} == {"node", "tokens"}
    assert not [entry.path for entry in node_files() if entry.link is not None]
    units = ["netboot-health.service", "netboot-health.timer", "netboot-join.service"]
    assert sorted(installable(node_files())) == units


def test_what_runs_on_a_machine_imports_itself_the_standard_library_and_tokens_wire_alone() -> None:
    known = {module(path) for path in NODE} | {"tokens.wire"}
    for path, text in NODE.items():
        more = {"cryptography"} if path.parts[1] == "agent" else set()
        for name in imports(path, text) - known:
            assert name.partition(".")[0] in sys.stdlib_module_names | more, f"{path} imports {name}"
    for path in PYTHON.keys() - NODE.keys():
        for name in imports(path, PYTHON[path]):
            assert name == "tokens.errors" or name in sys.stdlib_module_names, f"{path} imports {name}"


def test_our_own_modules_are_imported_by_relative_names_so_that_they_run_where_they_are_shipped() -> None:
    for path, text in NODE.items():
        absolute = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and not node.level]
        assert not [node.module for node in absolute if str(node.module).startswith(("images", "node"))], path


def test_no_two_modules_of_a_machine_import_each_other() -> None:
    ours = {module(path): imports(path, text) for path, text in NODE.items()}
    while ends := {name for name, needs in ours.items() if not needs & ours.keys() - {name}}:
        ours = {name: needs for name, needs in ours.items() if name not in ends}
    assert not ours, f"a circle among {', '.join(sorted(ours))}"


def test_a_run_in_which_every_check_hangs_ends_before_its_unit_is_ended() -> None:
    unit = next(entry for entry in node_files() if entry.path.endswith("/netboot-health.service")).content.decode()
    (limit,) = [int(line.partition("=")[2]) for line in unit.splitlines() if line.startswith("TimeoutStartSec=")]
    longest = max(check.seconds for check in CHECKS)
    telling = 3 * 15 + 7
    assert ASK_SECONDS + sum(check.seconds for check in CHECKS) / AT_ONCE + longest + telling < limit


def test_tests_that_hang_end_before_their_unit_is_ended() -> None:
    unit = next(entry for entry in node_files() if entry.path.endswith("/netboot-active.service")).content.decode()
    (limit,) = [int(line.partition("=")[2]) for line in unit.splitlines() if line.startswith("TimeoutStartSec=")]
    assert ASK_SECONDS + sum(test.seconds + REAP_SECONDS for test in TESTS) < limit


def test_a_report_holds_all_checks_all_tests_and_a_site_s_own() -> None:
    assert len(CHECKS) + len(TESTS) + len(["active", "own"]) + MOST <= 64


def test_every_check_is_described() -> None:
    page = (Path(__file__).parents[3] / "docs/health.md").read_text()
    for check in (*CHECKS, *TESTS):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{check.name}` |")]
        assert f"| {check.severity} | {check.seconds:g} s |" in row


def test_every_threshold_is_described_as_it_is() -> None:
    page = (Path(__file__).parents[3] / "docs/health.md").read_text()
    shown = page.partition("### Thresholds\n")[2].partition("\n## ")[0]
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name}` | {one.value:g} | {one.unit} | {one.what} | {one.source} |" for name, one in THRESHOLDS.items()
    ]


def test_names_are_those_of_the_checks_and_tests_in_their_order() -> None:
    assert [check.name for check in CHECKS] == list(names.CHECKS)
    assert [test.name.removeprefix("active-") for test in TESTS] == list(names.TESTS)
    assert names.ALWAYS in names.CHECKS


def test_every_floor_is_described_as_it_is() -> None:
    page = (Path(__file__).parents[3] / "docs/health.md").read_text()
    shown = page.partition("### Floors\n")[2].partition("\n## ")[0]
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    expected = []
    for name, one in FLOORS.items():
        by_gpu = ", ".join(f"{value:g} ({gpu})" for gpu, value in one.by_gpu.items())
        default = by_gpu or ("none" if one.default is None else f"{one.default:g}")
        expected.append(f"| `{name}` | {default} | {one.what}, {one.unit} | {one.source} |")
    assert rows == expected
