"""DHCP as bytes: questions of firmware, offers of servers, frames; and what `doctor --network` makes of offers."""

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.cli.network import judged
from netboot.dhcp.frames import broadcast, message_in
from netboot.dhcp.packets import CLIENTS, Client, NotAnOfferError, Offer, discover, parse

MAC = bytes.fromhex("525400000001")
SCRIPT = "http://192.0.2.1:8080/boot.ipxe"
BIOS, X64, HTTP, IPXE = CLIENTS[0], CLIENTS[1], CLIENTS[3], CLIENTS[5]
GOOD = Offer("192.0.2.2", "192.0.2.100", "192.0.2.1", "snponly.efi", http=False, menu=False)


def reply(
    options: bytes, *, file: bytes = b"", name: bytes = b"", yours: str = "192.0.2.100", number: int = 7
) -> bytes:
    """As a server writes it; siaddr is 192.0.2.1."""
    addresses = [IPv4Address(text).packed for text in ("0.0.0.0", yours, "192.0.2.1", "0.0.0.0")]
    head = struct.pack("!BBBBIHH4s4s4s4s16s64s128s", 2, 1, 6, 0, number, 0, 0x8000, *addresses, MAC, name, file)
    return head + b"\x63\x82\x53\x63" + b"\x35\x01\x02" + b"\x36\x04\xc0\0\x02\x02" + options + b"\xff"


def test_what_uefi_http_boot_asks() -> None:
    message = discover(HTTP, MAC, 0x01020304)
    assert message[:12].hex() == "010106000102030400008000"
    assert message[12:28] == bytes(16)
    assert message[28:34] == MAC
    assert message[34:236] == bytes(202)
    assert message[236:] == (
        b"\x63\x82\x53\x63"
        b"\x35\x01\x01"
        b"\x37\x09\x01\x03\x06\x0c\x2b\x36\x3c\x42\x43"
        b"\x39\x02\x05\xdc"
        b"\x3c\x21HTTPClient:Arch:00016:UNDI:003016"
        b"\x5d\x02\x00\x10"
        b"\x5e\x03\x01\x03\x10"
        b"\x61\x11\x00" + bytes(10) + MAC + b"\xff"
    )


def test_only_ipxe_says_that_it_is_ipxe() -> None:
    marks = {client.words: b"\x4d\x04iPXE\xaf" in discover(client, MAC, 1) for client in CLIENTS}
    assert [words for words, said in marks.items() if said] == ["iPXE on BIOS", "iPXE on UEFI x64"]


def test_an_offer() -> None:
    assert parse(reply(b"", file=b"snponly.efi\0rest"), 7) == GOOD
    assert parse(reply(b"\x43\x0bsnponly.efi"), 7) == GOOD
    assert parse(reply(b"\x3c\x0aHTTPClient\x43\x03http", file=b"other"), 7)[3:5] == ("htt", True)
    assert parse(reply(b"\x2b\x03\x06\x01\x08"), 7).menu
    assert parse(reply(b"", yours="0.0.0.0"), 7).address == ""


def test_options_in_the_other_fields_and_in_parts() -> None:
    overloaded = reply(b"\x34\x01\x03", file=b"\x43\x03snp\x43\x08only.efi\xff", name=b"\x3c\x0aHTTPClient\xff")
    assert parse(overloaded, 7) == GOOD._replace(http=True)
    assert parse(reply(b"\x34\x01\x01", file=b"\0\0\xff"), 7).file == ""


def test_what_is_printed_is_printable() -> None:
    assert parse(reply(b"\x43\x06a\x1b[2J\xe9"), 7).file == "a?[2J?"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        reply(b"")[:239],
        reply(b"", number=8),
        reply(b"").replace(b"\x63\x82\x53\x63", b"\x63\x82\x53\x64"),
        reply(b"").replace(b"\x35\x01\x02", b"\x35\x01\x05"),
        b"\x01" + reply(b"")[1:],
        reply(bytes(1500)),
    ],
)
def test_what_is_no_offer_to_this_question(message: bytes) -> None:
    with pytest.raises(NotAnOfferError):
        parse(message, 7)


def test_a_frame_and_what_is_in_one() -> None:
    frame = broadcast(b"question", MAC)
    assert frame.hex() == (
        "ffffffffffff5254000000010800450000240000000040117aca00000000ffffffff0044004300100000" + b"question".hex()
    )
    assert message_in(frame) == b"", "what a client says"
    turned = frame[:34] + struct.pack("!HH", 67, 68) + frame[38:]
    assert message_in(turned + b"padding") == b"question"
    assert message_in(turned[:20] + b"\x20\x00" + turned[22:]) == b"", "a fragment"


@given(st.binary(max_size=200))
def test_any_frame_is_read(data: bytes) -> None:
    message_in(data)
    message_in(bytes(12) + b"\x08\x00\x45" + data)


