"""Which tests a machine is asked for, whether it may run them now, and what is kept of them for the boot."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...agent.files import small
from ...agent.settings import RUN
from ..machine import Machine
from ..result import STATUSES, Check, listed

RESULTS = RUN / "health-active.json"
ARGUMENT = "netboot.active="
PREFIX = "active-"
BUSY_UNITS = ("kubelet.service", "slurmd.service")
"""What takes work, and starts after this."""
_WORK = {"kubepods.slice": "Pods", "kubepods": "Pods", "system.slice/slurmstepd.scope": "jobs of Slurm"}
"""Cgroups in which work goes on, also while the kubelet or slurmd is stopped. Source: Slurm,
"Control Group v2 plugin"."""
_NEEDED = {"name", "status", "severity", "ms", "summary"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Tests in their order; those that the class skips; words that name none."""

    tests: tuple[Check, ...] = ()
    skipped: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()


def asked(machine: Machine, tests: Sequence[Check]) -> Asked:
    """By `netboot.active=` of the kernel command line, the last one, and the class. Never raises."""
    said = [word for word in (machine.text("proc/cmdline") or "").split() if word.startswith(ARGUMENT)]
    words = said[-1].removeprefix(ARGUMENT).split(",") if said else []
    names = [test.name.removeprefix(PREFIX) for test in tests]
    skip = machine.expected.hardware.skip
    chosen = [test for test in tests if "all" in words or test.name.removeprefix(PREFIX) in words]
    strange = [word for word in words if word not in (*names, "all", "")]
    strange += [word for word in skip if said and word not in names]
    return Asked(
        tuple(test for test in chosen if test.name.removeprefix(PREFIX) not in skip),
        tuple(test.name for test in chosen if test.name.removeprefix(PREFIX) in skip),
        tuple(dict.fromkeys(strange)),
    )


def workload(machine: Machine) -> str:
    """What could take work, or has; "": nothing. Sources: Linux Documentation/admin-guide/cgroup-v2.rst
    (`cgroup.events`, `populated`); systemctl(1), is-active."""
    for group, what in _WORK.items():
        if "populated 1" in (machine.text(f"sys/fs/cgroup/{group}/cgroup.events") or ""):
            return f"{what} run here"
    states = machine.run("systemctl", "is-active", *BUSY_UNITS).text.split()
    busy = [unit for unit, state in zip(BUSY_UNITS, states, strict=False) if state not in ("inactive", "failed")]
    if len(states) != len(BUSY_UNITS):
        return "systemd does not say whether the kubelet runs"
    return f"{listed(busy)} runs" if busy else ""


def result(name: str, status: str, summary: str, remedy: str = "", severity: str = "major") -> dict[str, Any]:
    """One that no test gave, in the form of the document."""
    return {
        "name": name,
        "severity": severity,
        "ms": 0,
        "status": status,
        "summary": summary,
        "remedy": remedy,
        "facts": {},
    }


def said_of(wanted: Asked) -> list[dict[str, Any]]:
    """What needs no measuring: tests that the class skips, words that name none."""
    found = [result(name, "absent", "the class skips it") for name in wanted.skipped]
    if wanted.strange:
        words = f"this image has no test called {listed(list(wanted.strange))}"
        found.append(result("active", "unknown", words, "see netboot.active of the profile, and `active` of the class"))
    return found


def kept(machine: Machine, tests: Sequence[Check]) -> list[dict[str, Any]]:
    """What the report of this boot has of the tests it was asked for: measured, or not yet. Never raises."""
    wanted = asked(machine, tests)
    try:
        before = json.loads(small(machine.root / RESULTS, 1024 * 1024) or b"[]")
    except (ValueError, RecursionError):
        before = []
    known = {
        one["name"]: one
        for one in (before if isinstance(before, list) else [])
        if isinstance(one, dict)
        and one.keys() >= _NEEDED
        and isinstance(one["name"], str)
        and one["status"] in STATUSES
    }
    not_yet = "not measured in this boot, or not yet"
    remedy = "wait; then `systemctl status netboot-active`"
    measured = [known.get(test.name) or result(test.name, "unknown", not_yet, remedy) for test in wanted.tests]
    return [*measured, *said_of(wanted)]
