"""A site with all that a configuration can have, and a secret in each place."""

from pathlib import Path

from images.store.store import Store
from lab.kube.authority import Authority, kubeconfig, write_private
from netboot.config import Config, load_config
from tests.sites import JOINING, add_image, free_ports, make_site
from tests.sockets.join_site import fill_join


def walled_site(root: Path, apiserver: int) -> Config:
    """In `root`, with one image in its channel. `apiserver`: the port of loopback that its kubeconfigs name."""
    config = make_site(root, workers=1, inventory=JOINING)
    (port, nobody) = free_ports(2)
    file = root / "netboot.yaml"
    file.write_text(
        file.read_text()
        + f"""\
join: {{listen: "127.0.0.1:{port}", url: "https://127.0.0.1:{port}", workers: 1}}
clusters:
  default: {{endpoints: ["https://192.0.2.1:6443"], authority: tls/ca.crt}}
upstream: {{place: "127.0.0.1:{nobody}/images", credentials: secrets/registry.json}}
"""
    )
    fill_join(root)
    write_private(root / "secrets" / "registry.json", b"{}")
    authority, server = Authority("nobody"), f"https://127.0.0.1:{apiserver}"
    for name in ("issuer", "approver", "nodes"):
        data = kubeconfig(server, authority.pair.certificate, authority.issue(name))
        write_private(root / "secrets" / f"{name}.kubeconfig", data)
    Store(config.store).set_channel("stable", add_image(config))
    return load_config(file)