def say(*heard: tuple[Client, tuple[Offer, ...]], fault: str = "") -> list[tuple[str, str, str]]:
    return [(each.outcome, each.name, each.words) for each in judged("eth0", heard, SCRIPT, lambda _: fault)]


def test_what_is_in_order() -> None:
    script = GOOD._replace(file=SCRIPT)
    assert say((X64, (GOOD,)), (IPXE, (script,))) == [
        ("ok", "servers", "192.0.2.2 gives addresses on eth0, like 192.0.2.100"),
        ("ok", "UEFI x64, PXE", "192.0.2.2 says snponly.efi by TFTP from 192.0.2.1, which is there"),
        ("ok", "iPXE on BIOS", f"192.0.2.2 says {SCRIPT}, which is there"),
    ]


def test_a_proxy_beside_a_server_is_in_order() -> None:
    gives, tells = GOOD._replace(file=""), GOOD._replace(server="192.0.2.3", address="", file="", menu=True)
    assert say((X64, (gives, tells))) == [
        ("ok", "servers", "192.0.2.2 gives addresses on eth0, like 192.0.2.100"),
        ("unknown", "UEFI x64, PXE", "192.0.2.3 says a PXE menu (option 43)"),
    ]


def test_what_is_not() -> None:
    nothing, url = GOOD._replace(file=""), GOOD._replace(file="http://192.0.2.1:8080/ipxe/snponly.efi")
    other = GOOD._replace(server="192.0.2.9", file="old.efi", tftp="")
    first = ("ok", "servers", "192.0.2.2 gives addresses on eth0, like 192.0.2.100")
    assert say((X64, ())) == [("refuse", "servers", "no server answered on eth0 within 10 s")]
    assert say((X64, (GOOD._replace(address=""),)))[0] == (
        "refuse",
        "servers",
        "none of 192.0.2.2 gives an address on eth0",
    )
    assert say((X64, (nothing,)), (HTTP, (nothing,))) == [
        first,
        ("refuse", "UEFI x64, PXE", "192.0.2.2 names nothing to boot"),
        ("warn", "UEFI x64, HTTP Boot", "192.0.2.2 names nothing to boot"),
    ]
    assert say((X64, (GOOD,)), (IPXE, ()))[2] == ("refuse", "iPXE on BIOS", "no server answered it")
    assert say((HTTP, (url,)))[1:] == [
        (
            "refuse",
            "UEFI x64, HTTP Boot",
            "192.0.2.2 does not repeat HTTPClient (option 60): no firmware takes its offer",
        )
    ]
    assert say((IPXE, (GOOD,)))[1:] == [
        (
            "refuse",
            "iPXE on BIOS",
            f"192.0.2.2 says snponly.efi by TFTP from 192.0.2.1, and not {SCRIPT}: it would load itself for ever",
        )
    ]
    assert say((X64, (GOOD,)), fault="TFTP error: file not found")[1][2] == (
        "192.0.2.2 says snponly.efi by TFTP from 192.0.2.1, which cannot be fetched from here: TFTP error: file not "
        "found"
    )
    assert say((X64, (GOOD, other)))[:2] == [
        ("warn", "servers", "several give addresses on eth0: 192.0.2.2, 192.0.2.9"),
        (
            "warn",
            "UEFI x64, PXE",
            (
                "is told different things: 192.0.2.2: snponly.efi by TFTP from 192.0.2.1; "
                "192.0.2.9: old.efi by TFTP from 192.0.2.9"
            ),
        ),
    ]


@pytest.mark.parametrize(
    ("client", "file", "said"),
    [
        (BIOS, "undionly.kpxe", ""),
        (BIOS, "own/loader.0", ""),
        (X64, "boot/ipxe.efi", ""),
        (HTTP, "http://192.0.2.1/ipxe/snponly.efi", ""),
        (BIOS, SCRIPT, "it fetches by TFTP, and takes no URL"),
        (X64, SCRIPT, "it fetches by TFTP, and takes no URL"),
        (HTTP, "snponly.efi", "it fetches by HTTP, and takes a URL alone"),
        (BIOS, "boot/snponly.efi", "it cannot run that, but undionly.kpxe"),
        (X64, "undionly.kpxe", "it cannot run that, but snponly.efi"),
        (X64, "ipxe-arm64.efi", "it cannot run that, but snponly.efi"),
        (HTTP, "http://192.0.2.1/ipxe/ipxe-arm64.efi", "it cannot run that, but snponly.efi"),
    ],
)
def test_what_is_there_and_of_no_use_to_who_is_told_it(client: Client, file: str, said: str) -> None:
    outcome, _, words = say((client, (GOOD._replace(file=file, http=client.http),)))[1]
    assert (outcome, words.endswith(f": {said}" if said else ", which is there")) == ("refuse" if said else "ok", True)
