"""A site with all that a configuration can have, and a secret in each place."""

from pathlib import Path

from images.store.store import Store
from lab.kube.authority import write_private
from netboot.config import Config, load_config
from netboot.stores import proofkey
from tests.sites import add_image, as_objects, free_ports
from tests.sockets.join_site import make_whole_site


def walled_site(root: Path, apiserver: int) -> Config:
    """In `root`, with one image in its channel. `apiserver`: the port of loopback that its kubeconfigs name, and where
    somebody is asked whether anything may begin."""
    [nobody] = free_ports(1)
    objects = (
        "inventory_kubernetes: {shipper: secrets/shipper.kubeconfig}\nenrolments_kubernetes: {}\nkeys_kubernetes: {}\n"
    )
    more = outside(apiserver, nobody) + objects
    config = load_config(make_whole_site(root, apiserver, workers=1, more=more))
    shared = root / "shared-keys"
    shared.mkdir(mode=0o700)
    for name in ("sealing.keys", "nonce.keys"):
        (root / "secrets" / name).rename(shared / name)
    write_private(shared / "boot-id.key", b"s" * 32)
    write_private(config.data / "boot-id.key", b"o" * 32)  # of before
    as_objects(config)
    proofkey.rotate(config.proof_key, proofkey.folder_of(config))
    write_secrets(root / "secrets")
    Store(config.store).set_channel("stable", add_image(config))
    return config


def outside(port: int, nobody: int) -> str:
    """Of a configuration: whom a site asks and tells. They are at this port of loopback; at `nobody` there is none."""
    upstream = f'upstream: {{place: "127.0.0.1:{nobody}/images", credentials: secrets/registry.json}}\n'
    pause = f"pause: {{hook: 'https://127.0.0.1:{port}', token_file: secrets/pause.token}}\n"
    traces = f"traces: {{endpoint: 'https://127.0.0.1:{port}', headers_file: secrets/collector.headers}}\n"
    return upstream + pause + traces


def write_secrets(folder: Path) -> None:
    """What is shown to those outside."""
    write_private(folder / "registry.json", b"{}")
    write_private(folder / "pause.token", b"a-token-of-nobody\n")
    write_private(folder / "collector.headers", b"X-Scope: nobody\n")
