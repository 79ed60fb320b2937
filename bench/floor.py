"""The floor under a boot: a bare initrd of the image's own busybox and modules, and a kubelet with a bootstrap token.

What it runs is in `bench/floor_files`; nothing there verifies, reports or attests.
"""

import json
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.serving import BenchError
from images.build.initrd import compress
from images.errors import ImageError
from images.formats import cpio
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl

NAME = "floor"
"""The machine and its node."""
FILES = Path(__file__).parent / "floor_files"
PASSED_OVER = ("bonding.ko", "8021q.ko")
"""Modules that the image's initrd does not load either where no bond and no VLAN is asked for."""
GROUP = "system:bootstrappers:floor"
_ROLES = ("system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient")
"""What kubeadm binds to its tokens' group: a kubelet may ask for its certificate, and gets it."""


@dataclass(frozen=True)
class Join:
    """What the initrd brings of the cluster: its URL, its authority (PEM), a bootstrap token."""

    url: str
    authority: bytes
    token: str

    def kubeconfig(self) -> bytes:
        """For the kubelet's --bootstrap-kubeconfig; JSON is YAML."""
        cluster = {"server": self.url, "certificate-authority": "/run/floor/ca.crt"}
        whole = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "token", "user": {"token": self.token}}],
            "contexts": [{"name": "token", "context": {"cluster": "cluster", "user": "token"}}],
            "current-context": "token",
        }
        return json.dumps(whole, indent=1).encode()


def allow_join(cluster: Cluster, kubectl: Kubectl) -> Join:
    """A bootstrap token of the control plane, whose requests the controller-manager approves, as kubeadm leaves it.

    Raises:
        EndedError: kubectl failed.
    """
    token_id, secret = secrets.token_hex(3), secrets.token_hex(8)
    subject = {"kind": "Group", "name": GROUP, "apiGroup": "rbac.authorization.k8s.io"}
    bindings: list[dict[str, Any]] = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"floor-{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        for number, role in enumerate(_ROLES)
    ]
    token = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token_id,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": GROUP,
        },
    }
    kubectl.apply("floor", {"apiVersion": "v1", "kind": "List", "items": [*bindings, token]})
    return Join(cluster.url, (cluster.folder / "ca.crt").read_bytes(), f"{token_id}.{secret}")


def arguments(script: str) -> list[str]:
    """The kernel's arguments in a boot script of the service, without those that are of netboot and of the machine.

    Raises:
        BenchError: it boots nothing.
    """
    kernel = re.search(r"^kernel .*?https?://\S+ (.*?)(?: (?:\|\||&&) .*)?$", script, re.MULTILINE)
    if kernel is None:
        raise BenchError(f"the service's script boots nothing: {script[:400]}")
    ours = ("initrd=", "netboot.", "BOOTIF=", "systemd.hostname=")
    return [word for word in kernel[1].split() if not word.startswith(ours)]


def ipxe(url: str, kernel_arguments: Sequence[str]) -> str:
    """The script: kernel and initrd below `url`. eth0 stays eth0: Linux before 6.2 renames no card that is up."""
    line = " ".join((*kernel_arguments, f"systemd.hostname={NAME}", "net.ifnames=0", "initrd=initrd"))
    return f"#!ipxe\nkernel {url}/kernel {line}\ninitrd --name initrd {url}/initrd\nboot\n"


def initrd(image_initrd: Path, root_url: str, root_format: str, join: Join, scratch: Path, out: Path) -> None:
    """Write the bare initrd to `out`. `image_initrd`: the image's, of which it has busybox and modules.

    Raises:
        BenchError: that one cannot be unpacked.
    """
    tree = scratch / "tree"
    tree.mkdir(parents=True)
    unpack = 'zstd -qdc "$1" | cpio -i --quiet -d bin/busybox "lib/netboot/modules*"'
    argv = ["sh", "-c", unpack, "sh", str(image_initrd.resolve())]
    done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)
    if not (tree / "lib/netboot/modules.order").is_file():
        raise BenchError(f"the image's initrd cannot be unpacked: {done.stderr.strip()}")
    settings = f"URL={root_url}\nFORMAT={root_format}\n"
    (scratch / "initrd.cpio").write_bytes(cpio.archive(entries(tree, settings, join)))
    try:
        compress(scratch / "initrd.cpio", out)
    except (ImageError, OSError) as error:
        raise BenchError(f"the floor's initrd cannot be packed: {error}") from None


def entries(tree: Path, settings: str, join: Join) -> Iterator[cpio.Entry]:
    """What the bare initrd holds. `tree`: busybox and modules as the image's initrd has them."""
    for name in ("dev", "proc", "sys", "run", "new", "tmp"):
        yield cpio.directory(name)
    yield cpio.character_device("dev/console", 5, 1)
    yield cpio.file("bin/busybox", (tree / "bin/busybox").read_bytes(), 0o755)
    yield cpio.symlink("bin/sh", "busybox")
    for path in sorted((FILES / "initrd").iterdir()):
        yield cpio.file(path.name, path.read_bytes(), 0o755)
    for path in sorted(path for path in (FILES / "run").rglob("*") if path.is_file()):
        yield cpio.file(f"floor/{path.relative_to(FILES / 'run')}", path.read_bytes())
    yield cpio.file("floor/floor/ca.crt", join.authority)
    yield cpio.file("floor/floor/bootstrap.kubeconfig", join.kubeconfig(), 0o600)
    yield cpio.file("settings", settings.encode())
    order = (tree / "lib/netboot/modules.order").read_text().split()
    loaded = [name for name in order if name not in PASSED_OVER]
    yield cpio.file("modules.order", "".join(f"{name}\n" for name in loaded).encode())
    for name in loaded:
        yield cpio.file(f"modules/{name}", (tree / "lib/netboot/modules" / name).read_bytes())
