"""URLs that machines are given, and where they lead: nowhere is refused, to the machine itself is told apart."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from netboot.addresses import MachineUrl, TlsUrl

_NUMBER = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)\.?$")
"""A host whose last label is a number: to `inet_aton` (and curl) 127.1, 0x7f000001 and 2130706433 are 127.0.0.1."""
_BROADCAST = IPv4Address("255.255.255.255")


def somewhere(url: str) -> str:
    """The URL, whose host is an address or a name that one host can have.

    Raises:
        ValueError: it is 0.0.0.0 or ::, which stand for all addresses of a listener, an address of many hosts, or one
            that is written so that some take it for a name (https://url.spec.whatwg.org/#ends-in-a-number-checker).
    """
    address = _address(url)
    if address is None:
        if _NUMBER.search(urlsplit(url).hostname or ""):
            raise ValueError("its host is a name to some and an address to others: write an address with four numbers")
        return url
    if address.is_unspecified:
        raise ValueError("leads nowhere: its host stands for all addresses of a listener; give the one that is reached")
    if address.is_multicast or address == _BROADCAST:
        raise ValueError("leads nowhere: its host is an address of many hosts; give the one that is reached")
    return url


def own_host(url: str) -> bool:
    """Whether it leads whoever asks to itself: an address of loopback, or `localhost` (RFC 6761, 6.3)."""
    address, host = _address(url), (urlsplit(url).hostname or "").rstrip(".")
    return address.is_loopback if address is not None else host == "localhost" or host.endswith(".localhost")


def _address(url: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


ReachedUrl = Annotated[MachineUrl, AfterValidator(somewhere)]
"""A URL in plain HTTP that machines are given."""
ReachedTlsUrl = Annotated[TlsUrl, AfterValidator(somewhere)]
"""The same, and TLS."""
