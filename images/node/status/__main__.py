"""`python3 -m node.status [ROOT]`: write what the last health report says onto this machine's own Node, if that is new
or old; tried again until it is there. ROOT stands for / in tests.

systemd hands over what belongs to root: `$CREDENTIALS_DIRECTORY` has the kubelet's kubeconfig and its pair of
certificate and key, as they were when this was started; after some minutes it ends, and is started with newer ones.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..agent.apiserver import UnusableError, apiserver
from ..agent.errors import AgentError, RefusedError
from ..agent.files import small
from ..agent.net import Server, plain
from ..agent.settings import RUN
from . import written
from .said import Said, said

TRY_SECONDS = 300.0
"""Then what was handed over may be too old to be believed."""
LONGEST_PAUSE = 30.0
_NOT_YET = 404
_PATCH = {"Content-Type": "application/strategic-merge-patch+json"}


def say(line: str) -> None:
    """One line for the journal."""
    print(f"netboot-status: {line}", file=sys.stderr, flush=True)


def uptime() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def report(root: Path) -> Said | None:
    """What the last report says; None: there is none yet."""
    return said(small(root / RUN / "health.json", 64 * 1024) or b"")


def write(server: Server, node: str, credential: str, root: Path, memory: Path) -> bool:
    """Write it, where that is due. Whether there was anything to write.

    Raises:
        AgentError: it is not written.
    """
    now, before = report(root), written.load(memory)
    if now is None or (before is not None and before.still(now, credential, uptime())):
        return False
    clock = time.time()
    new = written.after(before, now, credential, uptime(), clock)
    server.call("PATCH", f"/api/v1/nodes/{node}/status", written.patch(new, now.report, clock), _PATCH)
    written.keep(memory, new)
    say(f"{node}: Healthy is {new.status} ({new.reason}): {new.message}")
    return True


def run(
    root: Path,
    environment: Mapping[str, str],
    pause: Callable[[float], object] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> int:
    """0: the Node says what the last report says. 1: it does not, and is to be tried with what is handed over anew."""
    node, memory = environment.get("NODE_NAME", ""), Path(environment["RUNTIME_DIRECTORY"])
    until, failures, told = uptime() + TRY_SECONDS, 0, ""
    while True:
        try:
            server, credential = apiserver(root, Path(environment["CREDENTIALS_DIRECTORY"]))
            while write(server, node, credential, root, memory):
                pass  # there may be a newer report by now
        except (AgentError, UnusableError) as error:
            failures += 1
            not_yet = isinstance(error, RefusedError) and error.status == _NOT_YET
            words = "the kubelet has not registered this node yet" if not_yet else plain(str(error))
            if words != told:
                say(f"{words}; it is tried again")
            told = words
            wait = min(0.5 * 2.0 ** min(failures, 10), LONGEST_PAUSE, 2.0 if not_yet else LONGEST_PAUSE)
            if isinstance(error, UnusableError) or uptime() + wait > until:
                return 1
            pause(wait * (0.5 + chance() / 2))
        else:
            return 0


def main(argv: list[str]) -> int:
    """0: the Node says what the last report says. 1: it does not."""
    os.umask(0o077)
    return run(Path(argv[1] if len(argv) > 1 else "/").absolute(), os.environ)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
