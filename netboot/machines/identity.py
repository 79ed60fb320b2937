"""What a machine says of itself, normalised: MAC addresses, SMBIOS UUIDs and serial numbers in every spelling."""

import re

_MAC = re.compile(r"[0-9a-f]{12}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/+-]{0,62}")


def parse_mac(text: object) -> str:
    """`52-54-00-AB-CD-EF`, `5254.00ab.cdef`, `525400abcdef`, … → `52:54:00:ab:cd:ef`.

    Raises:
        ValueError: not a MAC address, or a group, zero or broadcast address.
    """
    _refuse_numbers(text)
    digits = re.sub(r"[:.-]", "", text.lower()) if isinstance(text, str) and len(text) <= 23 else ""
    if not _MAC.fullmatch(digits):
        raise ValueError("not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)")
    if int(digits[1], 16) & 1 or digits == "0" * 12:
        raise ValueError("not the address of one network card (a group, zero or broadcast address)")
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def parse_uuid(text: object) -> str:
    """An SMBIOS UUID in lower case.

    Raises:
        ValueError: not a UUID, or one that firmware gives to every machine.
    """
    _refuse_numbers(text)
    uuid = text.strip().lower() if isinstance(text, str) else ""
    if not _UUID.fullmatch(uuid):
        raise ValueError("not a UUID (8-4-4-4-12 hexadecimal digits)")
    if is_placeholder(uuid.replace("-", "")):
        raise ValueError("a placeholder, which many machines share")
    return uuid


def parse_serial(text: object) -> str:
    """A serial number, stripped, as it is.

    Raises:
        ValueError: characters that no serial number has, or one that firmware gives to every machine.
    """
    _refuse_numbers(text)
    serial = text.strip() if isinstance(text, str) else ""
    if not _SERIAL.fullmatch(serial):
        raise ValueError("not a serial number (1 to 63 letters, digits, spaces and ._/+-)")
    if is_placeholder(serial):
        raise ValueError("a placeholder, which many machines share")
    return serial


def _refuse_numbers(value: object) -> None:
    """YAML reads bare digits as a number, and leading zeros would be lost on the way back."""
    if isinstance(value, int | float):
        raise ValueError("a number, where text is wanted: write it in quotes")  # noqa: TRY004 - pydantic collects only ValueError


PLACEHOLDERS = frozenset(
    {
        *("to be filled by o.e.m.", "to be filled by oem", "o.e.m.", "oem", "default string", "not specified"),
        *("not applicable", "none", "n/a", "na", "unknown", "invalid", "empty", "serial", "system serial"),
        *("system serial number", "chassis serial number", "0123456789", "123456789", "1234567890"),
        "03000200040005000006000700080009",
    }
)
"""In lower case, UUIDs without dashes."""


def is_placeholder(text: str) -> bool:
    """Whether firmware vendors ship this text in place of an identity (all one character, `Default string`, …)."""
    folded = " ".join(text.lower().split())
    return folded in PLACEHOLDERS or len(set(folded) - set("-. :")) <= 1
