"""What each process is made of: one file a kind, and nothing in it that it does not run."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from netboot import processes
from netboot.process import Kind
from tests.processes import environment

KINDS: tuple[str, ...] = get_args(Kind)


def test_every_kind_of_process_has_one_file_and_no_other_file_builds_one() -> None:
    files = {path.stem for path in Path(processes.__file__).parent.glob("*.py")}
    assert files == {*KINDS, "__init__", "leading", "shared", "start", "supervisor"}
    assert [kind for kind in KINDS if not callable(import_module(f"netboot.processes.{kind}").run)] == []


@pytest.mark.parametrize(
    ("kind", "strangers"),
    [
        ("boot", {"flask", "gunicorn", "kubernetes", "tokens", "netboot.kube", "netboot.web"}),
        ("management", {"aiohttp", "kubernetes", "netboot.boot", "netboot.controllers"}),
        ("controllers", {"aiohttp", "flask", "gunicorn", "kubernetes", "netboot.boot", "netboot.web"}),
        (
            "join",
            {"gunicorn", "jwt", "kubernetes", "netboot.boot", "netboot.controllers", "netboot.oidc", "netboot.web.app"},
        ),
        ("approver", {"aiohttp", "flask", "gunicorn", "netboot.boot", "netboot.web"}),
        ("nodes", {"aiohttp", "flask", "gunicorn", "netboot.boot", "netboot.web"}),
        ("fetcher", {"aiohttp", "flask", "gunicorn", "kubernetes", "netboot.boot", "netboot.web"}),
        ("traces", {"aiohttp", "flask", "gunicorn", "kubernetes", "tokens", "netboot.boot", "netboot.web"}),
        ("resources", {"aiohttp", "flask", "gunicorn", "sqlite3", "tokens", "netboot.boot", "netboot.web"}),
        ("shipper", {"aiohttp", "flask", "gunicorn", "tokens", "netboot.boot", "netboot.web"}),
        ("keys", {"aiohttp", "flask", "gunicorn", "sqlite3", "netboot.boot", "netboot.web"}),
        ("pause", {"aiohttp", "flask", "gunicorn", "kubernetes", "sqlite3", "tokens", "netboot.boot", "netboot.web"}),
    ],
)
def test_a_process_loads_nothing_of_the_others(kind: str, strangers: set[str]) -> None:
    program = f"import sys, netboot.processes.{kind}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    others = strangers if kind == "traces" else strangers | {"opentelemetry", "google.protobuf"}
    assert others & set(loaded.stdout.split()) == set()


def test_the_cases_above_are_all_kinds() -> None:
    [mark] = test_a_process_loads_nothing_of_the_others.pytestmark  # type: ignore[attr-defined]
    assert {kind for kind, _ in mark.args[1]} == set(KINDS)
