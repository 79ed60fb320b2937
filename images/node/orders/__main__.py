"""`python3 -m node.orders [ROOT]`: look at this machine's own Node for an order now and then, and have one taken
that is alive. ROOT stands for / in tests.

This account can reboot nothing: it writes the file WANTED, upon which systemd starts `node.orders.reboot`, which looks
again for itself. systemd hands over what belongs to root, as it is at the start; so this ends now and then.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..agent.apiserver import UnusableError
from ..agent.errors import AgentError, RefusedError
from ..agent.files import put
from ..agent.net import plain
from .read import look, say

WANTED = "wanted"
LOOK_SECONDS = 30.0
LIFE_SECONDS = 1800.0
"""Then the kubelet may have a newer certificate."""
WHO = "netboot-orders"


def uptime() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def run(
    root: Path,
    environment: Mapping[str, str],
    pause: Callable[[float], object] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> int:
    """0: it is to be started anew, with what is handed over then. 1: the same, for what was handed over is no use."""
    wanted, until, told = Path(environment["RUNTIME_DIRECTORY"]) / WANTED, uptime() + LIFE_SECONDS, ""
    while uptime() < until:
        pause(LOOK_SECONDS * (0.75 + chance() / 2))  # first, too: the kubelet has the processor now
        words = ""
        try:
            verdict = look(root, environment)
            if verdict is not None and not verdict.dead:
                words = f"order {verdict.slot} is to reboot"
                put(wanted, verdict.slot.encode(), 0o644)
            elif verdict is not None:
                words = f"not taken: {verdict.dead}"
        except UnusableError as error:
            say(WHO, str(error))
            return 1
        except AgentError as error:
            if isinstance(error, RefusedError) and error.status == 401:
                say(WHO, plain(str(error)))
                return 1
            words = f"cannot look for orders: {plain(str(error))}; it is tried again"
        if words and words != told:
            say(WHO, words)
        told = words
    return 0


def main(argv: list[str]) -> int:
    """Always to be started anew."""
    os.umask(0o022)
    return run(Path(argv[1] if len(argv) > 1 else "/").absolute(), os.environ)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
