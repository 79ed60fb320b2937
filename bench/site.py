"""A site of ours, made by `netboot init`, with a small signed image and a generated inventory, and `netboot serve`."""

import contextlib
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.serving import HOST, BenchError, Server, get, serving, tail
from images.artifact.keyring import KeyRing
from images.artifact.manifest import Artifacts, Manifest
from images.artifact.measure import measure
from images.store.store import Store
from lab.site import free_port
from netboot.config import Provisioning

_CLI = (sys.executable, "-m", "netboot.cli.main")
ROOT = Path(__file__).resolve().parent.parent
_CONFIG = """\
site: bench
provisioning: {{listen: "{host}:{port}", url: "http://{host}:{port}", ingest_kib_per_second: {ingest}}}
management: {{listen: "{host}:{management}"}}
"""
_INVENTORY = """\
channels: [{{name: stable, image: {digest}}}]
profiles: [{{name: node, channel: stable, pcrs: none, kernel_arguments: [console=ttyS0, quiet]}}]
machines:
"""


UNLIMITED = 10_000_000
"""KiB a second: every script is written down, as of machines that ask once each."""
SHIPPED = Provisioning.model_fields["ingest_kib_per_second"].default
"""What a site has that says nothing."""


@dataclass(frozen=True)
class Identity:
    """What a machine says of itself, as its firmware has it."""

    mac: str
    uuid: str
    serial: str


@dataclass(frozen=True)
class Joining:
    """What a site needs beyond that for its machines to join; `eks`: pinned, by machine (hex SHA-256)."""

    port: int
    config: str
    """Sections `join` and `clusters` of netboot.yaml."""
    eks: Sequence[str]


@dataclass(frozen=True)
class Site:
    """A site on disk; `blob_*` are of its root image."""

    folder: Path
    port: int
    machines: Sequence[Identity]
    blob_path: str
    blob_size: int

    @property
    def store(self) -> Path:
        """The folder of its store."""
        return self.folder / "store"

    def metrics(self) -> str:
        """What its service says of itself.

        Raises:
            BenchError: it does not.
        """
        config = yaml.safe_load((self.folder / "netboot.yaml").read_text())
        status, body = get(int(str(config["management"]["listen"]).rpartition(":")[2]), "/metrics")
        if status != 200:
            raise BenchError(f"/metrics: status {status}")
        return body.decode()


def identities(count: int) -> list[Identity]:
    """So many machines, always the same ones."""
    return [
        Identity(
            mac=f"52:54:00:{n >> 16 & 255:02x}:{n >> 8 & 255:02x}:{n & 255:02x}",
            uuid=f"4c4c4544-0039-3010-8047-{n + 1:012x}",
            serial=f"SN{n:08d}",
        )
        for n in range(count)
    ]


def boot_path(identity: Identity) -> str:
    """What a machine asks after `/boot.ipxe` (ipxe/templates/chain.ipxe)."""
    mac = identity.mac.replace(":", "-")
    return f"/v1/boot?mac={mac}&uuid={identity.uuid}&arch=x86_64&platform=efi&serial={identity.serial}"


def make_site(
    folder: Path, *, machines: int, root_mib: int, joining: Joining | None = None, ingest: int = UNLIMITED
) -> Site:
    """A site that holds so many machines, with one signed image whose root has `root_mib` MiB. `ingest`: KiB a second
    that a boot server writes down.

    Raises:
        BenchError: `netboot init` failed.
    """
    argv = [*_CLI, "init", str(folder), *(["--join-url", f"https://{HOST}:{joining.port}"] if joining else [])]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise BenchError(f"netboot init ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    port, known = free_port(HOST), identities(machines)
    config = _CONFIG.format(host=HOST, port=port, management=free_port(HOST), ingest=ingest)
    (folder / "netboot.yaml").write_text(config + (joining.config if joining else ""))
    manifest = add_image(folder, root_mib)
    (folder / "inventory" / "site.yaml").write_text(
        _INVENTORY.format(digest=manifest.digest)
        + "".join(
            f"- {{name: node-{number}, profile: node, "
            f'match: {{macs: ["{identity.mac}"], uuid: {identity.uuid}, serial: {identity.serial}{pin}}}}}\n'
            for number, (identity, pin) in enumerate(zip(known, _pins(joining, machines), strict=True))
        )
    )
    root = manifest.artifacts.root
    return Site(folder, port, known, f"/v1/blobs/{root.sha256}", root.size)


def _pins(joining: Joining | None, machines: int) -> list[str]:
    return [f", ek_sha256: {ek}" for ek in joining.eks] if joining is not None else [""] * machines


def add_image(folder: Path, root_mib: int) -> Manifest:
    """One image more in the store of the site in `folder`, signed; like no other."""
    work = folder / "made"
    work.mkdir(exist_ok=True)
    sizes = {"kernel": 1 << 20, "initrd": 1 << 20, "root": root_mib << 20, "packages": 1 << 10}
    paths = {name: work / name for name in sizes}
    for name, path in paths.items():
        with path.open("wb") as out:
            for at in range(0, sizes[name], 1 << 20):
                out.write(os.urandom(min(1 << 20, sizes[name] - at)))
    manifest = Manifest(
        name="bench",
        distribution="debian",
        suite="bookworm",
        architecture="amd64",
        recipe="0" * 64,
        epoch=0,
        created=1_700_000_000,
        kernel_version="6.1.0-1",
        ram_mib=512,
        artifacts=Artifacts(**{name: measure(path, chunks=name == "root") for name, path in paths.items()}),
    )
    data = manifest.to_bytes()
    Store(folder / "store").add_image(data, KeyRing(folder / "keys").signing_key().sign(data), paths)
    for path in paths.values():
        path.unlink()
    return manifest


@contextlib.contextmanager
def netboot(site: Site) -> Iterator[Server]:
    """The real `netboot serve`, until the block ends. It starts when a machine of the inventory is told to boot.

    Raises:
        BenchError: it did not start, or its machines do not get the scripts that boot them.
    """
    argv = [*_CLI, "serve", "--config", str(site.folder / "netboot.yaml")]
    with serving("netboot", argv, site.port, site.folder / "log", ready="/readyz", front="boot-", cwd=ROOT) as server:
        deadline = time.monotonic() + 60
        while not (all_boot := _all_boot(site)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not all_boot:
            raise BenchError(f"netboot does not boot the machines of its inventory:\n{tail(site.folder / 'log')}")
        yield server


def _all_boot(site: Site) -> bool:
    """Whether each of a dozen connections gets the script of its machine: every worker has the inventory."""
    for identity in (site.machines[0], site.machines[-1]) * 6:
        connection = http.client.HTTPConnection(HOST, site.port, timeout=30)
        try:
            connection.request("GET", boot_path(identity))
            response = connection.getresponse()
            response.read()
            if response.getheader("Netboot-Outcome") != "boot":
                return False
        finally:
            connection.close()
    return True


def write_paths(file: Path, machines: Sequence[Identity]) -> Path:
    """The list of paths that wrk walks: one per machine."""
    file.write_text("".join(f"{boot_path(identity)}\n" for identity in machines))
    return file
