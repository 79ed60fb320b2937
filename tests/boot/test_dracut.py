"""An image whose initrd dracut made: the same way through the same service, to the end (docs/dracut.md)."""

from pathlib import Path

import pytest

from tests.boot.data_centre import BOOT_SECONDS, LOG_SECONDS, BuiltImage, data_centre, entry, hardware

pytestmark = pytest.mark.boot


def test_an_initrd_by_dracut_leaves_the_same_trace(built_dracut: BuiltImage, folder: Path) -> None:
    """dracut's network, with its modules for multipath and iSCSI; our trust, fetch and events; dracut's switch."""
    mine = hardware(1)
    with data_centre(folder, built_dracut) as here:
        here.declare(entry(mine))
        with here.switched_on(mine) as machine:
            here.service.wait_for(mine.name, "Booted", 2 * BOOT_SECONDS)
            here.wait_for_trace(mine.name)
            last = here.latest(mine.name)
            assert (last["failures"], last["script"]["image"]) == ([], built_dracut.digest)
            machine.wait_for_console("netboot: stage started, in an initrd by dracut", LOG_SECONDS)
            machine.wait_for_console(
                rf"netboot: \S+ is up: {here.net and here.net.host.rpartition('.')[0]}", LOG_SECONDS
            )
            machine.wait_for_console(f"{mine.name} login:", BOOT_SECONDS)
