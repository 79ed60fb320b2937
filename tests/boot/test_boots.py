"""Machines without disks, with real firmware, from power-on to multi-user.target."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from lab.site import CommandFailedError
from tests.boot.data_centre import BOOT_SECONDS, LOG_SECONDS, BuiltImage, data_centre, entry, hardware

pytestmark = pytest.mark.boot


def test_an_unknown_machine_waits_and_boots_by_itself_once_it_is_declared(built: BuiltImage, folder: Path) -> None:
    """SeaBIOS, the NIC's iPXE, DHCP by dnsmasq; the kernel finds the machine's TPM."""
    mine = replace(hardware(1), tpm=True)
    with data_centre(folder, built) as here, here.switched_on(mine) as machine:
        machine.wait_for_console("netboot: this machine is not in the inventory of site lab", BOOT_SECONDS)
        machine.wait_for_console(f"netboot: - MAC {mine.mac}", BOOT_SECONDS)
        with pytest.raises(CommandFailedError, match="this is unknown: it waits"):
            here.site.netboot("explain", "--mac", mine.mac.replace(":", "-").upper())
        listed = ("machine", "discovered")
        here.service.wait_until("it is listed", lambda: mine.mac in here.site.netboot(*listed), LOG_SECONDS)

        here.declare(entry(mine))
        last = here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
        here.wait_for_trace(mine.name)
        assert here.latest(mine.name)["boot"] == last["boot"]
        assert here.latest(mine.name)["failures"] == []
        assert here.latest(mine.name)["script"]["image"] == built.digest
        machine.wait_for_console(f"netboot: image {built.digest} is signed by a trusted key", LOG_SECONDS)
        machine.wait_for_console(r"tpm_tis \S+: 2\.0 TPM", LOG_SECONDS)
        machine.wait_for_console(f"{mine.name} login:", BOOT_SECONDS)
        assert f"{mine.name} boots" in here.site.netboot("explain", mine.name)


def test_two_uefi_machines_at_once_one_by_ipxe_in_its_nic_one_by_its_firmware_and_tftp(
    built: BuiltImage, folder: Path
) -> None:
    """OVMF twice: with iPXE in the NIC's ROM; without, so that its own PXE fetches snponly.efi from dnsmasq."""
    with_rom, without = hardware(1, "uefi"), hardware(2, "uefi", rom=False)
    with data_centre(folder, built) as here, contextlib.ExitStack() as stack:
        here.declare(entry(with_rom), entry(without))
        for one in (with_rom, without):
            stack.enter_context(here.switched_on(one))
        boots = {here.service.wait_for(one.name, "Booted", 2 * BOOT_SECONDS)["boot"] for one in (with_rom, without)}
        assert len(boots) == 2
        here.wait_for_trace(with_rom.name)
        here.wait_for_trace(without.name)
        assert "sent" in (folder / "network" / "dnsmasq.log").read_text().split("snponly.efi")[-2]


def test_smoke_without_root_s_network(built: BuiltImage, folder: Path) -> None:
    """QEMU's user network: DHCP by QEMU, which points at /boot.ipxe."""
    mine = hardware(1)
    with data_centre(folder, built, user_network=True) as here:
        here.declare(entry(mine))
        with here.switched_on(mine):
            here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            here.wait_for_trace(mine.name)


def test_who_may_not_boot_is_told_why_on_its_console(built: BuiltImage, folder: Path) -> None:
    """Ambiguous, then disabled, then allowed: each edit of the inventory is in force at the machine's next question."""
    mine = hardware(1)
    with data_centre(folder, built) as here:
        here.declare(
            f"name: by-mac, profile: default, match: {{macs: ['{mine.mac}']}}",
            f"name: by-uuid, profile: default, match: {{uuid: {mine.uuid}}}",
        )
        with here.switched_on(mine) as machine:
            machine.wait_for_console(r"more than one mach\s*ine \(by-mac, by-uuid\)", BOOT_SECONDS)
            with pytest.raises(CommandFailedError) as ambiguous:
                here.site.netboot("explain", "--mac", mine.mac, "--uuid", mine.uuid)
            assert "by-mac and by-uuid may not boot" in str(ambiguous.value)

            here.declare(entry(mine, ", enabled: false"))
            machine.wait_for_console(rf"refused: this machine is disabled \({mine.name}\)", BOOT_SECONDS)
            with pytest.raises(CommandFailedError, match="set `enabled: true` in the inventory to let it boot"):
                here.site.netboot("explain", mine.name)
            assert json.loads(here.site.netboot("boot", "list", "--output", "json"))["boots"] == []

            here.declare(entry(mine))
            here.service.wait_for(mine.name, "InitrdFetched", BOOT_SECONDS)
