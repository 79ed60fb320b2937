"""Listening sockets: bound by the supervisor, inherited by processes, still there when a process is started again."""

import errno
import socket
from contextlib import suppress

from netboot.addresses import Address

BACKLOG = 4096


class ListenError(OSError):
    """An address of the configuration cannot be listened on; the message names its key and the remedy."""


def bind(address: Address, key: str, shared: bool = False) -> socket.socket:
    """A listening socket. `key`: where the address comes from, for messages.

    `shared`: with SO_REUSEPORT, so that each worker has a socket of its own and the kernel spreads connections. A port
    that *another* instance shares out is refused all the same: it is first bound without.

    Raises:
        ListenError: taken, not an address of this machine, or not permitted.
    """
    try:
        return _bound(address, reuse=shared)
    except OSError as error:
        raise ListenError(f"{key}: cannot listen on {address}: {_why(error, address)}") from None


def bind_all(address: Address, key: str, count: int) -> list[socket.socket]:
    """`count` sockets that share one address, which nobody else has.

    Raises:
        ListenError: see `bind`.
    """
    bind(address, key).close()
    return [bind(address, key, shared=True) for _ in range(count)]


def _bound(address: Address, *, reuse: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # `[::]` means every address, IPv4 too, whatever the machine's bindv6only says
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address.wildcard else 1)
        with suppress(OSError):  # an origin serves many at once; the kernel caps what it does not like
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((address.host, address.port))
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _why(error: OSError, address: Address) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"the port is taken; end what has it (`ss -ltnp 'sport = :{address.port}'`) or choose another"
    if error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine (`ip address` lists them)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            "not permitted; choose a port from 1024 up, or give the service CAP_NET_BIND_SERVICE "
            "(systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE)"
        )
    if error.errno == errno.EAFNOSUPPORT:
        return f"this machine has no IPv6; write '0.0.0.0:{address.port}' for every IPv4 address"
    return str(error.strerror)
