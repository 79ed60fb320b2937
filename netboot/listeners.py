"""Listening sockets: bound by the supervisor, inherited by processes, still there when a process is started again."""

import ctypes
import errno
import socket
import struct
from contextlib import suppress

from netboot.addresses import Address

BACKLOG = 4096

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # asm-generic/socket.h
_NO_NEW_CONNECTIONS = struct.pack(
    "=" + "HBBI" * 5,
    *(0x30, 0, 0, 13),  # the byte of TCP's flags
    *(0x54, 0, 0, 0x12),  # SYN and ACK of them
    *(0x15, 0, 1, 0x02),  # SYN alone: the next, else the one after
    *(0x06, 0, 0, 0),  # drop it
    *(0x06, 0, 0, 0xFFFFFFFF),  # take it
)
"""A classic BPF program (linux/filter.h); on a socket of TCP, offsets count from its header."""
_QUEUE = 24
"""Where a listening socket's TCP_INFO has the length of its queue (`tcpi_unacked`, linux/tcp.h)."""


class ListenError(OSError):
    """An address of the configuration cannot be listened on; the message names its key and the remedy."""


def bind(address: Address, key: str, shared: bool = False) -> socket.socket:
    """A listening socket. `key`: where the address comes from, for messages.

    `shared`: with SO_REUSEPORT, so that each process has a socket of its own and the kernel spreads connections. A port
    that *another* instance shares out is refused all the same: it is first bound without.

    Raises:
        ListenError: taken, not an address of this machine, or not permitted.
    """
    try:
        return _bound(address, reuse=shared)
    except OSError as error:
        raise ListenError(f"{key}: cannot listen on {address}: {_why(error, address)}") from None


class SharedAddress:
    """An address that several sockets of ours share, and nobody else has; also while none of them listens."""

    def __init__(self, address: Address, key: str) -> None:
        """Take it.

        Raises:
            ListenError: see `bind`.
        """
        self._address, self._key = address, key
        bind(address, key).close()
        self._kept = _unbound(address, reuse=True)
        self._kept.bind((address.host, address.port))
        # or another program with that option could listen there, in a moment in which none of ours does (socket(7))
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def listen(self) -> socket.socket:
        """One more socket that listens there.

        Raises:
            ListenError: the machine has lost the address.
        """
        return bind(self._address, self._key, shared=True)


def take_no_more(listener: socket.socket) -> None:
    """Let no further connection begin. Those that a client believes to have are all in `queued`, or soon are.

    A closed listening socket resets what is in its queue; so first this, then the queue, then the end. Who is left out
    asks again after a second, when nothing listens any more, or another service does.
    """
    program = ctypes.create_string_buffer(_NO_NEW_CONNECTIONS, len(_NO_NEW_CONNECTIONS))
    fprog = struct.pack("@HP", 5, ctypes.addressof(program))
    with suppress(OSError):  # as before then: what comes in the last moment is reset
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)


def take_again(listener: socket.socket) -> None:
    """Undo `take_no_more`, which is of the socket, not of the process that ended: for who is started in its place."""
    with suppress(OSError):  # ENOENT: nothing is to be undone
        listener.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def queued(listener: socket.socket) -> int:
    """Connections that the kernel has accepted for us, and we have not taken."""
    info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _QUEUE + 4)
    return int(struct.unpack_from("=I", info, _QUEUE)[0])


def _unbound(address: Address, *, reuse: bool) -> socket.socket:
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
    except BaseException:
        sock.close()
        raise
    return sock


def _bound(address: Address, *, reuse: bool) -> socket.socket:
    sock = _unbound(address, reuse=reuse)
    try:
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
