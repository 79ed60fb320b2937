"""Asking on a network what firmware would be told there, and whether what it would be told to fetch is there."""

import errno
import re
import secrets
import select
import socket
import struct
from collections.abc import Sequence
from time import monotonic
from urllib.parse import urlsplit

from netboot.dhcp.frames import broadcast, message_in
from netboot.dhcp.packets import LONGEST, Client, NotAnOfferError, Offer, discover, parse

SECONDS, AGAIN_SECONDS, OTHERS_SECONDS = 10.0, 3.0, 2.0
"""For all offers; until those who heard of none are heard again; for further servers once all were answered."""
MOST = 8
"""Offers to one client: a wire with more servers is described well enough by these."""
_FETCH_SECONDS = 5.0
_IPV4 = 0x0800  # ETH_P_IP
_ETHERNET = 1  # ARPHRD_ETHER
_IP_RECVERR = 11  # linux/in.h
_HTTP, _TFTP = 80, 69
_LONGEST_LINE = 1024


def ask(interface: str, clients: Sequence[Client]) -> list[tuple[Offer, ...]]:
    """What each would be offered on this interface, from every server that answers in time.

    Raises:
        PermissionError: not root, and no CAP_NET_RAW. OSError: there is no such interface, or it is down.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((interface, _IPV4))
        *_, kind, mac = wire.getsockname()
        if kind != _ETHERNET:
            raise OSError(errno.EINVAL, "it is no Ethernet")
        first = secrets.randbits(31)
        heard: dict[int, list[Offer]] = {first + number: [] for number in range(len(clients))}
        begun, sent, answered = monotonic(), -SECONDS, -SECONDS
        while (now := monotonic()) < begun + SECONDS:
            if all(heard.values()) and now > answered + OTHERS_SECONDS:
                break
            if now > sent + AGAIN_SECONDS:
                sent = now
                for (transaction, offers), client in zip(heard.items(), clients, strict=True):
                    if not offers:
                        wire.send(broadcast(discover(client, mac, transaction), mac))
            if select.select([wire], [], [], 0.1)[0]:
                answered = monotonic() if _hear(wire.recv(LONGEST + 64), heard) else answered
    return [tuple(offers) for offers in heard.values()]


def _hear(frame: bytes, heard: dict[int, list[Offer]]) -> bool:
    """Whether it is an offer that is new."""
    message = message_in(frame)
    transaction = int.from_bytes(message[4:8])
    offers = heard.get(transaction)
    if offers is None or len(offers) >= MOST:
        return False
    try:
        offer = parse(message, transaction)
    except NotAnOfferError:
        return False
    if any(offer.server == known.server for known in offers):
        return False
    offers.append(offer)
    return True


def why_not_fetched(offer: Offer) -> str:
    """Why what an offer names cannot be fetched from here; "" where it can. No byte of it is kept."""
    try:
        return _http(offer.file) if "://" in offer.file else _tftp(offer.tftp or offer.server, offer.file)
    except TimeoutError:
        return f"no answer within {_FETCH_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _http(url: str) -> str:
    """HEAD, and of the answer its first line: in all within the time, however slowly it comes."""
    parts, until = urlsplit(url), monotonic() + _FETCH_SECONDS
    if parts.scheme != "http" or not parts.hostname or " " in url:
        return "not tried: it is no http:// URL"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with socket.create_connection((parts.hostname, parts.port or _HTTP), timeout=_FETCH_SECONDS) as sock:
        sock.sendall(f"HEAD {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode("ascii"))
        line = b""
        while b"\r\n" not in line and len(line) < _LONGEST_LINE:
            sock.settimeout(max(until - monotonic(), 0.001))
            if not (more := sock.recv(_LONGEST_LINE)):
                break
            line += more
    status = re.match(rb"HTTP/1\.[01] ([0-9]{3})[ \r]", line)
    if status is None:
        return "what answers there does not speak HTTP"
    return "" if status[1] == b"200" else f"HTTP status {status[1].decode()}"


def _tftp(server: str, file: str) -> str:
    """RFC 1350: the first block, or why not. The server is told that we want no more."""
    if not server:  # which a socket takes for this host
        return "it does not say from which server"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(_FETCH_SECONDS)
        sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)  # else nobody hears that the port is closed
        sock.sendto(b"\0\1" + file.encode("ascii", "replace") + b"\0octet\0", (server, _TFTP))
        answer, peer = sock.recvfrom(LONGEST)
        code = struct.unpack_from("!H", answer)[0] if len(answer) >= 4 else 0
        if code == 3:
            sock.sendto(b"\0\5\0\0enough\0", peer)
            return ""
    said = "".join(chr(one) if 0x20 <= one < 0x7F else "?" for one in answer[4:100].partition(b"\0")[0])
    return f"TFTP error: {said}" if code == 5 else "what answers there does not speak TFTP"
