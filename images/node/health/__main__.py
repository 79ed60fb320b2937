"""`python3 -m node.health [ROOT]`: run every check once and tell the service; ROOT stands for / in tests."""

import os
import sys
from pathlib import Path

from ..agent.errors import SettingsError
from ..agent.files import put
from ..agent.settings import RUN, read_settings
from .active import TESTS
from .active.course import kept
from .checks import CHECKS
from .document import document, encoded, worst
from .expected import with_class
from .machine import Machine
from .own import own_checks
from .runner import run_chosen
from .service import ask, tell


def say(line: str) -> None:
    """One line for the journal."""
    print(f"netboot-health: {line}", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    """0: every check gave a result, whatever it is, kept in /run/netboot/health.json. 1: this is no node of ours."""
    os.umask(0o022)
    root = Path(argv[1] if len(argv) > 1 else "/").absolute()
    try:
        settings = read_settings(root)
    except SettingsError as error:
        say(str(error))
        return 1
    expected, offset = ask(settings, root)
    machine = Machine(root, with_class(expected, root), offset)
    results = [*run_chosen([*CHECKS, *own_checks(machine)], machine), *kept(machine, TESTS)]
    report = document(settings, results, expected.keys)
    put(root / RUN / "health.json", encoded(report), 0o644)
    for check in report["checks"]:
        if check["status"] not in ("pass", "absent"):
            remedy = f"; {check['remedy']}" if check["remedy"] else ""
            say(f"{check['status']}: {check['name']}: {check['summary']}{remedy}")
    say(f"{worst(report['checks'])}: {len(report['checks'])} checks")
    failure = tell(settings, report)
    if failure:
        say(f"the service was not told: {failure}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
