"""Another form of an image, booted: kernel, initrd and arguments as one EFI program. Erofs: `test_evidence.py`."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.boot.data_centre import BOOT_SECONDS, BuiltImage, data_centre, hardware

pytestmark = pytest.mark.boot


def test_a_unified_kernel_image_starts_from_firmware(built_erofs: BuiltImage, folder: Path) -> None:
    """OVMF starts it and gives it no arguments: those that it has speak to the serial port, and our stage runs."""
    artifact = built_erofs.manifest["artifacts"]["uki"]
    blob = built_erofs.site.store / "blobs" / artifact["sha256"]
    mine = replace(hardware(1, "uefi"), program=blob)
    with data_centre(folder, built_erofs, user_network=True) as here, here.switched_on(mine) as machine:
        machine.wait_for_console("Command line: console=tty0 console=ttyS0,115200n8 panic=10", BOOT_SECONDS)
        machine.wait_for_console("netboot: stage started", BOOT_SECONDS)
