"""An address that several sockets of ours share stays ours."""

import errno
import socket

import pytest

from netboot.addresses import Address
from netboot.listeners import SharedAddress
from tests.sites import free_ports


def test_nobody_else_gets_it_while_none_of_ours_listens() -> None:
    """Every worker may be down at once; a stranger with the same option must not get their machines then."""
    [port] = free_ports(1)
    address = SharedAddress(Address("127.0.0.1", port), "provisioning.listen")
    first, second = address.listen(), address.listen()
    first.close()
    second.close()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError) as refused:
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
    assert refused.value.errno == errno.EADDRINUSE
    address.listen().close()
    address._kept.close()
