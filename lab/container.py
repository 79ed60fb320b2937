"""netboot as a container image, built by buildah of `deploy/container/Containerfile`: docs/container.md.

`python -m lab.container FOLDER`, behind `make container`: an OCI archive, and its bill of materials beside it. The same
commit and the same packages of Debian give the same image. No registry is asked, unless `BASE` names an image of one.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from images.build.documents import licences, sbom
from images.build.steps.bootstrap import OWN_NAMESPACES
from images.formats import debian
from lab import packages
from lab.work import ROOT, work_folder

CONTAINERFILE = ROOT / "deploy/container/Containerfile"
NAME = "localhost/netboot"
PACKAGES = ("python3", "ca-certificates", "ipxe", "tzdata")
"""As the Containerfile asks of its base."""
FOLDERS = tuple(
    f"etc/netboot/{name}" for name in ("authorities", "inventory", "keys", "secrets", "tls/join", "tls/management")
)
"""Empty: what is mounted there is what the configuration means when it says nothing else."""
_BASE = "localhost/netboot-base:1"
_SLIM = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
"""What the images of Debian that are called slim leave out."""


class Storage:
    """Images of buildah, and of podman, in folders of their own: nothing of this host's is touched. `run`: of a short
    name, for podman takes no other; nothing is kept there."""

    def __init__(self, folder: Path, run: Path) -> None:
        self.options = ["--root", str(folder), "--runroot", str(run), "--storage-driver", "vfs"]

    def buildah(self, *arguments: str) -> str:
        """What it prints.

        Raises:
            subprocess.CalledProcessError: with what it said, on our standard error.
        """
        return said(["buildah", *self.options, *arguments])

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """The root of an image, to be read."""
        container = self.buildah("from", "--pull-never", image)
        try:
            yield Path(self.buildah("mount", container))
        finally:
            self.buildah("rm", container)


def base(target: Path) -> Path:
    """A root of this machine's own distribution, as a tar: what is packed here is for its Python."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    options = [f"--dpkgopt={line}" for line in _SLIM]
    options = ["--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", *options]
    said([*OWN_NAMESPACES, "mmdebstrap", *options, suite, str(target)])
    return target


def context(folder: Path, root: Path) -> Path:
    """What the Containerfile takes files from, in `folder`. `root`: what is in our Debian package."""
    for path in ("usr/lib/netboot", "usr/bin/netboot"):
        (folder / "root" / path).parent.mkdir(parents=True, exist_ok=True)
        if (root / path).is_symlink():
            (folder / "root" / path).symlink_to((root / path).readlink())
        else:
            shutil.copytree(root / path, folder / "root" / path, symlinks=True)
    documents = folder / "root/usr/share/doc/netboot"
    documents.mkdir(parents=True)
    shutil.copy(root / "usr/share/doc/netboot/copyright", documents)
    for path in FOLDERS:
        (folder / "root" / path).mkdir(parents=True)
    return folder


def imported(storage: Storage, tar: Path) -> str:
    """The name of a base that is in `storage` then."""
    container = storage.buildah("from", "scratch")
    storage.buildah("add", container, str(tar), "/")
    storage.buildah("commit", "--quiet", "--rm", "--timestamp", "0", container, _BASE)
    return _BASE


def build(storage: Storage, made: Path, of: str, version: str) -> str:
    """The image ID of `localhost/netboot:<version>`. `made`: `context`; `of`: its base."""
    arguments = {"BASE": of, "VERSION": version, "REVISION": revision()}
    return storage.buildah(
        *("build", "--quiet", "--isolation", "chroot", "--timestamp", str(packages.moment())),
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        *("--file", str(CONTAINERFILE), "--tag", f"{NAME}:{version}", str(made)),
    )


def bill(root: Path, version: str) -> bytes:
    """The bill of materials (CycloneDX) of an image: Debian's packages, libraries of Python, netboot itself."""
    installed = debian.installed((root / "var/lib/dpkg/status").read_text(encoding="utf-8"))
    (folder,) = (root / packages.HOME).glob("lib/python3*/site-packages")
    libraries = {each.name: each.version for each in metadata.distributions(path=[str(folder)])}
    architecture = next(package.architecture for package in installed if package.name == "libc6")
    release = dict(
        line.split("=", 1) for line in (root / "usr/lib/os-release").read_text(encoding="utf-8").splitlines()
    )
    suite = release["VERSION_CODENAME"]
    subject = sbom.Subject("netboot", version, release["ID"], suite, architecture, packages.moment())
    licensed = {licence.package.identity: licence for licence in licences.read(root, installed)}
    return sbom.sbom(subject, installed, {}, licensed, libraries=libraries)


def revision() -> str:
    """The commit; "": it was built of no checkout."""
    argv = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def said(argv: Sequence[str]) -> str:
    """What a program prints, dated as all that is packed.

    Raises:
        subprocess.CalledProcessError: with what it said, on our standard error.
    """
    surroundings = os.environ | {"SOURCE_DATE_EPOCH": str(packages.moment()), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(argv, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout.strip()


def main(target: Path) -> None:
    """Make the archive, and say where it is."""
    version = os.environ.get("VERSION") or metadata.version("netboot")
    target.mkdir(parents=True, exist_ok=True)
    with work_folder("container") as folder, tempfile.TemporaryDirectory() as run:
        packages.deb(folder / "deb", packages.wheel(folder / "deb"), version)
        made, storage = context(folder / "context", folder / "deb/root"), Storage(folder / "storage", Path(run))
        of = os.environ.get("BASE") or imported(storage, base(folder / "base.tar"))
        build(storage, made, of, version)
        with storage.mounted(f"{NAME}:{version}") as root:
            architecture = said(["dpkg", "--print-architecture"])
            (target / f"netboot_{version}_{architecture}.container.cdx.json").write_bytes(bill(root, version))
        archive = target / f"netboot_{version}_{architecture}.oci.tar"
        archive.unlink(missing_ok=True)
        storage.buildah("push", "--quiet", f"{NAME}:{version}", f"oci-archive:{archive}:netboot:{version}")
        shutil.rmtree(folder)
    print(archive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
