"""Disks that fail under a whole service: the file system that `data` is on stands still, is full, or gives errors; a
real one, in a file of its own. Images are elsewhere: what is lost with `data` is what has to be written down. Needs
root."""

import errno
import fcntl
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from images.store.store import Store
from tests.commands import Run
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.tools
MAC = "52:54:00:00:00:01"
EXT4_IOC_SHUTDOWN = 0x8004587D
"""linux/ext4.h; 1: what is in its log already is kept. All input and output gives EIO from then on."""
THAW_SECONDS = 300.0
"""Whatever happens to the test: who writes to a frozen file system cannot even be killed."""


@contextmanager
def ext4(under: Path, block: int) -> Iterator[Path]:
    """A mounted file system of its own, with blocks of so many bytes."""
    image, folder = under / "disk.img", under / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(128 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-b", str(block), image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """With blocks of a page, as larger ones have by themselves: flaw 660 is of others."""
    with ext4(tmp_path, mmap.PAGESIZE) as folder:
        yield folder


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
    (tmp_path / "site" / "metrics").mkdir()
    (disk / "data").mkdir()
    (disk / "data" / "metrics").symlink_to(tmp_path / "site" / "metrics")
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as running:
        yield running


def blobs_of(service: Service) -> list[str]:
    return [path.name for path in (service.config.store / "blobs").iterdir()]


def status_of_an_event(service: Service, boot: str) -> tuple[int, str | None]:
    url = f"{service.provisioning}/v1/boots/{boot}/events"
    answer = requests.post(url, data=json.dumps({"mac": MAC, "phase": "Booted"}), timeout=60)
    return answer.status_code, answer.headers.get("Retry-After")


def outcome(service: Service) -> str:
    """Over a connection of its own, as a machine's: by any of the boot servers."""
    answer = requests.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=60)
    return answer.headers["Netboot-Outcome"]


def refuses_what_it_cannot_write_and_serves_the_rest(service: Service, boot: str, filler: Path | None = None) -> None:
    """`filler`: takes all room of a full disk, that too which came free since."""
    for _ in range(6):
        assert requests.get(f"{service.provisioning}/healthz", timeout=60).status_code == 200
        if filler is not None:
            fill(filler)
        assert outcome(service) == "unavailable"
        assert status_of_an_event(service, boot) == (503, "10")
    for blob in blobs_of(service):
        assert requests.get(f"{service.provisioning}/v1/blobs/{blob}", timeout=60).status_code == 200


def fill(filler: Path) -> None:
    """All room, that too which ext4 gives back with a commit."""
    wrote = True
    while wrote:
        wrote = False
        with filler.open("ab", buffering=0) as out, pytest.raises(OSError, match="No space left"):
            while True:
                out.write(bytes(4096))
                wrote = True
        subprocess.run(["sync", "--file-system", filler], check=True)


def refused_once_filled(service: Service, boot: str, filler: Path) -> bool:
    """Whether records are refused now that the disk is filled again, by each of two servers: the kernel chooses one for
    each connection. What killed servers held comes free late, and a journal may have room for a record in blocks that
    it has already."""
    fill(filler)
    return all(status_of_an_event(service, boot) == (503, "10") for _ in range(24))


def restart_boot_servers(service: Service) -> None:
    """Until they are ready again. The log says so; a status may find no room on a full disk."""
    servers = {name: process["pid"] for name, process in service.processes().items() if name.startswith("boot-")}
    before = len(service.log)
    for pid in servers.values():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(f'"{name} is ready"' in service.log[before:] for name in servers))


def test_a_full_disk_costs_scripts_and_events_over_restarts_too(service: Service, disk: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted") == 204
    filler = disk / "filler"
    fill(filler)
    wait_for(lambda: status_of_an_event(service, boot) == (503, "10"))
    wait_for(lambda: outcome(service) == "unavailable")
    restart_boot_servers(service)
    wait_for(lambda: refused_once_filled(service, boot, filler))
    refuses_what_it_cannot_write_and_serves_the_rest(service, boot, filler)
    filler.unlink()
    for _ in range(6):
        wait_for(lambda: outcome(service) == "boot")
        wait_for(lambda: status_of_an_event(service, boot)[0] == 204)
    wait_for(lambda: _phases(service, boot) == ["ScriptServed", "InitrdStarted", "Booted"])


def _phases(service: Service, boot: str) -> list[str]:
    return [reached["phase"] for reached in service.api(f"/v1/boots/{boot}").get("reached", [])]


def test_a_disk_that_gives_errors_costs_scripts_and_events_until_there_is_another(service: Service, disk: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted") == 204
    handle = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", 1))
    os.close(handle)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        (disk / "x").write_text("")
    refuses_what_it_cannot_write_and_serves_the_rest(service, boot)
    subprocess.run(["umount", "--lazy", disk], check=True)
    copy = shutil.copy(disk.with_suffix(".img"), disk.with_suffix(".copy"))  # the old one is the kernel's, and dead
    subprocess.run(["mount", "-o", "loop", copy, disk], check=True)
    # what a process may touch is settled when it starts: it was files of the disk that is gone
    assert service.stop() == 0
    service.launch()
    for _ in range(6):
        wait_for(lambda: outcome(service) == "boot")
        wait_for(lambda: status_of_an_event(service, boot)[0] == 204)


def test_a_frozen_disk_costs_scripts_and_events_never_images_and_probes(service: Service, disk: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted") == 204
    with Frozen(disk):
        for _ in range(2):  # before, and after the deadline of what has to be written down
            paths = [*["/healthz"] * 8, "/boot.ipxe", *(f"/v1/blobs/{blob}" for blob in blobs_of(service))]
            for path in paths:  # before writes that wait for the disk are given up
                answer = requests.get(f"{service.provisioning}{path}", timeout=4)
                assert answer.status_code == 200, (path, answer.text, service.log)
            assert outcome(service) == "unavailable"
            assert status_of_an_event(service, boot) == (503, "10")
    wait_for(lambda: status_of_an_event(service, boot)[0] == 204)
    wait_for(lambda: outcome(service) == "boot")
    assert "journal: the disk has not answered for 5 seconds; look at the disk of the data folder" in service.log


def test_the_doctor_says_whose_blocks_are_too_small(run: Run, tmp_path: Path) -> None:
    """Flaw 660: such a disk may kill a process when it is full."""
    make_site(tmp_path / "site")
    file = tmp_path / "site" / "netboot.yaml"
    config = file.read_text()
    for block in (1024, mmap.PAGESIZE):
        (under := tmp_path / str(block)).mkdir()
        with ext4(under, block) as folder:
            file.write_text(f"{config}data: {folder}\n")
            said = json.loads(run("doctor", "--quiet", "--config", str(file), "--output", "json").out)
        words = f"the file system of {folder} has blocks of 1024 bytes, less than a page (4096)"
        remedy = (
            "full, this one may end a process: after `netboot backup`, make one with blocks of a page on a new, empty "
            "disk (`mkfs.ext4 -b 4096` erases what it is given), and restore there"
        )
        expected = {"where": "service", "name": "data", "outcome": "warn", "words": words, "remedy": remedy}
        assert [each for each in said["diagnoses"] if each["name"] == "data"] == ([expected] if block == 1024 else [])
