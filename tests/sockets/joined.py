"""A join process for tests: `python -m tests.sockets.joined` with what it needs as JSON on standard input.

The service's own composition, server and TLS. The cluster is the configuration's, or one in memory, steered by files in
the site's folder:
`down` (its content is why the apiserver does not answer), `held` (calls of this name wait until it is gone; `reached`
says that one does, `stopping` that it still does after SIGTERM), `unfit` (what the self-check refuses), `clock` (ms
ahead).
"""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask

from netboot import logs
from netboot.config import load_config
from netboot.config_nodes import Cluster
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected, Finding
from netboot.process import Heartbeat, end_with
from netboot.processes.join import compose
from netboot.web.join import door, preflight, server
from netboot.web.join.app import create_app
from netboot.web.tls import Certificate
from tests.joining import AUTHORITIES
from tests.kube_fake import FakeCluster
from tests.processes import wait_for


class Steered(FakeCluster):
    """Down, or waiting, while a file says so."""

    folder: Path
    stopping: Callable[[], bool]

    def let_go(self, call: str) -> bool:
        """Whether nobody holds this call; who holds it sees how far it is."""
        if said(self.folder / "held") != call:
            return True
        (self.folder / ("stopping" if self.stopping() else "reached")).touch()
        return False

    def enter(self, call: str, argument: str = "") -> None:
        wait_for(lambda: self.let_go(call))
        self.down = said(self.folder / "down")
        super().enter(call, argument)


def without_the_kernel(prepare: Callable[[socket.socket], None], listener: socket.socket) -> None:
    """Who takes nothing is ended by the server's own watch alone: the kernel's would come first."""
    prepare(listener)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)


def said(path: Path) -> str:
    """A file's content; "" where there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""


class Clock:
    """The machine's, and as far ahead as the file says."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + int(said(self._path) or 0)


def main() -> None:
    """Serve until SIGTERM."""
    spec: dict[str, Any] = json.loads(sys.stdin.read())
    end_with(spec["supervisor"])
    folder = Path(spec["folder"])
    logs.set_up(spec["name"], "join", logs.Log())
    preflight.CHECK_SECONDS = preflight.RECHECK_SECONDS = 0.5  # nobody wants to wait for half a minute here
    if spec["deadlines"] is not None:
        door.HELLO_SECONDS = door.HANDSHAKE_SECONDS = spec["deadlines"]
        server.prepare_listener = partial(without_the_kernel, server.prepare_listener)
        server.HEAD_SECONDS = server.BODY_SECONDS = server.ANSWER_SECONDS = server.TURN_SECONDS = spec["deadlines"]
    config = load_config(folder / "netboot.yaml")
    assert config.join is not None
    certificate = Certificate(config.join.certificate, config.join.key)

    def connect(stopping: Callable[[], bool], name: str, cluster: Cluster) -> Connected:
        fake = Steered()
        fake.folder, fake.stopping = folder, stopping
        target = ClusterAccess(
            name, cluster.endpoints, AUTHORITIES, fake.leases, fake.tokens, fake.nodes, lambda: None, lambda: 0, str
        )

        def check() -> tuple[Finding, ...]:
            fake.enter("check")
            words = said(folder / "unfit")
            return (Finding("renewals", "refuse" if words else "ok", words or "in order", "delete it"),)

        return target, check

    join = config.join

    def make(stopping: Callable[[], bool]) -> Flask:
        connected = partial(connect, stopping) if spec["cluster"] == "memory" else None
        clock = Clock(folder / spec["clock"])
        return create_app(compose(config, spec["index"], certificate, clock, stopping, connected))

    async def serve() -> None:
        listener = socket.socket(fileno=spec["listener"])
        await server.JoinServer(join, certificate, make).serve(
            listener, lambda: (os.write(spec["ready"], b"1"), None)[1], Heartbeat(spec["ready"], "main loop")
        )

    asyncio.run(serve())


if __name__ == "__main__":
    main()
