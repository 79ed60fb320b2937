"""A machine of another architecture than this one's: from UEFI and iPXE to multi-user.target, and what it must not
get."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab import arm64
from lab.ipxe import ipxe_arm64
from lab.network import UserNetwork
from lab.site import CommandFailedError
from lab.work import CACHE
from tests.boot.data_centre import LOG_SECONDS, BuiltImage, data_centre, entry, hardware

pytestmark = pytest.mark.boot

SECONDS = 900.0
"""From power-on to Booted: every instruction of the machine is emulated, and every page of it unpacked by one."""


def test_an_arm64_machine_boots_its_image_and_no_other_machine_gets_it(built_arm64: BuiltImage, folder: Path) -> None:
    mine, other = replace(hardware(1, "uefi", rom=False), memory=2048, cpus=2, program=ipxe_arm64(CACHE)), hardware(2)
    with data_centre(folder, built_arm64, user_network=True) as here:
        here.declare(entry(mine, ", architecture: arm64"), entry(other))
        outcome, script = arm64.ask(here.site, other, "x86_64")
        assert outcome == "unavailable"
        assert f"that image is for arm64 and {other.name} is amd64" in script.replace("\\\n", "")
        outcome, script = arm64.ask(here.site, mine, "x86_64")
        assert outcome == "refused"
        assert f"its firmware is amd64, the inventory declares {mine.name} as arm64" in script

        with arm64.machine(mine, UserNetwork(f"{here.site.url}/boot.ipxe"), folder) as machine:
            here.service.wait_for(mine.name, "Booted", SECONDS)
            here.wait_for_trace(mine.name)
            assert here.latest(mine.name)["failures"] == []
            machine.wait_for_console(f"netboot: image {built_arm64.digest} is signed by a trusted key", LOG_SECONDS)

        here.declare(entry(other))
        machines = "/v1/machines"
        here.service.wait_until(
            "the inventory is read again",
            lambda: [one["name"] for one in here.service.api(machines)["machines"]] == [other.name],
            LOG_SECONDS,
        )
        with pytest.raises(CommandFailedError) as refused:
            here.service.set_channel("stable", built_arm64.digest)
        words = f"channel stable, 1 machine of no class ({other.name}): amd64, and debian-12-arm64 is for arm64"
        assert words in str(refused.value)
