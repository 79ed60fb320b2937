"""Addresses and URLs: the forms that a configuration may use (each fault says what is wanted), and peers' addresses."""

import ipaddress
import socket
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, TypeAdapter

from images.values.types import HttpUrl

_URL = TypeAdapter(HttpUrl)
UNKNOWN = "unknown"
"""What `plain_address` makes of what is no address."""


class Address(NamedTuple):
    """Where a listener listens: an IPv4 or IPv6 address (never a name: the service starts without DNS) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def wildcard(self) -> bool:
        """Whether it means every address of the machine."""
        return ipaddress.ip_address(self.host).is_unspecified


def parse_address(value: object) -> Address:
    """`192.0.2.1:8080`, `[2001:db8::1]:8080`, `[::]:8080` → Address.

    Raises:
        ValueError: no address and port, or a host name.
    """
    if isinstance(value, Address):
        return value
    wrong = ValueError("must be 'address:port' or '[IPv6 address]:port', in quotes, port 1 to 65535; not a host name")
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or not 1 <= int(port) <= 65535:
        raise wrong
    try:
        address = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        raise wrong from None
    if bracketed != (address.version == 6):
        raise wrong
    return Address(str(address), int(port))


def plain_address(text: str) -> str:
    """The address of a peer as people write it, one spelling for each: IPv4 in IPv6 (RFC 4291, 2.5.5.2) as IPv4, no
    scope id, lower case; `unknown` for what is no address, so that it is always fit for a log line and JSON."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return UNKNOWN
    return str(getattr(address, "ipv4_mapped", None) or address)


def network_of(address: str) -> str:
    """Whose an address is taken to be: the /64 of one of IPv6, of which one machine may have every address (RFC 4291,
    2.5.4); one of IPv4, and what is no address, is by itself. `address`: as `plain_address` has it."""
    if ":" not in address:
        return address
    prefix = socket.inet_pton(socket.AF_INET6, address)[:8]
    return f"{socket.inet_ntop(socket.AF_INET6, prefix + bytes(8))}/64"


def same_address(text: str, other: str) -> bool:
    """Whether two spellings are of one address; what is no address is the same as nothing."""
    plain = plain_address(text)
    return plain != UNKNOWN and plain == plain_address(other)


def parse_url(value: str) -> str:
    """A URL without trailing slash that is safe in a script and on a kernel command line.

    Raises:
        ValueError: it is not.
    """
    stripped = value.rstrip("/")
    try:
        _URL.validate_python(stripped)
        sound = urlsplit(stripped).port != 0  # reading the port raises where it is above 65535
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(
            "must be http:// or https://, a host or address, and if need be a port and a path; no user, query or spaces"
        )
    return stripped


def parse_machine_url(value: str) -> str:
    """A URL from which machines fetch.

    Raises:
        ValueError: it is not one, or wants TLS, which the boot stage does not speak.
    """
    url = parse_url(value)
    if not url.startswith("http://"):
        raise ValueError("must be http://: machines fetch in plain HTTP and believe signatures, not connections")
    return url


def parse_tls_url(value: str) -> str:
    """A URL over which credentials may travel.

    Raises:
        ValueError: it is not one, or not https.
    """
    url = parse_url(value)
    if not url.startswith("https://"):
        raise ValueError("must be https://: credentials travel here")
    return url


def port_of(url: str) -> int:
    """The port to which a URL of `http` or `https` leads, said or not."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


Url = Annotated[str, AfterValidator(parse_url)]
"""A URL without trailing slash that is safe in a script and on a kernel command line."""
MachineUrl = Annotated[str, AfterValidator(parse_machine_url)]
"""The same, and plain HTTP: for what goes into scripts and onto kernel command lines."""
TlsUrl = Annotated[str, AfterValidator(parse_tls_url)]
"""The same, and TLS: for what carries credentials."""
Listen = Annotated[Address, BeforeValidator(parse_address), PlainSerializer(str)]
