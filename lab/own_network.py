"""A network namespace for a block of code: every address of some prefixes is this machine's own, and nobody else's."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from images.run import run

_CLONE_NEWNET = 0x40000000  # linux/sched.h
IP_FREEBIND = 15  # linux/in.h; a socket of either family may then bind to an address that no interface has


@contextmanager
def own_network(*prefixes: str) -> Iterator[None]:
    """The calling thread is in a namespace with nothing but loopback, and so are processes and sockets that it makes.

    Addresses of `prefixes` (such as `2001:db8::/64`) can be listened on and, with IP_FREEBIND, come from. Needs root.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(done: int, what: str) -> None:
        if done != 0:
            raise OSError(ctypes.get_errno(), what)

    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        checked(libc.unshare(_CLONE_NEWNET), "unshare(CLONE_NEWNET)")
        try:
            run(["ip", "link", "set", "lo", "up"])
            for prefix in prefixes:
                run(["ip", "-6" if ":" in prefix else "-4", "route", "add", "local", prefix, "dev", "lo"])
            yield
        finally:
            checked(libc.setns(before, _CLONE_NEWNET), "setns(CLONE_NEWNET)")
    finally:
        os.close(before)
