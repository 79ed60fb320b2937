"""netboot's container image, and containers of it: buildah's and podman's storage in a folder of the test's own."""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from images.values.types import Architecture
from lab import container, foreign
from lab.container import Storage
from lab.processes import Child, child
from lab.work import CACHE
from tests import deb
from tests.processes import wait_for

HELD = "--read-only --read-only-tmpfs=false --cap-drop=all --security-opt=no-new-privileges"
"""What a Pod of the chart is held by."""
ACCOUNT = 65532
"""Of the image; it has no name on hosts."""
_PODMAN = "podman {} --runtime crun --cgroup-manager cgroupfs --events-backend=none"
_RUN = "run --cgroups=disabled --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 --rm"
"""Without its own cgroups, and with limits that may be set by who has no CAP_SYS_RESOURCE."""
_ALONE = "mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "
"""crun refuses a host with cgroups of both versions."""


@dataclass(frozen=True)
class Container:
    """`pid`: of the supervisor, as this machine counts."""

    podman: Child
    pid: int

    def get(self, url: str) -> str:
        """What is answered inside; OSError while it is not."""
        argv = ["nsenter", f"--target={self.pid}", "--net", "curl", "-sf", "--max-time", "60", url]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.returncode, url)
        return done.stdout

    def netboot(self, *arguments: str) -> str:
        """What a command of ours prints inside, as by `kubectl exec`; CalledProcessError where it fails."""
        argv = ["nsenter", f"--target={self.pid}", "--all", "--root", "--wd", f"--setuid={ACCOUNT}"]
        argv += [f"--setgid={ACCOUNT}", "/usr/bin/netboot", *arguments]
        env = {"PATH": "/usr/bin"}
        return subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextlib.contextmanager
def image(
    folder: Path, version: str, times: int = 1, of: Architecture | None = None
) -> Iterator[tuple[Storage, list[str]]]:
    """Storage with the image in it, until the block ends; the IDs that it had, built so many times.

    `of`: an architecture, this machine's by itself; `folder / "deb"` has the package's files for this machine's.
    """
    (of,) = foreign.wanted(of or "")
    with tempfile.TemporaryDirectory() as run:
        storage = Storage(folder / "storage", Path(run))
        made, below = context(folder, of), container.imported(storage, base(of), of)
        yield storage, [container.build(storage, made, below, version, of) for _ in range(times)]
    shutil.rmtree(folder)


def context(folder: Path, of: Architecture) -> Path:
    """Of this tree, whose Debian package is made once for all tests."""
    package = deb.package(folder)
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(folder / "deb")], check=True)
    package.unlink()
    return container.context(folder / "context", foreign.tree(folder / "deb", of))


def base(of: Architecture) -> Path:
    """Debian's packages as of when they were fetched; the cache has the last one alone of each architecture."""
    maker = Path(container.__file__).read_bytes()
    kept = CACHE / "container" / of / f"{hashlib.sha256(maker).hexdigest()[:16]}.tar"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"container-{of}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            shutil.rmtree(kept.parent)
            kept.parent.mkdir()
            container.base(kept.with_name("new.tar"), of).rename(kept)
    return kept


@contextlib.contextmanager
def running(
    storage: Storage, image: str, folder: Path, options: Sequence[str], arguments: Sequence[str] = ()
) -> Iterator[Container]:
    """One, until the block ends. `options`: of `podman run`; `arguments`: in place of the image's own."""
    file = folder / "supervisor.pid"
    argv = _podman(storage, [f"--pidfile={file}", *options, image, *arguments])
    with child("podman", argv, folder / "podman.log", grace=180) as one:

        def pid() -> int:
            one.check()
            return int(file.read_text() or 0)

        yield Container(one, wait_for(pid))


def printed(storage: Storage, image: str, options: Sequence[str], arguments: Sequence[str]) -> str:
    """What a container prints that ends by itself; CalledProcessError where it fails."""
    argv = _podman(storage, [*options, image, *arguments])
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout


def _podman(storage: Storage, more: Sequence[str]) -> list[str]:
    line = f"{_ALONE}{_PODMAN.format(' '.join(storage.options))} {_RUN} {HELD} {shlex.join(more)}"
    return ["unshare", "--mount", "--propagation=private", "sh", "-c", line]


def settings(storage: Storage, image: str) -> dict[str, object]:
    """What an image says of how it is to be run (OCI's `config`)."""
    found: dict[str, object] = json.loads(storage.buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    return found


def given(folder: Path, owner: int) -> None:
    """A folder, with all that is in it, becomes this account's."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)
