"""Where the Kubernetes programs come from, in this order; the first that has them all wins.

1. `KUBEBUILDER_ASSETS`, a folder of programs (the convention of controller-runtime's envtest);
2. our cache folder, from an earlier run;
3. `NETBOOT_KUBE_ARCHIVE`, an xz-compressed multi-call binary that must have the pinned digest;
4. a build from the pinned Go modules (`lab/kube/source`, verified by go.sum): about five minutes on two cores, with
   the machine's Go or a pinned one (`lab.toolchain`).
"""

import fcntl
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.toolchain import NoGoError, find_go

VERSION = "1.34.4"
ARCHIVE_SHA256 = "30b9658368242103143b4712cf8eaacfdf3ed51894e36eac8adaa28e2812e429"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
SOURCE = Path(__file__).parent / "source"


class NoKubernetesError(Exception):
    """The programs cannot be had; the message says every way that was tried."""


def find(cache: Path) -> Path:
    """A folder with all the programs of the pinned version.

    Raises:
        NoKubernetesError.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and _complete(Path(assets)):
        return Path(assets)
    folder = cache / f"kube-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"kube-{VERSION}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _complete(folder):
            _install(folder)
    return folder


def _complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in PROGRAMS)


def _install(folder: Path) -> None:
    """Unpack or build into a temporary folder, and put it in place whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        archive = os.environ.get("NETBOOT_KUBE_ARCHIVE")
        if archive:
            _unpack(Path(archive), new / "kube")
        else:
            _build(new / "kube", folder.parent)
        for program in PROGRAMS:
            (new / program).symlink_to("kube")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def _unpack(archive: Path, target: Path) -> None:
    try:
        data = archive.read_bytes()
    except OSError as error:
        raise NoKubernetesError(f"NETBOOT_KUBE_ARCHIVE={archive}: {error.strerror}; unset it to build") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest != ARCHIVE_SHA256:
        raise NoKubernetesError(
            f"NETBOOT_KUBE_ARCHIVE={archive} has the digest {digest}, pinned is {ARCHIVE_SHA256}: not used"
        )
    target.write_bytes(lzma.decompress(data))
    target.chmod(0o755)


def _build(target: Path, cache: Path) -> None:
    try:
        go = find_go(cache)
    except NoGoError as error:
        raise NoKubernetesError(
            "no Kubernetes programs: KUBEBUILDER_ASSETS and NETBOOT_KUBE_ARCHIVE are not set, and cannot be built: "
            f"{error}"
        ) from None
    print(f"building Kubernetes {VERSION} from its Go modules: about five minutes on two cores", file=sys.stderr)
    package = "k8s.io/component-base/version"
    facts = {"gitVersion": f"v{VERSION}", "gitMajor": "1", "gitMinor": "34", "gitTreeState": "clean"}
    facts |= {"gitCommit": "netboot-lab", "buildDate": "1970-01-01T00:00:00Z"}
    flags = "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in facts.items())
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-trimpath -buildvcs=false -mod=readonly"}
    argv = [str(go), "build", "-ldflags", flags, "-o", str(target), "./kube"]
    done = subprocess.run(argv, cwd=SOURCE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoKubernetesError(f"building Kubernetes failed:\n{done.stderr[-2000:]}")
