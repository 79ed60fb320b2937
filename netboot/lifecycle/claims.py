"""Raw query strings to claims, by allow-list.

Nothing that a client sends makes an error: what does not pass is left out, with the reason.
"""

from collections.abc import Callable
from typing import Literal, cast
from urllib.parse import unquote_to_bytes

from images.values.types import Architecture
from netboot.lifecycle.decide import Claim
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid

LONGEST_QUERY = 2048
"""Characters; an honest query has fewer than 300."""
MOST_FIELDS = 16

_ARCHITECTURES: dict[str, Architecture] = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "i386": "amd64",  # iPXE's BIOS builds are 32-bit and say so on 64-bit machines too (ipxe.org/cfg/buildarch)
    "arm64": "arm64",
    "aarch64": "arm64",
}


def parse_claim(query: str) -> Claim:
    """The claim in the query string of `/v1/boot` (as it came, percent-encoded).

    `mac`, `uuid`, `serial`, `arch`, `platform` are read; other fields are nobody's business. Of a field that is there
    twice the first counts. The reasons in `ignored` are words of our own: nothing of the client's gets into them.
    """
    if len(query) > LONGEST_QUERY:
        return Claim(ignored=(f"everything: the query is longer than {LONGEST_QUERY} characters",))
    values: dict[str, str] = {}
    ignored: list[str] = []
    for field in query.split("&", MOST_FIELDS)[:MOST_FIELDS]:
        name, _, raw = field.partition("=")
        parser = _FIELDS.get(name)
        if parser is None:
            continue
        if name in values:
            ignored.append(f"{name}: given more than once, only the first counts")
            continue
        text = _decode(raw)
        if text == "":
            continue
        try:
            values[name] = parser(text)
        except ValueError as error:
            ignored.append(f"{name}: {error}")
    return Claim(
        mac=values.get("mac"),
        uuid=values.get("uuid"),
        serial=values.get("serial"),
        architecture=cast("Architecture | None", values.get("arch")),
        platform=cast('Literal["pcbios", "efi"] | None', values.get("platform")),
        ignored=tuple(dict.fromkeys(ignored)),
    )


def _decode(raw: str) -> str:
    """Percent-decoded; `+` stays, for it is a character of serial numbers. Bytes that are not ASCII become U+FFFD."""
    return unquote_to_bytes(raw).decode("ascii", "replace") if "%" in raw else raw


def _architecture(text: str) -> str:
    known = _ARCHITECTURES.get(text.lower()) if len(text) <= 16 else None
    if known is None:
        raise ValueError("not an architecture that images are built for (x86_64, i386, arm64)")
    return known


def _platform(text: str) -> str:
    if text not in ("pcbios", "efi"):
        raise ValueError("not a firmware platform (pcbios, efi)")
    return text


_FIELDS: dict[str, Callable[[str], str]] = {
    "mac": parse_mac,
    "uuid": parse_uuid,
    "serial": parse_serial,
    "arch": _architecture,
    "platform": _platform,
}
