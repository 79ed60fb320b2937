"""A signed apt repository with one package, `kubelet`: what an operator gets from the Kubernetes project, made here.

The kubelet is the one that `lab.kube.binaries` finds. The repository is made once for each content and then kept in a
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
from pathlib import Path

from lab.errors import UnusableError
from lab.kube.binaries import VERSION
from lab.processes import run

PACKAGE_VERSION = f"{VERSION}-1.1"
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
_CONTROL = {
    "Package": "kubelet",
    "Version": PACKAGE_VERSION,
    "Maintainer": "netboot lab <lab@netboot.invalid>",
    "Depends": "iptables, iproute2, mount, util-linux",
    "Section": "admin",
    "Priority": "optional",
    "Description": "Node agent of Kubernetes, packaged by netboot's lab",
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
    package = target / f"kubelet_{PACKAGE_VERSION}_{architecture}.deb"
    control = _CONTROL | {"Architecture": architecture}
    _package(kubelet, package, scratch / "tree", control)
    packages = "".join(f"{name}: {value}\n" for name, value in (control | _file(package)).items())
    (target / "Packages").write_text(packages)
    with _signing_key(target / KEY) as gpg:
        (scratch / "Release").write_text(_release(target / "Packages", architecture))
        run([*gpg, "--clearsign", "-o", str(target / "InRelease"), str(scratch / "Release")], seconds=SECONDS)


def _package(kubelet: Path, package: Path, tree: Path, control: dict[str, str]) -> None:
    """Not compressed: it is unpacked once, on this machine."""
    for folder in ("DEBIAN", "usr/bin", "usr/lib/systemd/system"):
        (tree / folder).mkdir(parents=True)
    shutil.copyfile(kubelet, tree / "usr/bin/kubelet")
    (tree / "usr/bin/kubelet").chmod(0o755)
    (tree / "usr/lib/systemd/system/kubelet.service").write_text(UNIT)
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
def _signing_key(public: Path) -> Iterator[list[str]]:
    """A gpg command that signs with a key of its own, whose public half is in `public`; the key goes with the block."""
    with tempfile.TemporaryDirectory(prefix="netboot-gpg-") as home:  # short: its agent's socket lies in it
        gpg = ["gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]
        try:
            run([*gpg, "--quick-generate-key", "netboot lab", "ed25519", "sign", "never"], seconds=SECONDS)
            run([*gpg, "--armor", "--output", str(public), "--export"], seconds=SECONDS)
            yield gpg
        finally:
            run(["gpgconf", "--homedir", home, "--kill", "all"], seconds=SECONDS)
