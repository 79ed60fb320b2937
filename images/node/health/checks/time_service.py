"""Whether a time service holds the clock: the kernel's own word, see `disciplined` in agent/clock.py."""

from ..machine import Machine
from ..result import Check, Result


def look(machine: Machine) -> Result:
    """By adjtimex(2), so any service will do. How far off the clock is, the check clock says."""
    if machine.clock_is_held():
        return Result("pass", "a time service holds the clock")
    remedy = "is chrony or systemd-timesyncd in the image, running, and does it reach its servers? `chronyc sources`"
    return Result("warn", "no time service holds the clock: it drifts", remedy)


CHECK = Check("time-service", "minor", 30, look)
