"""A small host: the root of a distribution from nothing, and its systemd as the first process of namespaces of its own.

There is no kernel of its own, no device and no network but loopback; what a unit asks of systemd (mount namespaces,
filters, its watchdog) is real.
"""

import contextlib
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from images.build.steps.bootstrap import OWN_NAMESPACES
from tests.processes import wait_for

SECONDS = 240.0
"""For anything, on a machine that is busy with other things."""
PAUSE = 0.1
"""Before systemd is asked again: a program has to start for it."""
PACKAGES = "systemd-sysv,dbus,python3,adduser,curl,ipxe"
_NAMESPACES = ("--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup")
_START = """\
set -e
cd "$0"
mount --bind . . && cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for place in run tmp dev; do mount -t tmpfs -o mode=0755 tmpfs $place; done
chmod 1777 tmp
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts dev/mqueue dev/hugepages
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
pivot_root . mnt
umount -l /mnt
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
"""
"""As container-interface of systemd asks for it (https://systemd.io/CONTAINER_INTERFACE)."""


@dataclass(frozen=True)
class Host:
    """`init`: the process of its systemd, as this machine counts."""

    root: Path
    init: int

    def run(self, command: str, status: int = 0) -> str:
        """What a shell's command says inside, on both outputs, as root."""
        entered = ["nsenter", f"--target={self.init}", "-m", "-u", "-i", "-n", "-p", "-C", "env", "-i"]
        entered += [
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
        ]
        done = subprocess.run(
            [*entered, "sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout.strip()


def made(root: Path, *more: str) -> None:
    """The root of this machine's own distribution: what is built here is for its Python. `more`: packages."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    argv = [
        *OWN_NAMESPACES,
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join((PACKAGES, *more))}",
        "--format=directory",
        suite,
        str(root),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def switched_on(root: Path) -> Iterator[Host]:
    """The host while in the block; nothing of it runs afterwards."""
    argv = ["unshare", "--fork", "--kill-child", *_NAMESPACES, "bash", "-c", _START, str(root)]
    log = root.with_name("init.log")
    with log.open("wb") as output, subprocess.Popen(argv, stdout=output, stderr=output) as namespaces:
        try:
            wait_for(lambda: _is_init(namespaces), SECONDS, PAUSE)
            host = Host(root, _child(namespaces))
            wait_for(lambda: host.run("systemctl is-system-running || true") in ("running", "degraded"), SECONDS, PAUSE)
            yield host
        finally:
            namespaces.kill()


def _child(namespaces: "subprocess.Popen[bytes]") -> int:
    return int(Path(f"/proc/{namespaces.pid}/task/{namespaces.pid}/children").read_text() or 0)


def _is_init(namespaces: "subprocess.Popen[bytes]") -> bool:
    assert namespaces.poll() is None, "the namespaces ended: see init.log"
    with contextlib.suppress(OSError):
        return Path(f"/proc/{_child(namespaces)}/comm").read_text() == "systemd\n"
    return False
