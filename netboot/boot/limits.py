"""Clients that misbehave cost others nothing: connections are counted (`netboot.connections`) and have deadlines.

Who ends what:
- idle connections and incomplete headers: aiohttp's keep-alive timer (`idle_seconds`; data that trickles in does not
  move it);
- readers that stand still: the kernel, by TCP_USER_TIMEOUT on the listening socket, which accepted ones inherit
  (tcp(7); it also counts while the reader's window is zero);
- readers of files that dribble: `transfers`;
- slow bodies: `requests`.
"""

import socket
from collections.abc import Awaitable, Callable

from aiohttp import web

from netboot.admission import Gate
from netboot.boot import answers
from netboot.config import Provisioning
from netboot.connections import Limited, connections_for


def prepare_listener(listener: socket.socket, limits: Provisioning) -> None:
    """Options that every accepted connection inherits."""
    listener.setblocking(False)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(limits.send_stall_seconds * 1000))


def gate_of(limits: Provisioning) -> Gate:
    """One worker's limits: its share of the connections in all, and no more than its files are for; those of one
    address may all come to one worker, and of one network half of its share, for a whole site may be in one /64."""
    most, most_each = connections_for(share_of(limits)), limits.max_connections_per_address
    return Gate(most, most_each, max(most_each, most // 2))


def share_of(limits: Provisioning) -> int:
    """Connections of one worker."""
    return -(-limits.max_connections // limits.workers)


def limited(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], limits: Provisioning, gate: Gate
) -> Limited:
    """The server of one worker."""
    return Limited(handler, gate, limits.idle_seconds, answers.text)
