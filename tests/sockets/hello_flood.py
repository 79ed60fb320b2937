"""Ten thousand hellos of a stranger, from one address, as fast as four connections carry them."""

import json
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.sockets.join_site import JoinSite

SOURCE = "127.0.0.9"
HELLOS = 10_000
WARM = 500
"""Of them before memory is looked at first."""


def memory_kib(pid: int) -> int:
    """What a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


class Flood:
    """`statuses`: how many were answered with each."""

    def __init__(self, site: JoinSite, name: str, message: dict[str, Any]) -> None:
        self._site, self._name, self.statuses = site, name, Counter[int]()
        self.body = json.dumps(message).encode()
        head = f"POST /v1/join/hello HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self.body)}\r\n\r\n"
        self._request = head.encode() + self.body
        self._threads = list[threading.Thread]()

    def warm(self) -> None:
        """The first of them."""
        self._send(WARM)

    def start(self) -> None:
        """Send the rest in the background."""
        self._threads = [threading.Thread(target=self._send, args=((HELLOS - WARM) // 4,)) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the last answer."""
        for thread in self._threads:
            thread.join()

    def _send(self, left: int) -> None:
        while left:
            raw = socket.create_connection(
                ("127.0.0.1", self._site.ports[self._name]), timeout=60, source_address=(SOURCE, 0)
            )
            with self._site.context().wrap_socket(raw, server_hostname="127.0.0.1") as wrapped:
                file = wrapped.makefile("rb")
                for _ in range(min(left, 100)):
                    wrapped.sendall(self._request)
                    status, length = int(file.readline().split()[1]), 0
                    while (line := file.readline()) not in (b"\r\n", b""):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split()[1])
                    file.read(length)
                    self.statuses[status] += 1
                    left -= 1
