"""Real DHCP servers, in the words of `netboot dhcp config`: what each tells each kind of firmware, and real firmware
that comes by it to the script. Until then only: what a script does is other tests'."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import arm64
from lab.machines import machine
from lab.processes import child
from tests.boot.data_centre import hardware
from tests.boot.dhcp_world import BEHIND, DPUS, SERVERS, World, dnsmasq, world
from tests.tools.namespaces import namespace

pytestmark = pytest.mark.boot
SECONDS = 360.0
"""From power-on until the script is asked for, in software emulation, beside other work."""
NO_IMAGE = "channel stable has no image yet: run `netboot channel set stable <image>`"
FIRMWARE = {
    "iPXE in a card, BIOS": hardware(1),
    "UEFI x64, PXE": hardware(2, "uefi", rom=False),
    "UEFI x64, HTTP Boot": replace(hardware(3, "uefi", rom=False), http_boot=True),
}


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


@pytest.mark.parametrize("firmware", list(FIRMWARE))
def test_firmware_comes_to_the_script(here: World, server: str, firmware: str) -> None:
    """The service has been asked for this machine's script, by its iPXE; by TFTP came what PXE alone needs."""
    one = FIRMWARE[firmware]
    mine = replace(
        one, name=f"{server}-{one.name}", mac=f"52:54:00:d0:{list(SERVERS).index(server):02x}:{one.mac[-2:]}"
    )
    before = len(here.tftp.text)
    with machine(mine, here.net.tap("machine"), here.folder, "tcg"):
        here.service.wait_until(f"the script of {mine.name}", lambda: mine.mac in asked(here), SECONDS)
        if firmware == "UEFI x64, PXE":
            here.tftp.wait_for(r"sent \S+/snponly\.efi to ", SECONDS, after=before)
    if firmware != "UEFI x64, PXE":
        assert "sent " not in here.tftp.text[before:]


def asked(here: World) -> set[str]:
    """MACs of those who asked for a script and are not in the inventory."""
    return {one["mac"] for one in here.service.api("/v1/discovered")["discovered"]}


@pytest.mark.parametrize("http_boot", [False, True], ids=["PXE", "HTTP Boot"])
def test_arm64_firmware_comes_to_the_script(here: World, server: str, http_boot: bool) -> None:
    """Of a machine of the inventory, at the address that it has there; the script says to wait, for want of an image.
    With an amd64 iPXE it would say that the firmware is another than is declared."""
    at = 70 + 2 * list(SERVERS).index(server) + http_boot
    mine, before = DPUS[at], len(here.tftp.text)

    def claims() -> dict[str, Any]:
        found: dict[str, Any] = here.service.api(f"/v1/machines/{mine.name}")["claims"]
        return found

    with arm64.machine(mine, here.net.tap("arm64"), here.folder):
        here.service.wait_until(f"the script of {mine.name}", lambda: "waited" in claims(), SECONDS)
    waited = claims()["waited"]
    assert (waited["reason"], waited["peer"]) == (NO_IMAGE, here.net.machine(at))
    sent = set(re.findall(r"sent \S+/(\S+) to (\S+)", here.tftp.text[before:]))
    assert sent == (set() if http_boot else {("ipxe-arm64.efi", here.net.machine(at))})
