"""URLs that machines are given, and where they lead: nowhere is refused, to the machine itself is told apart."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from netboot.addresses import MachineUrl, TlsUrl


def somewhere(url: str) -> str:
    """The URL, whose host is an address or a name that somebody can have.

    Raises:
        ValueError: it is 0.0.0.0 or ::, which stand for all addresses of a listener.
    """
    address = _address(url)
    if address is not None and address.is_unspecified:
        raise ValueError("leads nowhere: its host stands for all addresses of a listener; give the one that is reached")
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
