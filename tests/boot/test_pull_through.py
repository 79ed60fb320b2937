"""An image goes into a registry; the store is lost; it comes back from there, and a machine boots it."""

import shutil
from pathlib import Path

from lab.registry import registry
from tests.boot.data_centre import BOOT_SECONDS, BuiltImage, data_centre, entry, hardware
from tests.processes import wait_for


def test_push_wipe_the_store_pull_through_boot(built: BuiltImage, folder: Path) -> None:
    mine = hardware(1)
    with registry(folder / "registry") as real, data_centre(folder, built, user_network=True, origins=True) as here:
        place = f"{real.address}/site/images"
        built.site.netboot("image", "push", built.digest, f"{place}:stable")
        with here.site.config.open("a") as config:
            config.write(f"upstream: {{place: {place!r}}}\n")
        here.declare(entry(mine))
        here.service.start()
        here.service.set_channel("stable", built.digest)
        for name in ("images", "blobs"):
            shutil.rmtree(here.site.store / name)
        with here.switched_on(mine):
            here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            here.wait_for_trace(mine.name)
        assert here.latest(mine.name)["script"]["image"] == built.digest
        fetched = wait_for(lambda: here.service.api("/readyz")["details"].get("fetcher", {}).get("fetched"))
        assert fetched == 1
