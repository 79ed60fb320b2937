"""`python3 -m node.orders.reboot [ROOT]`: succeed where this machine is ordered to reboot. It can reboot nothing
itself: systemd does, when the unit succeeds. Whoever had it started is not believed; the Node is read again.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..agent.apiserver import UnusableError
from ..agent.errors import AgentError
from ..agent.files import put, small
from ..agent.net import plain
from .read import look, say

TAKEN = "taken"
"""The order that was taken in this boot: none is taken twice."""
WHO = "netboot-reboot"


def run(root: Path, environment: Mapping[str, str]) -> int:
    """0: reboot. 1: do not."""
    taken = Path(environment["RUNTIME_DIRECTORY"]) / TAKEN
    try:
        verdict = look(root, environment)
    except (AgentError, UnusableError) as error:
        say(WHO, f"not rebooted: {plain(str(error))}")
        return 1
    why = "there is no order" if verdict is None else verdict.dead
    if verdict is None or why:
        say(WHO, f"not rebooted: {why}")
        return 1
    if small(taken, 4096) == verdict.slot.encode():
        say(WHO, f"not rebooted: order {verdict.slot} was taken before")
        return 1
    put(taken, verdict.slot.encode(), 0o600)
    say(WHO, f"rebooting, by order {verdict.slot}")
    return 0


def main(argv: list[str]) -> int:
    """0: reboot."""
    os.umask(0o077)
    return run(Path(argv[1] if len(argv) > 1 else "/").absolute(), os.environ)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
