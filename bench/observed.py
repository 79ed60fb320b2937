"""The shipped agent, looked at from outside: how long its calls take, and from which address it comes."""

import contextlib
import http.client
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from unittest import mock

from images.node.agent.net import Server
from images.node.agent.request import Issued, Request

PHASES = {"/v1/join/hello": "hello", "/v1/join/attest": "attest"}
CERTIFICATE = "CSR → certificate"


@dataclass
class Seen:
    """Of one machine: seconds of each phase (of the try that succeeded), start and end, lines about failures."""

    address: str
    seconds: dict[str, float] = field(default_factory=dict)
    start: float = 0.0
    end: float = 0.0
    failures: list[str] = field(default_factory=list)


_SEEN: ContextVar[Seen | None] = ContextVar("seen", default=None)
"""Of the thread's machine. The agent's reporter has a thread of its own and comes from loopback's usual address."""


@contextlib.contextmanager
def observed() -> Iterator[Callable[[Seen], object]]:
    """Look at every agent of this process until the block ends; gives what a thread says whose agent it runs."""
    connection, call, obtain = Server._connection, Server.call, Request.obtain

    def from_its_address(self: Server) -> http.client.HTTPConnection:
        to_server, seen = connection(self), _SEEN.get()
        if seen is not None:
            to_server.source_address = (seen.address, 0)  # type: ignore[attr-defined] # what its constructor sets
        return to_server

    def timed_call(
        self: Server, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Any = None
    ) -> Any:
        with _timed(PHASES.get(path)):
            return call(self, method, path, body, headers)

    def timed_obtain(self: Request) -> Issued:
        with _timed(CERTIFICATE):
            return obtain(self)

    with contextlib.ExitStack() as stack:
        for whose, name, instead in (
            (Server, "_connection", from_its_address),
            (Server, "call", timed_call),
            (Request, "obtain", timed_obtain),
        ):
            stack.enter_context(mock.patch.object(whose, name, instead))
        yield _SEEN.set


@contextlib.contextmanager
def _timed(phase: str | None) -> Iterator[None]:
    began = monotonic()
    yield
    seen = _SEEN.get()
    if phase is not None and seen is not None:
        seen.seconds[phase] = monotonic() - began
