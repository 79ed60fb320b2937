"""Other forms of an image, booted: its root as erofs; kernel, initrd and arguments as one EFI program."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.boot.data_centre import BOOT_SECONDS, BuiltImage, data_centre, entry, hardware

pytestmark = pytest.mark.boot


def test_a_root_as_erofs(built_erofs: BuiltImage, folder: Path) -> None:
    """QEMU's user network; the kernel is Debian's own, whose module erofs is in the initrd."""
    assert built_erofs.manifest["root_format"] == "erofs"
    mine = hardware(1)
    with data_centre(folder, built_erofs, user_network=True) as here:
        here.declare(entry(mine))
        with here.switched_on(mine) as machine:
            here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            here.wait_for_trace(mine.name)
            machine.wait_for_console(r"erofs: \(device loop0\): mounted", BOOT_SECONDS)
            machine.wait_for_console(r"root@\S+:~# ", BOOT_SECONDS)  # `debug: [console-login]`


def test_a_unified_kernel_image_starts_from_firmware(built_erofs: BuiltImage, folder: Path) -> None:
    """OVMF starts it and gives it no arguments: those that it has speak to the serial port, and our stage runs."""
    artifact = built_erofs.manifest["artifacts"]["uki"]
    blob = built_erofs.site.store / "blobs" / artifact["sha256"]
    mine = replace(hardware(1, "uefi"), program=blob)
    with data_centre(folder, built_erofs, user_network=True) as here, here.switched_on(mine) as machine:
        machine.wait_for_console("Command line: console=tty0 console=ttyS0,115200n8 panic=30", BOOT_SECONDS)
        machine.wait_for_console("netboot: stage started", BOOT_SECONDS)
