"""A machine that nobody has declared: it says what it is made of, is declared by that, and boots its image."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lab.demo.steps import NODE_CPUS, NODE_MEMORY
from lab.machines import chip_of
from lab.tpm import ek_sha256
from tests.boot.data_centre import BOOT_SECONDS, PROFILES, BuiltImage, data_centre, hardware

pytestmark = pytest.mark.boot


def test_an_unknown_machine_introduces_itself_is_declared_and_boots_its_image(
    built_node: BuiltImage, folder: Path
) -> None:
    """SeaBIOS, the NIC's iPXE, a TPM; one image, which the script of discovery starts another unit of."""
    mine = replace(hardware(1), memory=NODE_MEMORY, cpus=NODE_CPUS, tpm=True)
    ek = ek_sha256(chip_of(mine, folder))
    with (
        data_centre(folder, built_node, more="discovery: {channel: stable}\n") as here,
        here.switched_on(mine) as machine,
    ):
        netboot = here.site.netboot

        def found() -> list[dict[str, object]]:
            listed = json.loads(netboot("machine", "discovered", "--output", "json"))["discovered"]
            return [each for each in listed if each["mac"] == mine.mac and each["hardware"]]

        machine.wait_for_console("netboot-discovery: it waits until it is declared", 2 * BOOT_SECONDS)
        here.service.wait_until("its report", lambda: bool(found()), 60)
        console = machine.console.text
        for started in ("Join the cluster", "containerd.service", "kubelet.service", "login:"):
            assert started not in console
        (seen,) = found()
        said = seen["hardware"]
        assert isinstance(said, dict)
        assert said["cpu"]["count"] == NODE_CPUS
        assert said["firmware"]["uuid"] == mine.uuid
        assert said["firmware"]["serial"] == mine.serial
        assert said["tpm"]["ek_sha256"] == ek
        assert [(card["mac"], card["driver"], card["link"]) for card in said["cards"]] == [
            (mine.mac, "virtio_net", True)
        ]
        wanted = ("--name", "node-1", "--profile", "default", "--seen", str(seen["seen"]))
        here.site.declare(netboot("machine", "declare", mine.mac, *wanted, "--print") + PROFILES)
        machine.wait_for_console("netboot-discovery: this machine is declared", 60)
        here.service.wait_for("node-1", "Switched", BOOT_SECONDS)
        shown = json.loads(netboot("machine", "show", "node-1", "--output", "json"))
        assert shown["match"]["macs"] == [mine.mac]
        assert (shown["match"]["uuid"], shown["match"]["serial"]) == (mine.uuid, mine.serial)
