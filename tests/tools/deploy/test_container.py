"""The container image: the same twice; what it is made of; and the service in a container that may do nothing else."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import container
from lab.container import Storage
from netboot.config import Config
from tests.containers import ACCOUNT, Container, given, image, running, settings
from tests.processes import wait_for
from tests.sites import add_image, make_site

pytestmark = pytest.mark.tools

VERSION = "0.1.0"
IMAGE = f"{container.NAME}:{VERSION}"
STATE = "/var/lib/netboot"
SETTINGS = {
    "User": f"{ACCOUNT}:{ACCOUNT}",
    "ExposedPorts": {"8080/tcp": {}, "8081/tcp": {}, "8443/tcp": {}},
    "Entrypoint": ["/usr/bin/netboot"],
    "Cmd": ["serve"],
    "WorkingDir": "/etc/netboot",
    "StopSignal": "SIGTERM",
}


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """With the image in it, built twice."""
    folder = tmp_path_factory.mktemp("container")
    with image(folder, VERSION, times=2) as (storage, ids):
        assert re.fullmatch("[0-9a-f]{64}", ids[0])
        assert ids[0] == ids[1]
        yield storage


def test_what_is_in_it(storage: Storage) -> None:
    said = settings(storage, IMAGE)
    labels = said.pop("Labels")
    assert isinstance(labels, dict)
    assert {name: said.get(name) for name in SETTINGS} == SETTINGS
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.revision"] == container.revision()
    with storage.mounted(IMAGE) as root:
        bill = json.loads(container.bill(root, VERSION))
        own = subprocess.run(
            [
                "find",
                str(root),
                "-xdev",
                "(",
                "-uid",
                str(ACCOUNT),
                "-o",
                "-gid",
                str(ACCOUNT),
                ")",
                "-printf",
                "/%P\n",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    purls = {component["purl"] for component in bill["components"]}
    assert {"pkg:pypi/netboot@0.1.0", "pkg:deb/debian/tzdata"} <= {purl.partition("@202")[0] for purl in purls}
    assert any(purl.startswith("pkg:pypi/aiohttp@") for purl in purls)
    assert sorted(own.stdout.splitlines()) == [STATE, f"{STATE}/data", f"{STATE}/store"]


def test_the_service_in_a_container_that_may_do_nothing_else(storage: Storage, tmp_path: Path) -> None:
    """Nothing is mounted where a shell is; secrets are root's, as Kubernetes mounts them."""
    config, options = site(tmp_path)
    with running(storage, IMAGE, tmp_path, options) as one:
        where = config.provisioning.url
        wait_for(lambda: one.get(f"{where}/readyz"))
        assert f"kernel {where}/v1/blobs/" in one.get(f"{where}/v1/boot?mac=52:54:00:00:00:01&arch=x86_64")
        one.podman.output.wait_for("^ready$", 180)
        assert "not confined" not in one.podman.output.path.read_text()
        confined(one)
        nothing_is_left_of_who_ends(one, config)
        os.kill(one.pid, signal.SIGTERM)
        assert one.podman.process.wait(180) == 0
    status = json.loads((tmp_path / "state/data/status/supervisor.json").read_text())
    assert (status["state"], {each["pid"] for each in status["processes"].values()}) == ("stopping", {None})


def site(folder: Path) -> tuple[Config, list[str]]:
    """One whose channel has an image; its configuration below /etc/netboot, its state as volumes."""
    config = make_site(folder / "site", workers=1, inventory=INVENTORY.format(image="0" * 64))
    digest = add_image(config)
    (folder / "site/inventory/site.yaml").write_text(INVENTORY.format(image=digest))
    (folder / "site/secrets").chmod(0o750)
    (folder / "site/secrets/operator.token").chmod(0o440)
    os.chown(folder / "site/secrets", 0, ACCOUNT)
    os.chown(folder / "site/secrets/operator.token", 0, ACCOUNT)
    for key in (folder / "site/keys").glob("*.key"):
        key.unlink()
    (folder / "state").mkdir()
    (folder / "state/data").mkdir()
    (folder / "site/store").rename(folder / "state/store")
    given(folder / "state", ACCOUNT)
    with (folder / "site/netboot.yaml").open("a") as file:
        file.write(f"data: {STATE}/data\nstore: {STATE}/store\n")
    mounts = (f"{folder}/site:/etc/netboot:ro", f"{folder}/state:{STATE}", "/dev/null:/usr/bin/dash:ro")
    return config, ["--network=none", *(f"--volume={mount}" for mount in mounts)]


INVENTORY = """\
machines:
  - {{name: gpu-001, match: {{macs: ["52:54:00:00:00:01"]}}, profile: compute}}
profiles:
  - {{name: compute, channel: stable}}
channels:
  - {{name: stable, image: {image}}}
"""


def confined(one: Container) -> None:
    """By the container, and by themselves: of the two filters of system calls one is netboot's own."""
    for name in ("management", "boot-0"):
        (pid,) = (pid for pid in children(one.pid) if name in command(pid))
        status = dict(
            line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        held = {key: status[key].strip() for key in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")}
        none = "0" * 16
        assert held == {"CapEff": none, "CapBnd": none, "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "2"}
        assert status["Uid"].split() == [str(ACCOUNT)] * 4
    tried = ["nsenter", f"--target={one.pid}", "--mount", "touch", "/etc/netboot/new", "/usr/new", "/tmp/new"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin", "LC_ALL": "C"})
    assert done.stderr.splitlines() == [
        f"touch: cannot touch '{path}/new': Read-only file system" for path in ("/etc/netboot", "/usr", "/tmp")
    ]


def nothing_is_left_of_who_ends(one: Container, config: Config) -> None:
    """The management server's own child is orphaned, and comes to the first process of the container."""
    (management,) = (pid for pid in children(one.pid) if "management" in command(pid))
    left = children(management)
    assert left
    os.kill(management, signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (management, *left)))
    wait_for(lambda: one.get(f"{config.management.base_url}/healthz"))


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
