"""Whether a time service holds the clock: the kernel's own word, see `disciplined` in agent/clock.py.

Where time servers are named and none holds it, nobody can tell whether the clock is right: the node takes no work yet,
and keeps what it has. Where nobody names any, the clock is the service's as the machine joined (decisions/053, 316).
"""

import re

from ...agent.errors import SettingsError
from ...agent.settings import site_bundle
from ..machine import Machine
from ..result import Check, Result

SOURCES = ("run/chrony-dhcp", "etc/chrony/sources.d")
"""Folders of chronyd's sources, as clock.sh of the feature `time` looks for them."""
_NAMED = re.compile(r"^(?:server|pool|peer) ", re.MULTILINE)
WAIT_SECONDS, EARLY_SECONDS = 60.0, 600.0
"""How long a server has to answer, as with clock.sh; and until when, since the kernel started, it is waited for."""


def look(machine: Machine) -> Result:
    """By adjtimex(2), so any service will do. How far off the clock is, the check clock says."""
    named = _named(machine)
    if machine.clock_is_held(WAIT_SECONDS if named and machine.uptime() < EARLY_SECONDS else 0.0):
        return Result("pass", "a time service holds the clock")
    if not named:
        remedy = "name time servers: `time_servers` in netboot.yaml, or option 42 of DHCP"
        return Result("warn", "no time service holds the clock, and nobody names a time server: it drifts", remedy)
    remedy = "is chrony or systemd-timesyncd in the image, running, and does it reach its servers? `chronyc sources`"
    return Result("unknown", "time servers are named, and no time service holds the clock", remedy)


def _named(machine: Machine) -> bool:
    """Whether the site, DHCP or the image names a time server."""
    files = (f"{at}/{name}" for at in SOURCES for name in machine.names(at) if name.endswith(".sources"))
    if any(_NAMED.search(machine.text(path) or "") for path in files):
        return True
    try:
        return bool(site_bundle(machine.root).get("time_servers"))
    except SettingsError:
        return False  # a machine that the initrd gave no bundle was told of no server


CHECK = Check("time-service", "major", 90, look)
