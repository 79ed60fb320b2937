"""The one spelling of a peer's address."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.addresses import plain_address, same_address


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:10.0.0.1", "10.0.0.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("0:0:0:0:0:ffff:10.0.0.1%eth0", "10.0.0.1"),
        ("::192.0.2.1", "::c000:201"),
        ("fe80::1%eth0", "fe80::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("", "unknown"),
        ("192.0.2.1:80", "unknown"),
        ("192.0.2.01", "unknown"),
        ("x\n", "unknown"),
    ],
)
def test_addresses_as_people_write_them(text: str, plain: str) -> None:
    assert plain_address(text) == plain


@given(st.ip_addresses(v=4), st.booleans())
def test_ipv4_in_ipv6_is_that_ipv4_address_however_it_is_spelt(address: ipaddress.IPv4Address, upper: bool) -> None:
    high, low = divmod(int(address), 0x10000)
    for spelling in (f"::ffff:{address}", f"::ffff:{high:x}:{low:x}", f"0000:0:0:0:0:ffff:{address}%eth0"):
        assert plain_address(spelling.upper() if upper else spelling) == str(address)
        assert same_address(spelling, str(address))


@given(st.ip_addresses(v=6), st.sampled_from(["", "%eth0", "%2"]))
def test_every_spelling_of_an_ipv6_address_is_one(address: ipaddress.IPv6Address, scope: str) -> None:
    plain = plain_address(str(address))
    assert plain == str(address.ipv4_mapped or address)
    assert plain_address(address.exploded.upper() + scope) == plain == plain_address(plain)


@given(st.text())
def test_what_is_no_address_is_unknown_and_the_same_as_nothing(text: str) -> None:
    plain = plain_address(text)
    assert plain == "unknown" or ipaddress.ip_address(plain)
    assert same_address(text, text) == (plain != "unknown")
