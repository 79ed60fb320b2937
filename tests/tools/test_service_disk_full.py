"""A whole service on a disk that runs full, and is restarted there. Needs root for a small tmpfs of its own."""

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from images.store.store import Store
from lab.account import service_account
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.tools

NAMES = ("boot-0", "boot-1", "controllers", "management")
MAC = "52:54:00:00:00:01"
LIVES = 3
"""How often a process is started: before the disk is full, when it was killed, when the service starts again."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Its `data` is a file system of 24 MiB, in a mount namespace that outlives it."""
    config = make_site(tmp_path / "site")
    Store(config.store).set_channel("stable", add_image(config))
    config.data.mkdir()
    account = service_account()
    assert account is not None, "root alone can mount it"
    options = f"size=24m,uid={account.uid},gid={account.gid}"
    script = 'mount -t tmpfs -o "$1" tmpfs "$0" && echo mounted && exec sleep 600'
    command = ["unshare", "--mount", "sh", "-c", script, str(config.data), options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as namespace:
        try:
            assert namespace.stdout is not None
            assert namespace.stdout.readline() == b"mounted\n"
            prefix = ["nsenter", f"--mount=/proc/{namespace.pid}/ns/mnt"]
            with serving(config, tmp_path / "site" / "netboot.yaml", *prefix) as running:
                yield running
        finally:
            namespace.kill()


def fill(service: Service) -> Path:
    """Take all the room that there is; the file that has it, by a path that leads there from anywhere."""
    filler = service.config.data / "filler"
    seen = Path(f"/proc/{_pid(service)}/root{filler}")
    with seen.open("wb", buffering=0) as out, pytest.raises(OSError, match="No space left"):
        while True:
            out.write(bytes(4096))
    return filler


def _pid(service: Service) -> int:
    assert service.process is not None
    return service.process.pid


def scripts_and_images_are_served(service: Service, blob: str) -> None:
    """Each time by a connection of its own, so that both boot servers are asked."""
    for _ in range(8):
        script = requests.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=60)
        assert script.headers["Netboot-Outcome"] in ("boot", "unavailable")
        assert script.text.startswith("#!ipxe")
        assert requests.get(f"{service.provisioning}/v1/blobs/{blob}", timeout=60).status_code == 200


def degraded_with_its_cause(service: Service) -> None:
    """What killed processes held may come free for a moment; and who has just started may be degraded otherwise."""
    full = "0 MiB free: what is to be written down soon cannot be"
    readiness = wait_for(lambda: (found := service.readyz())["details"]["disk"]["message"] == full and found)
    disk = readiness["details"]["disk"]
    assert (readiness["degraded"], disk["ok"]) == (True, False)
    assert disk["remedy"] == "free space on the file system of `data`"
    processes = wait_for(lambda: (found := _processes(service))["message"].endswith(disk["message"]) and found)
    old = r"(what it said last is \d+ s old, for nothing can|what it says cannot) be written: 0 MiB free: .*"
    assert re.fullmatch(old, processes["message"])
    assert (processes["ok"], processes["remedy"]) == (False, disk["remedy"])


def _processes(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = service.readyz()["details"]["processes"]
    return found


def test_restarts_on_a_full_disk_cost_neither_scripts_nor_images(service: Service) -> None:
    images = Store(service.config.store)
    channel = images.channel("stable")
    assert channel is not None
    blob = images.manifest(channel.image).artifacts.kernel.sha256
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted") == 204
    filler = fill(service)
    pids = [state["pid"] for state in service.processes().values()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(service.log.count(f"{name} is ready") == 2 for name in NAMES))
    scripts_and_images_are_served(service, blob)
    degraded_with_its_cause(service)
    assert service.stop() == 0
    service.launch()
    scripts_and_images_are_served(service, blob)
    degraded_with_its_cause(service)
    assert [line for line in service.log.splitlines() if re.search("SIGBUS|restart 2|Traceback", line)] == []
    unwritten = Counter(re.findall(r"status of the ([a-z0-9-]+) cannot be written: No space left", service.log))
    assert set(unwritten) >= {"publisher", "projection", "supervisor"}
    assert max(unwritten.values()) <= LIVES, "once each time that it was started, and not each second"
    Path(f"/proc/{_pid(service)}/root{filler}").unlink()
    wait_for(lambda: service.outcome(MAC) == "boot")
    wait_for(lambda: service.readyz()["ready"] and service.readyz()["details"]["disk"]["ok"])
