"""A site's own checks: programs in /etc/netboot/health.d or /usr/lib/netboot/health.d.

The first line that they print is the summary; their exit status is that of Nagios' plugins (Monitoring Plugins
Development Guidelines): 0 pass, 1 warn, 2 fail, all else unknown.
"""

import os
import re

from .machine import Machine
from .result import Check, Result, Status

FOLDERS = ("usr/lib/netboot/health.d", "etc/netboot/health.d")
MOST = 16
"""A report has 64 results at most: ours, those of active/, and one that says how many were left out."""
SECONDS = 30.0
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_STATUS: dict[int, Status] = {0: "pass", 1: "warn", 2: "fail"}


def own_checks(machine: Machine) -> list[Check]:
    """One for each program, by name; in /etc a file of the same name wins. Named `own-<file>`. Of more than MOST the
    rest are not run, which `own` says."""
    paths: dict[str, str] = {}
    for folder in FOLDERS:
        for name in machine.names(folder):
            path = machine.root / folder / name
            if _NAME.fullmatch(name) and path.is_file() and os.access(path, os.X_OK):
                paths[name] = str(path)
    checks = [_check(name, paths[name]) for name in sorted(paths)[:MOST]]
    return [*checks, _too_many(len(paths))] if len(paths) > MOST else checks


def _too_many(count: int) -> Check:
    words = f"{count} checks of the site's own, of which the first {MOST} by name are run"
    return Check("own", "minor", SECONDS, lambda _: Result("unknown", words, "make one program of several"))


def _check(name: str, path: str) -> Check:
    def look(machine: Machine) -> Result:
        output = machine.run(path)
        lines = [line.strip() for line in output.text.splitlines() if line.strip()]
        summary = lines[0] if lines else f"it said nothing; exit status {output.status}"
        return Result(
            _STATUS.get(output.status, "unknown"), summary, facts={"exit_status": output.status, "more": lines[1:9]}
        )

    return Check(f"own-{name}", "major", SECONDS, look)
