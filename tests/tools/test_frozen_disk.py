"""A disk that stands still under a whole service: `fsfreeze` of the file system that `data` is on. Needs root."""

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from images.store.store import Store
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.tools
MAC = "52:54:00:00:00:01"
THAW_SECONDS = 60.0
"""Whatever happens to the test: who writes to a frozen file system cannot even be killed."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 of its own."""
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(128 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


class Frozen:
    """A file system, frozen while in the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thaw = threading.Timer(THAW_SECONDS, self._unfreeze)

    def __enter__(self) -> None:
        self._thaw.start()
        subprocess.run(["fsfreeze", "--freeze", self._folder], check=True)

    def __exit__(self, *_: object) -> None:
        self._thaw.cancel()
        self._unfreeze()

    def _unfreeze(self) -> None:
        subprocess.run(["fsfreeze", "--unfreeze", self._folder], check=False)


@pytest.fixture
def service(disk: Path, tmp_path: Path) -> Iterator[Service]:
    config = make_site(tmp_path / "site")
    file = tmp_path / "site" / "netboot.yaml"
    file.write_text(file.read_text() + f"data: {disk / 'data'}\n")
    config = config.model_copy(update={"data": disk / "data"})
    (tmp_path / "metrics").mkdir()
    (disk / "data").mkdir()
    (disk / "data" / "metrics").symlink_to(tmp_path / "metrics")
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as running:
        yield running


def test_a_frozen_disk_costs_scripts_and_events_never_images_and_probes(service: Service, disk: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted") == 204
    blobs = [path.name for path in (service.config.store / "blobs").iterdir()]

    def served(path: str) -> requests.Response:
        """Over a connection of its own: by any of the boot servers."""
        return requests.get(f"{service.provisioning}{path}", timeout=4)

    with Frozen(disk):
        for _ in range(2):  # before, and after the deadline of what has to be written down
            for path in (*["/healthz"] * 8, "/boot.ipxe", *(f"/v1/blobs/{blob}" for blob in blobs)):
                assert served(path).status_code == 200
            answer = requests.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=20)
            assert answer.headers["Netboot-Outcome"] == "unavailable"
            url = f"{service.provisioning}/v1/boots/{boot}/events"
            event = requests.post(url, data=json.dumps({"mac": MAC, "phase": "Booted"}), timeout=20)
            assert (event.status_code, event.headers["Retry-After"]) == (503, "10")
    wait_for(lambda: service.post(boot, MAC, "Booted") == 204)
    wait_for(lambda: service.outcome(MAC) == "boot")
    assert "journal: the disk has not answered for 5 seconds; look at the disk of the data folder" in service.log
