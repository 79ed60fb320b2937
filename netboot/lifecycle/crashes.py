"""Which boot it was whose kernel crashed. The text is with the boot that found it: its id alone is known for certain.

Firmware keeps what the kernel said last, and no boot id; so whose it is follows from its time and the machine's boots.
"""

from collections.abc import Sequence
from typing import NamedTuple

from netboot.lifecycle.boot_facts import Crash
from netboot.lifecycle.state import is_claim
from netboot.lifecycle.trace import Trace


class Crashed(NamedTuple):
    """A crash, the boot that ended with it as far as can be told, and the boot that found it."""

    crash: Crash
    boot: str | None
    found_by: str


def crashes_of(trace: Trace, boots: Sequence[Trace]) -> list[Crashed]:
    """The crashes that `trace` found, and those that ended it, by time. `boots`: all that are known of its machine."""
    found = [
        Crashed(crash, boot_of(crash, finder, boots), finder.boot)
        for finder in {boot.boot: boot for boot in (*boots, trace)}.values()
        for crash in finder.crashes
    ]
    ours = [crashed for crashed in found if trace.boot in (crashed.boot, crashed.found_by)]
    return sorted(ours, key=lambda crashed: crashed.crash.which)


def boot_of(crash: Crash, finder: Trace, boots: Sequence[Trace]) -> str | None:
    """The last of the machine's boots that began before the crash and before the boot that found it; None: none is
    known (any more)."""
    latest = min(crash.crashed_ms, finder.started_ms)
    before = [boot for boot in boots if boot.boot != finder.boot and boot.started_ms <= latest and not is_claim(boot)]
    return max(before, key=lambda boot: boot.started_ms).boot if before else None
