"""Real DHCP servers, in the words of `netboot dhcp config`: what each tells each kind of firmware."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.processes import child
from tests.boot.dhcp_world import BEHIND, SERVERS, World, dnsmasq, world
from tests.tools.namespaces import namespace

pytestmark = pytest.mark.boot
SECONDS = 180.0
"""For a server to answer, beside other work."""


@pytest.fixture(scope="module")
def here(work: Path) -> Iterator[World]:
    """One network and service for all servers, each of which is there for its own tests."""
    (folder := work / "dhcp").mkdir()
    with world(folder) as made:
        yield made


def test_nobody_answers(here: World) -> None:
    """The first of all, as the next is: a server of the fixture below runs until another is wanted."""
    assert [(each["outcome"], each["words"]) for each in here.doctor("c0")] == [
        ("refuse", "no server answered on c0 within 10 s")
    ]


def test_another_server_is_in_the_way(here: World, tmp_path: Path) -> None:
    """A forgotten one on the same wire, that tells UEFI to boot something that is not there."""
    conf, net = tmp_path / "rogue.conf", here.net.inside.rpartition(".")[0]
    conf.write_text(f"dhcp-range={net}.200,{net}.210,255.255.255.0,1h\ndhcp-boot=old.efi\ndhcp-authoritative\n")
    with namespace(tmp_path, "rogue") as inside:
        here.plugged(inside, "rogue0", 9)
        argv = [*dnsmasq(conf), "--no-ping", f"--dhcp-leasefile={tmp_path}/rogue.leases"]
        with (
            here.served("kea"),
            child("rogue", argv, tmp_path / "rogue.log", namespace=inside) as rogue,
        ):
            rogue.output.wait_for("DHCP, IP range", SECONDS)
            said = here.doctor("c0")
    dhcp, url = here.net.inside, here.site.url
    assert ("warn", "servers", f"several give addresses on c0: {dhcp}, {net}.9") in {
        (each["outcome"], each["name"], each["words"]) for each in said
    }
    ipxe = {(each["outcome"], each["words"]) for each in said if each["name"] == "iPXE on BIOS"}
    assert ipxe >= {
        ("ok", f"{dhcp} says {url}/boot.ipxe, which is there"),
        (
            "refuse",
            f"{net}.9 says old.efi by TFTP from {net}.9, and not {url}/boot.ipxe: it would load itself for ever",
        ),
    }
    uefi = [each["words"] for each in said if each["name"] == "UEFI x64, PXE" and each["outcome"] == "refuse"]
    assert uefi == [f"{net}.9 says old.efi by TFTP from {net}.9, which cannot be fetched from here: Connection refused"]


@pytest.fixture(scope="module", params=list(SERVERS))
def server(here: World, request: pytest.FixtureRequest) -> Iterator[str]:
    """A DHCP server that runs."""
    with here.served(request.param):
        yield request.param


@pytest.mark.parametrize("interface", ["c0", "c1"], ids=["on the wire", "behind a relay"])
def test_what_every_kind_of_firmware_is_told(here: World, server: str, interface: str) -> None:
    """By `netboot doctor --network`, which finds all of it in order, and there."""
    del server
    dhcp, url = here.net.inside, here.site.url
    first, *others = here.doctor(interface)
    network = BEHIND if interface == "c1" else here.net.inside.rpartition(".")[0]
    assert re.fullmatch(
        rf"{re.escape(dhcp)} gives addresses on {interface}, like {re.escape(network)}\.1\d\d", first["words"]
    )
    assert [(each["outcome"], each["name"], each["words"]) for each in others] == [
        ("ok", name, f"{dhcp} says {told}, which is there")
        for name, told in (
            ("BIOS, PXE", f"undionly.kpxe by TFTP from {dhcp}"),
            ("UEFI x64, PXE", f"snponly.efi by TFTP from {dhcp}"),
            ("UEFI arm64, PXE", f"ipxe-arm64.efi by TFTP from {dhcp}"),
            ("UEFI x64, HTTP Boot", f"{url}/ipxe/snponly.efi"),
            ("UEFI arm64, HTTP Boot", f"{url}/ipxe/ipxe-arm64.efi"),
            ("iPXE on BIOS", f"{url}/boot.ipxe"),
            ("iPXE on UEFI x64", f"{url}/boot.ipxe"),
        )
    ]
