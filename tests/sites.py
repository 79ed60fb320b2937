"""A whole small site in a folder, for tests: keys, a signed image of tiny blobs, inventory, configuration, token."""

import hashlib
import random
import socket
from collections import deque
from pathlib import Path

from images.artifact.keyring import KeyRing
from images.artifact.manifest import Artifact, Artifacts, Manifest
from images.artifact.signing import SigningKey
from images.store.store import Store
from lab.site import worker
from netboot.config import Config, load_config
from netboot.machines.declared import documents_of, items_of
from netboot.machines.resources import Resource
from netboot.stores.resources import KeptResources

TOKEN = "an-operators-token-of-a-test"

INVENTORY = """\
machines:
  - {name: gpu-001, match: {macs: ["52:54:00:00:00:01"]}, profile: compute}
  - {name: gpu-002, match: {macs: ["52:54:00:00:00:02"], serial: S2}, profile: compute}
  - {name: off-001, match: {macs: ["52:54:00:00:00:03"]}, profile: compute, enabled: false}
profiles:
  - {name: compute, channel: stable, kernel_arguments: [quiet]}
channels:
  - {name: stable, description: what production boots}
"""
JOINING = INVENTORY.replace("channel: stable,", "channel: stable, pcrs: none,")
"""Where machines join, too."""
WRITING_SECONDS = 30.0
"""A service that runs writes into its store now and then, and whoever else does waits for it."""

KUBELET = {"packages": b'[["kubelet","1.34.4-1.1","amd64"]]\n'}
"""Documents of an image that joins a cluster."""


_GIVEN: deque[int] = deque(maxlen=1_000)
"""Those that were given last: they may not be used yet."""


def free_ports(count: int = 2) -> list[int]:
    """Ports of loopback that nobody has at the moment: none that the kernel gives to whoever asks for any, nor that
    another worker gets here, for it takes a while until they are used."""
    first = 20_000 + 4_000 * worker()
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            port = random.randrange(first, first + 4_000)
            if port in _GIVEN:
                continue
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                one.close()
            else:
                held.append(one)
                _GIVEN.append(port)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def make_site(root: Path, *, workers: int = 2, inventory: str = INVENTORY) -> Config:
    """A site that can be served at once; its channel `stable` is not set yet."""
    provisioning, management = free_ports()
    root.mkdir(parents=True, exist_ok=True)
    (root / "netboot.yaml").write_text(
        f"""\
site: test
provisioning:
  listen: "127.0.0.1:{provisioning}"
  url: http://127.0.0.1:{provisioning}
  workers: {workers}
management:
  listen: "127.0.0.1:{management}"
"""
    )
    (root / "inventory").mkdir()
    (root / "inventory" / "site.yaml").write_text(inventory)
    (root / "secrets").mkdir(mode=0o700)
    (root / "secrets" / "operator.token").write_text(TOKEN + "\n")
    (root / "secrets" / "operator.token").chmod(0o600)
    KeyRing(root / "keys").create()
    config = load_config(root / "netboot.yaml")
    key = KeyRing(config.keys).signing_key()
    bundle = config.site_bundle(issued=1_700_000_000).to_bytes()
    Store(config.store).set_bundle(bundle, key.sign(bundle))
    return config


def manifest_of(
    blobs: dict[str, bytes], *, name: str = "tiny", architecture: str = "amd64", epoch: int = 0
) -> Manifest:
    """The manifest of an image of these blobs (kernel, initrd, root, packages)."""
    artifacts = {
        part: Artifact(
            sha256=hashlib.sha256(data).hexdigest(),
            size=len(data),
            chunks=(hashlib.sha256(data).hexdigest(),) if part == "root" else (),
        )
        for part, data in blobs.items()
    }
    return Manifest.model_validate(
        {
            "name": name,
            "distribution": "debian",
            "suite": "bookworm",
            "architecture": architecture,
            "recipe": "0" * 64,
            "epoch": epoch,
            "created": 1_700_000_000,
            "kernel_version": "6.1.0-1",
            "kernel_arguments": ("console=ttyS0",),
            "ram_mib": 512,
            "artifacts": Artifacts(**artifacts),
        }
    )


def as_objects(config: Config) -> None:
    """What the files declare, as custom resources that an API server had."""
    items = [item for document in documents_of(config.inventory)[0] for item in items_of(document)]
    KeptResources(config.data, "netboot").write(
        [Resource(kind=item.kind, name=item.name, shown=f"{item.kind}/{item.name}", spec=item.value) for item in items]
    )


def add_image(
    config: Config,
    *,
    name: str = "tiny",
    salt: str = "",
    architecture: str = "amd64",
    epoch: int = 0,
    key: SigningKey | None = None,
    documents: dict[str, bytes] | None = None,
) -> str:
    """Put an image of tiny blobs into the site's store, signed by the site's key or by `key`; its digest. `documents`:
    `files`, `config` and others that it is to have."""
    parts = ("kernel", "initrd", "root", "packages")
    blobs = {part: f"{part} of {name}{salt}\n".encode() * 100 for part in parts} | (documents or {})
    manifest = manifest_of(blobs, name=name, architecture=architecture, epoch=epoch).to_bytes()
    signer = key or KeyRing(config.keys).signing_key()
    folder = config.store.parent / "made"
    folder.mkdir(exist_ok=True)
    for part, data in blobs.items():
        (folder / part).write_bytes(data)
    store = Store(config.store, wait=WRITING_SECONDS)
    return store.add_image(manifest, signer.sign(manifest), {part: folder / part for part in blobs})
