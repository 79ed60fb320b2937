"""`python3 -m node.health.active [ROOT]`: load this machine with the tests that it is asked for, once, while nothing
else runs here. What was found goes with the next health report."""

import json
import os
import sys
from pathlib import Path

from ...agent.errors import SettingsError
from ...agent.files import put
from ...agent.settings import read_settings
from ..expected import with_class
from ..machine import CannotTellError, Machine
from ..runner import run_all
from ..service import ask
from . import TESTS
from .course import RESULTS, asked, result, workload


def say(line: str) -> None:
    """One line for the journal."""
    print(f"netboot-active: {line}", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    """0: measured, or not asked for. 1: no node of ours, or something runs here: nothing was begun."""
    os.umask(0o022)
    root = Path(argv[1] if len(argv) > 1 else "/").absolute()
    try:
        settings = read_settings(root)
    except SettingsError as error:
        say(str(error))
        return 1
    expected, _ = ask(settings, root)
    machine = Machine(root, with_class(expected, root))
    wanted = asked(machine, TESTS)
    if not wanted.tests:
        say("no test is asked for")
        return 0
    try:
        busy = workload(machine)
    except CannotTellError as error:
        busy = str(error)
    if busy:
        say(f"nothing is measured beside work: {busy}")
        if not (root / RESULTS).exists():
            remedy = "restart the node: tests run before it takes work"
            results = [result(test.name, "unknown", f"not measured: {busy}", remedy) for test in wanted.tests]
            put(root / RESULTS, json.dumps(results).encode(), 0o644)
        return 1
    results = run_all(wanted.tests, machine, at_once=1)
    put(root / RESULTS, json.dumps(results).encode(), 0o644)
    for one in results:
        remedy = f"; {one['remedy']}" if one["remedy"] and one["status"] not in ("pass", "absent") else ""
        say(f"{one['status']}: {one['name']}: {one['summary']}{remedy} ({one['ms'] / 1000:.1f} s)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
