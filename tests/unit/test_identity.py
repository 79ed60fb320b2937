"""Identities in every spelling; placeholders never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.identity import is_placeholder, parse_mac, parse_serial, parse_uuid


@pytest.mark.parametrize(
    "spelling",
    [
        "52:54:00:ab:cd:ef",
        "52-54-00-AB-CD-EF",
        "5254.00ab.cdef",
        "525400abcdef",
        "525400ABCDEF",
        "52:54:00:AB:cd:EF",
    ],
)
def test_a_mac_in_every_spelling(spelling: str) -> None:
    assert parse_mac(spelling) == "52:54:00:ab:cd:ef"


@given(st.binary(min_size=6, max_size=6), st.sampled_from([":", "-", ""]), st.booleans())
def test_every_card_address_round_trips(raw: bytes, separator: str, upper: bool) -> None:
    text = separator.join(f"{byte:02x}" for byte in raw)
    spelt = text.upper() if upper else text
    if raw[0] & 1 or not any(raw):
        with pytest.raises(ValueError, match="not the address of one network card"):
            parse_mac(spelt)
    else:
        assert parse_mac(spelt) == raw.hex(":")


@pytest.mark.parametrize("text", ["", "52:54:00:ab:cd", "52:54:00:ab:cd:ef:00", "gg:54:00:ab:cd", "५२:54:00:ab:cd:ef"])
def test_what_is_no_mac(text: str) -> None:
    with pytest.raises(ValueError, match="not a MAC address"):
        parse_mac(text)


@pytest.mark.parametrize("text", ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "01:00:5e:00:00:01", "33:33:00:00:00:01"])
def test_addresses_of_no_one_card(text: str) -> None:
    with pytest.raises(ValueError, match="not the address of one network card"):
        parse_mac(text)


@pytest.mark.parametrize("value", [525400123456, 1.5, True])
def test_bare_numbers_say_how_to_write_them(value: object) -> None:
    for parse in (parse_mac, parse_uuid, parse_serial):
        with pytest.raises(ValueError, match="a number, where text is wanted: write it in quotes"):
            parse(value)


def test_a_uuid_is_lower_case() -> None:
    assert parse_uuid(" 86A9F546-D31B-4BA2-9BBB-303B61BCF8D1 ") == "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"


@pytest.mark.parametrize(
    "text",
    [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009",
    ],
)
def test_a_placeholder_uuid_never_matches(text: str) -> None:
    with pytest.raises(ValueError, match="a placeholder, which many machines share"):
        parse_uuid(text)


@pytest.mark.parametrize(
    "text",
    [
        *("To be filled by O.E.M.", "to  be filled  by o.e.m.", "Default string", "Not Specified", "None", "N/A"),
        *("System Serial Number", "0123456789", "0000000", "xxxxxxxx", "0"),
    ],
)
def test_a_placeholder_serial_never_matches(text: str) -> None:
    assert is_placeholder(text)
    with pytest.raises(ValueError, match="a placeholder, which many machines share"):
        parse_serial(text)


@pytest.mark.parametrize("text", ["CZ1234ABCD", "VMware-56 4d 8a", "S/N.1_2+3", "  PADDED  "])
def test_a_real_serial_stays_as_it_is(text: str) -> None:
    assert parse_serial(text) == text.strip()


@pytest.mark.parametrize("text", ["", "-x", "a" * 64, "a\nb", "${x}", "a;b", "é"])
def test_what_is_no_serial(text: str) -> None:
    with pytest.raises(ValueError, match="not a serial number"):
        parse_serial(text)
