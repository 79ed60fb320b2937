"""Takes out of a recording what names a machine, its owner or its programs, and keeps what checks go by.

Each name becomes a number, the same one everywhere, in the same form: addresses of the ranges for documentation
(RFC 5737, RFC 3849), MAC addresses that are locally administered. What is scrubbed once stays as it is.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_MAC = re.compile(r"(?<![0-9a-f:])(?:[0-9a-f]{2}[:-]){5,19}[0-9a-f]{2}(?![0-9a-f:])", re.IGNORECASE)
_IPV6 = re.compile(r"(?<![0-9a-f:])(?=[0-9a-f:]*:[0-9a-f:]*:)[0-9a-f:]{2,39}(?![0-9a-f:.])", re.IGNORECASE)
_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_GUID = re.compile(r"(?<![0-9a-f:])(?:[0-9a-f]{4}:){3}[0-9a-f]{4}(?![0-9a-f:])|\b0x[0-9a-f]{16}\b", re.IGNORECASE)
_SERIAL = re.compile(
    r"""(\b(?:serial(?:[ _]?number)?|sn)"?\s*(?::|=| is )\s*"?)(?!N/A|0\b)[A-Za-z0-9_-]+""", re.IGNORECASE
)
_PROGRAM = re.compile(r"(\bname=|^\s+Name\s+: )(?!<program>)[^,\n]+", re.MULTILINE)


class Scrubber:
    """Of one recording: the same name has the same number in all of its parts."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        words = "|".join(re.escape(host) for host in hosts if len(host) > 2)
        self._hosts = re.compile(rf"\b(?:{words})\b", re.IGNORECASE) if words else None
        self._numbers: dict[str, int] = {}

    def clean(self, text: str) -> str:
        """The text without names."""
        if self._hosts is not None:
            text = self._hosts.sub("host", text)
        text = _SERIAL.sub(r"\g<1>0", text)
        text = _PROGRAM.sub(r"\1<program>", text)
        text = _UUID.sub(self._form("00000000-0000-0000-0000-", "{:012x}"), text)
        text = _MAC.sub(self._form("02:00:00:00:", "{:02x}:{:02x}"), text)
        text = _GUID.sub(self._guid, text)
        text = _IPV6.sub(self._ipv6, text)
        return _IPV4.sub(self._ipv4, text)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name.lower(), len(self._numbers) + 1)

    def _form(self, prefix: str, rest: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            if match[0].startswith(prefix):
                return match[0]
            number = self._number(match[0])
            return prefix + (
                rest.format(number) if rest.count("{") == 1 else rest.format(number >> 8 & 255, number & 255)
            )

        return replaced

    def _guid(self, match: re.Match[str]) -> str:
        start = "0x00000000" if match[0].startswith("0x") else "0000:0000:"
        if match[0].startswith(start):
            return match[0]
        number = self._number(match[0])
        return f"{start}{number:08x}" if start[1] == "x" else f"{start}{number >> 16:04x}:{number & 0xFFFF:04x}"

    def _ipv6(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            return match[0]
        if address.is_unspecified or address.is_loopback:
            return match[0]
        if address.ipv4_mapped is not None:
            old = address.ipv4_mapped
            new = ipaddress.IPv6Address(f"::ffff:{self._documented(old)}")
        elif address in ipaddress.IPv6Network("2001:db8::/32") or int(address) >> 16 == 0xFE80 << 96:
            return match[0]
        elif address.is_link_local:
            new = ipaddress.IPv6Address((0xFE80 << 112) + self._number(match[0]))
        else:
            new = ipaddress.IPv6Address((0x20010DB8 << 96) + self._number(match[0]))
        return new.exploded if len(match[0]) == 39 else str(new)

    def _ipv4(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            return match[0]
        return match[0] if address.is_loopback or address.is_unspecified else str(self._documented(address))

    def _documented(self, address: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
        ranges = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
        if any(address in ipaddress.IPv4Network(one) for one in ranges):
            return address
        return ipaddress.IPv4Address(0xC0000200 + self._number(str(address)) % 255)
