"""A time server of the provisioning network (NTP, RFC 5905: client and server mode): the host's clock, by UDP."""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Iterator

from lab.network import Network
from lab.processes import child

READY_SECONDS = 180.0
PORT = 123
SINCE_1900 = 2_208_988_800
"""Seconds between NTP's era and 1970."""
PACKET = struct.Struct("!BBbbII4sQQQQ")


@contextlib.contextmanager
def time_server(network: Network) -> Iterator[str]:
    """Answers at the bridge's address as long as the block lasts; yields the address, for DHCP to name."""
    argv = [sys.executable, "-m", "lab.time_server", network.inside]
    with child("time", argv, network.folder / "time.log", namespace=network.namespace) as running:
        running.output.wait_for("^ready$", READY_SECONDS)
        yield network.inside


def answer(request: bytes, received: float, now: float) -> bytes:
    """What a server of stratum 1 answers; times in seconds since 1970."""
    version = request[0] >> 3 & 7
    asked: int = struct.unpack_from("!Q", request, 40)[0]
    times = (_stamp(received), asked, _stamp(received), _stamp(now))
    return PACKET.pack(version << 3 | 4, 1, 4, -20, 0, 0, b"LAB\0", *times)


def _stamp(seconds: float) -> int:
    return int((seconds + SINCE_1900) * 2**32)


def main() -> None:
    """Serve at the address of the first argument until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((sys.argv[1], PORT))
        print("ready", flush=True)
        while True:
            request, peer = listening.recvfrom(1024)
            received = time.time()
            if len(request) >= PACKET.size:
                listening.sendto(answer(request, received, time.time()), peer)


if __name__ == "__main__":
    main()
