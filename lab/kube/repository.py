"""A signed apt repository with `kubelet` and `kubernetes-cni`: what an operator gets from the Kubernetes project.

Names, dependencies and paths are the project's (kubernetes/release: cmd/krel/templates/latest, metadata.yaml and the
specs beside it; kubelet from 1.28 on). The kubelet is the one that `lab.kube.binaries` finds; the CNI plugins are the
distribution's, to which `/opt/cni/bin` links. The repository is made once for each content and then kept in a
cache; the key that signs it is made for it and thrown away, so that its public half can sign for nothing else.
"""

import contextlib
import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.errors import UnusableError
from lab.kube.binaries import VERSION
from lab.processes import run

PACKAGE_VERSION = f"{VERSION}-1.1"
CNI_VERSION = "1.7.1-1.1"
KEY = "kubernetes.asc"
PUBLISHED = 1_767_225_600
"""Seconds since 1970. Of everything in it, so that the same kubelet gives the same repository up to its signature."""
SECONDS = 300.0
UNIT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""
"""As in the Kubernetes project's own package."""
PLUGINS = (
    *("bandwidth", "bridge", "dhcp", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan"),
    *("portmap", "ptp", "sbr", "static", "tuning", "vlan", "vrf"),
)
"""Those that the distributions' package has too; the project's has `dummy` and `tap` besides."""
_ABOUT = {"Maintainer": "netboot lab <lab@netboot.invalid>", "Section": "net", "Priority": "optional"}
_KUBELET = {
    "Package": "kubelet",
    "Version": PACKAGE_VERSION,
    "Depends": "kubernetes-cni (>= 1.2.0), mount, util-linux",
    "Recommends": "iptables (>= 1.8.4)",
    "Description": "Node agent of Kubernetes, packaged by netboot's lab",
}
_CNI = {
    "Package": "kubernetes-cni",
    "Version": CNI_VERSION,
    "Depends": "containernetworking-plugins",
    "Description": "CNI plugins where Kubernetes' own package has them, packaged by netboot's lab",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A flat repository: its suite is `/`."""

    folder: Path

    @property
    def url(self) -> str:
        """For a recipe's `sources`."""
        return f"file://{self.folder}"

    @property
    def key(self) -> Path:
        """The public key that signed it, armoured: for its `signed_by`."""
        return self.folder / KEY


def repository(binaries: Path, cache: Path, architecture: str = "amd64") -> Repository:
    """The repository with this kubelet, which runs on `architecture`, from the cache or made now.

    Raises:
        UnusableError: dpkg-deb or gpg are not installed. EndedError: one of them failed, with its words.
    """
    for tool, package in (("dpkg-deb", "dpkg"), ("gpg", "gpg"), ("gpg-agent", "gpg-agent")):
        if shutil.which(tool) is None:
            raise UnusableError(f"no {tool} here to make an apt repository with: install the package {package}")
    kubelet = (binaries / "kubelet").resolve()
    folder = cache / f"kubernetes-{VERSION}-{architecture}-{_identity(kubelet)[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                new = Path(scratch) / "repository"
                new.mkdir(mode=0o755)
                _make(kubelet, new, Path(scratch), architecture)
                new.rename(folder)
    return Repository(folder)


def _identity(kubelet: Path) -> str:
    with kubelet.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(f"{digest}\n{Path(__file__).read_text()}".encode()).hexdigest()


def _make(kubelet: Path, target: Path, scratch: Path, architecture: str) -> None:
    listed = []
    for control, fill in ((_KUBELET, partial(_kubelet, kubelet)), (_CNI, _plugins)):
        fields = control | _ABOUT | {"Architecture": architecture}
        package = target / f"{fields['Package']}_{fields['Version']}_{architecture}.deb"
        tree = scratch / fields["Package"]
        fill(tree)
        _package(package, tree, fields)
        listed.append("".join(f"{name}: {value}\n" for name, value in (fields | _file(package)).items()))
    (target / "Packages").write_text("\n".join(listed))
    with signing_key(target / KEY) as gpg:
        (scratch / "Release").write_text(_release(target / "Packages", architecture))
        run([*gpg, "--clearsign", "-o", str(target / "InRelease"), str(scratch / "Release")], seconds=SECONDS)


def _kubelet(program: Path, tree: Path) -> None:
    files = {
        "etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n",
        "etc/kubernetes/manifests/.kubelet-keep": "",
        "usr/lib/systemd/system/kubelet.service": UNIT,
        "var/lib/kubelet/.kubelet-keep": "",
        "DEBIAN/conffiles": "/etc/default/kubelet\n",
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "usr/bin").mkdir()
    shutil.copyfile(program, tree / "usr/bin/kubelet")
    (tree / "usr/bin/kubelet").chmod(0o755)


def _plugins(tree: Path) -> None:
    for folder in ("DEBIAN", "etc/cni/net.d", "opt/cni/bin"):
        (tree / folder).mkdir(parents=True)
    (tree / "etc/cni/net.d/.kubernetes-cni-keep").touch()
    for name in PLUGINS:
        (tree / "opt/cni/bin" / name).symlink_to(f"/usr/lib/cni/{name}")


def _package(package: Path, tree: Path, control: dict[str, str]) -> None:
    """Not compressed: it is unpacked once, on this machine."""
    (tree / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in control.items()))
    for path in (tree, *tree.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    environment = ["env", f"SOURCE_DATE_EPOCH={PUBLISHED}"]
    run([*environment, "dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(package)], seconds=SECONDS)


def _file(package: Path) -> dict[str, str]:
    with package.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"Filename": f"./{package.name}", "Size": str(package.stat().st_size), "SHA256": digest}


def _release(packages: Path, architecture: str) -> str:
    """What apt asks of a flat repository: Debian's repository format, `Release`."""
    data = packages.read_bytes()
    return f"""\
Origin: netboot lab
Label: Kubernetes
Codename: kubernetes
Date: {datetime.fromtimestamp(PUBLISHED, UTC):%a, %d %b %Y %H:%M:%S} UTC
Architectures: {architecture}
SHA256:
 {hashlib.sha256(data).hexdigest()} {len(data)} Packages
"""


@contextlib.contextmanager
def signing_key(public: Path) -> Iterator[list[str]]:
    """A gpg command that signs with a key of its own, whose public half is in `public`; the key goes with the block."""
    with tempfile.TemporaryDirectory(prefix="netboot-gpg-") as home:  # short: its agent's socket lies in it
        gpg = ["gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]
        try:
            run([*gpg, "--quick-generate-key", "netboot lab", "ed25519", "sign", "never"], seconds=SECONDS)
            run([*gpg, "--armor", "--output", str(public), "--export"], seconds=SECONDS)
            yield gpg
        finally:
            run(["gpgconf", "--homedir", home, "--kill", "all"], seconds=SECONDS)
