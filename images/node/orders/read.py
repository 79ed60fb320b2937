"""Reading this machine's own Node, for the order that may be on it."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ..agent.apiserver import apiserver
from ..agent.settings import RUN, environment
from .order import Here, Verdict, judged


def say(who: str, line: str) -> None:
    """One line for the journal."""
    print(f"{who}: {line}", file=sys.stderr, flush=True)


def look(root: Path, handed: Mapping[str, str]) -> Verdict | None:
    """What stands on the Node now; None: no order. The apiserver reads it anew from its store for this: without a
    resourceVersion a GET is never answered from a cache (kubernetes.io: API concepts, resource versions).

    Raises:
        AgentError, UnusableError: it cannot be told.
    """
    server, _ = apiserver(root, Path(handed["CREDENTIALS_DIRECTORY"]))
    node = server.call("GET", f"/api/v1/nodes/{handed.get('NODE_NAME', '')}")
    boot = environment(root / RUN / "boot.env")
    return judged(node, Here(boot.get("NAME", ""), boot["BOOT"], time.time()))
