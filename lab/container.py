"""netboot as a container image, built by buildah of `deploy/container/Containerfile`: docs/container.md.

`python -m lab.container FOLDER`, behind `make container`: an OCI archive, and its bill of materials beside it, for each
architecture of `ARCH` (this machine's); of several also an archive of their index. The same commit and the same
packages of Debian give the same image. No registry is asked, unless `BASE` names an image of one.
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

from images.build import architecture
from images.build.documents import licences, sbom
from images.build.steps.bootstrap import OWN_NAMESPACES
from images.errors import ImageError
from images.formats import debian
from images.values.types import Architecture
from lab import foreign, packages
from lab.errors import LabError, UnusableError
from lab.work import ROOT, work_folder

CONTAINERFILE = ROOT / "deploy/container/Containerfile"
NAME = "localhost/netboot"
PACKAGES = ("python3", "ca-certificates", "ipxe", "tzdata")
"""As the Containerfile asks of its base."""
FOLDERS = tuple(
    f"etc/netboot/{name}" for name in ("authorities", "inventory", "keys", "secrets", "tls/join", "tls/management")
)
"""Empty: what is mounted there is what the configuration means when it says nothing else."""
_BASE = "localhost/netboot-base"
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


def base(target: Path, of: Architecture) -> Path:
    """A root of this machine's own distribution, as a tar: what is packed here is for its Python.

    Raises:
        ImageError: this machine cannot run that architecture's programs, with what puts it right.
    """
    with tempfile.TemporaryDirectory() as scratch:
        architecture.check_runs(of, Path(scratch))
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    options = [f"--dpkgopt={line}" for line in _SLIM]
    options = ["--mode=root", f"--architectures={of}", "--variant=minbase", f"--include={','.join(PACKAGES)}", *options]
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


def imported(storage: Storage, tar: Path, of: Architecture) -> str:
    """The name of a base that is in `storage` then."""
    container, name = storage.buildah("from", "scratch"), f"{_BASE}:{of}"
    storage.buildah("add", container, str(tar), "/")
    storage.buildah("config", "--arch", of, container)
    storage.buildah("commit", "--quiet", "--rm", "--timestamp", "0", container, name)
    return name


def build(storage: Storage, made: Path, base: str, version: str, of: Architecture) -> str:
    """The image ID of `localhost/netboot:<version>`. `made`: `context`, of the same architecture."""
    arguments = {"BASE": base, "VERSION": version, "REVISION": revision()}
    return storage.buildah(
        *("build", "--quiet", "--isolation", "chroot", "--timestamp", str(packages.moment())),
        f"--platform=linux/{of}",
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


def check_python(root: Path) -> None:
    """Whether an image's Python is the one that its libraries and their bytecode are for.

    Raises:
        UnusableError: it is another, as that of a `BASE` of another distribution.
    """
    there = (root / "usr/bin/python3").readlink().name
    (libraries,) = (root / packages.HOME).glob("lib/python3*")
    if there != libraries.name:
        raise UnusableError(
            f"the base has {there}, and what is packed here is for {libraries.name}: "
            "take a base of this host's distribution"
        )


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
    """Make the archives, and say where they are."""
    version = os.environ.get("VERSION") or metadata.version("netboot")
    wanted = foreign.wanted(os.environ.get("ARCH", ""))
    target.mkdir(parents=True, exist_ok=True)
    with work_folder("container") as folder, tempfile.TemporaryDirectory() as run:
        storage, ids = Storage(folder / "storage", Path(run)), []
        own = packages.laid_out(folder / "deb", packages.wheel(folder / "deb"))
        for each in wanted:
            made = context(folder / f"context-{each}", foreign.tree(own, each))
            of = os.environ.get("BASE") or imported(storage, base(folder / f"base-{each}.tar", each), each)
            ids.append(build(storage, made, of, version, each))
            with storage.mounted(ids[-1]) as mounted:
                check_python(mounted)
                (target / f"netboot_{version}_{each}.container.cdx.json").write_bytes(bill(mounted, version))
            archive(storage, ["push", "--quiet", ids[-1]], target / f"netboot_{version}_{each}.oci.tar", version)
        if len(ids) > 1:
            index = f"{NAME}-index:{version}"
            storage.buildah("manifest", "create", index, *ids)
            archive(storage, ["manifest", "push", "--all", index], target / f"netboot_{version}.oci.tar", version)
        shutil.rmtree(folder)


def archive(storage: Storage, push: Sequence[str], target: Path, version: str) -> None:
    """An OCI archive of what buildah is to push."""
    target.unlink(missing_ok=True)
    storage.buildah(*push, f"oci-archive:{target}:netboot:{version}")
    print(target)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except (ImageError, LabError) as error:
        sys.exit(str(error))
