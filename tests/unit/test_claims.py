"""Query strings to claims: nothing that is sent makes an error, and nothing of it survives but what is allowed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.claims import LONGEST_QUERY, parse_claim
from netboot.lifecycle.decide import Claim

UUID = "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"


def test_what_ipxe_sends() -> None:
    query = f"mac=52-54-00-12-34-56&uuid={UUID}&arch=i386&platform=pcbios&serial=VMware-56%204d"
    assert parse_claim(query) == Claim(
        mac="52:54:00:12:34:56", uuid=UUID, serial="VMware-56 4d", architecture="amd64", platform="pcbios"
    )


def test_what_a_machine_without_smbios_sends() -> None:
    query = "mac=52-54-00-12-34-56&uuid=&arch=x86_64&platform=efi&serial="
    assert parse_claim(query) == Claim(mac="52:54:00:12:34:56", architecture="amd64", platform="efi")


@pytest.mark.parametrize(
    ("said", "means"),
    [("x86_64", "amd64"), ("i386", "amd64"), ("arm64", "arm64"), ("aarch64", "arm64"), ("ARM64", "arm64")],
)
def test_architectures(said: str, means: str) -> None:
    assert parse_claim(f"arch={said}").architecture == means


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("mac=nonsense", "mac: not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)"),
        ("mac=ff-ff-ff-ff-ff-ff", "mac: not the address of one network card (a group, zero or broadcast address)"),
        ("uuid=00000000-0000-0000-0000-000000000000", "uuid: a placeholder, which many machines share"),
        ("uuid=x", "uuid: not a UUID (8-4-4-4-12 hexadecimal digits)"),
        ("serial=Default%20string", "serial: a placeholder, which many machines share"),
        ("serial=%24%7Bx%7D", "serial: not a serial number (1 to 63 letters, digits, spaces and ._/+-)"),
        ("serial=a%0Aecho", "serial: not a serial number (1 to 63 letters, digits, spaces and ._/+-)"),
        ("serial=%ff%fe", "serial: not a serial number (1 to 63 letters, digits, spaces and ._/+-)"),
        ("serial=" + "a" * 64, "serial: not a serial number (1 to 63 letters, digits, spaces and ._/+-)"),
        ("arch=arm32", "arch: not an architecture that images are built for (x86_64, i386, arm64)"),
        ("platform=linux", "platform: not a firmware platform (pcbios, efi)"),
        ("mac=" + "x" * LONGEST_QUERY, "everything: the query is longer than 2048 characters"),
    ],
)
def test_what_does_not_pass_is_left_out_with_the_reason(query: str, reason: str) -> None:
    assert parse_claim(query) == Claim(ignored=(reason,))


def test_one_bad_field_leaves_the_others() -> None:
    claim = parse_claim("mac=52-54-00-12-34-56&serial=None")
    assert claim == Claim(mac="52:54:00:12:34:56", ignored=("serial: a placeholder, which many machines share",))


def test_of_a_field_that_is_there_twice_the_first_counts() -> None:
    claim = parse_claim("mac=52-54-00-12-34-56&mac=52-54-00-12-34-57&mac=52-54-00-12-34-58")
    assert claim == Claim(mac="52:54:00:12:34:56", ignored=("mac: given more than once, only the first counts",))


@pytest.mark.parametrize("query", ["", "&&&", "=", "hostname=x&asset=y", "MAC=52-54-00-12-34-56", "mac", "%6d%61%63=x"])
def test_what_is_no_field_of_ours_is_nobodys_business(query: str) -> None:
    assert parse_claim(query) == Claim()


def test_a_plus_is_a_character_of_serial_numbers() -> None:
    assert parse_claim("serial=A+1").serial == "A+1"


def test_a_thousand_fields_cost_what_sixteen_cost() -> None:
    assert parse_claim("&".join(["a=b"] * 400 + ["mac=52-54-00-12-34-56"])) == Claim()


queries = st.lists(
    st.tuples(
        st.sampled_from(["mac", "uuid", "serial", "arch", "platform", "x"]),
        st.one_of(
            st.text(max_size=80), st.sampled_from(["52-54-00-12-34-56", UUID, "i386", "efi", "%", "%zz", "%0d%0a"])
        ),
    ),
    max_size=12,
).map(lambda fields: "&".join(f"{name}={value}" for name, value in fields))


@given(st.one_of(queries, st.text(max_size=400)))
def test_whatever_is_sent_only_what_is_allowed_survives(query: str) -> None:
    claim = parse_claim(query)
    assert re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", claim.mac or "02:00:00:00:00:00")
    assert re.fullmatch(r"[A-Za-z0-9 ._/+-]{1,63}", claim.serial or "-")
    assert claim.uuid is None or re.fullmatch(r"[0-9a-f-]{36}", claim.uuid)
    assert all(re.fullmatch(r"[ -~]{1,120}", reason) for reason in claim.ignored)
    assert len(claim.ignored) <= 10
