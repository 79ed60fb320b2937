"""URLs that machines are given, and where they lead: nowhere is refused, to the machine itself is told apart."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from netboot.addresses import MachineUrl, TlsUrl

_NUMBER = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)\.?$")
"""A host whose last label is a number: to `inet_aton` (and curl) 127.1, 0x7f000001 and 2130706433 are 127.0.0.1."""
_THIS_NETWORK = IPv4Network("0.0.0.0/8")
"""RFC 1122, 3.2.1.3; of what is reserved RFC 1112, 4."""


def somewhere(url: str) -> str:
    """The URL, whose host is an address or a name that one host can have.

    Raises:
        ValueError: it is 0.0.0.0 or ::, which stand for all addresses of a listener, an address that no host has, or
            one that some take for a name (https://url.spec.whatwg.org/#ends-in-a-number-checker).
    """
    address = _address(url)
    if address is None:
        if _NUMBER.search(urlsplit(url).hostname or ""):
            raise ValueError(
                "its host is a name to some and an address to others: write an address as four numbers, each 0 to 255, "
                "without leading zeros"
            )
        return url
    if address.is_unspecified:
        raise ValueError("leads nowhere: its host stands for all addresses of a listener; give the one that is reached")
    if address.is_multicast or (address.version == 4 and (address.is_reserved or address in _THIS_NETWORK)):
        raise ValueError("leads nowhere: its host is an address that no host has; give the one that is reached")
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
