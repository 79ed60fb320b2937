"""A machine whose systemd runs the service as it is installed: a built image's root, on which the Debian package was
installed by dpkg, and set up by an operator's commands.

The commands run in the image's root with a layer over it, and without a network; what they write is kept as a second
squashfs. QEMU starts the image's own kernel and initrd, to which a second one is appended: both squashfs files, and a
first process that mounts one over the other. So no image is built for it, and there is neither disk nor network.
"""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from images.formats import cpio
from lab.accelerator import arguments
from lab.processes import Child, child
from tests.boot.data_centre import BuiltImage

BROUGHT = "/run/brought"
"""Where the operator's commands find what they were given."""
_INSTALL = """\
set -e
cd "$0"
mkdir image upper root
mount -t squashfs -o ro,loop "$1" image
mount -t tmpfs -o mode=0755 tmpfs upper
mkdir upper/data upper/work
mount -t overlay -o lowerdir=image,upperdir=upper/data,workdir=upper/work overlay root
mount -t proc proc root/proc
for place in run tmp dev; do mount -t tmpfs -o mode=0755 tmpfs root/$place; done
for device in null urandom; do touch root/dev/$device; mount --bind /dev/$device root/dev/$device; done
mkdir "root$2"
mount --bind brought "root$2"
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot root sh -ec "$3"
cp -a tree/. root
umount -R root
mksquashfs upper/data installed.squashfs -quiet -no-progress -comp zstd -Xcompression-level 1
"""
_START = b"""\
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev; mount -t tmpfs tmpfs /run
while read -r module; do insmod "/lib/netboot/modules/$module"; done </lib/netboot/modules.order
mkdir -p /new /run/image /run/installed /run/upper
mount -t squashfs -o ro,loop /image.squashfs /run/image
mount -t squashfs -o ro,loop /installed.squashfs /run/installed
mount -t tmpfs -o mode=0755 tmpfs /run/upper
mkdir /run/upper/data /run/upper/work
layers=lowerdir=/run/installed:/run/image,upperdir=/run/upper/data,workdir=/run/upper/work
mount -t overlay -o "$layers" overlay /new
umount -l /run/image /run/installed /run/upper
for place in dev proc sys run; do mount --move "/$place" "/new/$place"; done
exec switch_root -c /dev/console /new /sbin/init
"""


def installed(folder: Path, built: BuiltImage, commands: str) -> None:
    """Run an operator's shell commands in the image's root, as root; what they leave is `folder/installed.squashfs`.
    They find `folder/brought` at `BROUGHT`; `folder/tree` is laid over the root in the end."""
    argv = ["unshare", "--fork", "--kill-child", "--mount", "--pid", "--net", "sh", "-c", _INSTALL]
    argv += [str(folder), str(blob(built, "root")), BROUGHT, commands]
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def write(path: Path, text: str) -> None:
    """A file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def enable(folder: Path, unit: str) -> None:
    """As `systemctl enable`."""
    wants = folder / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit).symlink_to(f"/etc/systemd/system/{unit}")


def blob(built: BuiltImage, artifact: str) -> Path:
    sha256: str = built.manifest["artifacts"][artifact]["sha256"]
    return built.site.store / "blobs" / sha256


@contextlib.contextmanager
def switched_on(folder: Path, built: BuiltImage, masked: Sequence[str]) -> Iterator[Child]:
    """The machine with what `installed` left over its root, for the length of a block; what is written to its second
    serial port is the output. Its console: `<folder>/console.log`. `masked`: units of the image that have nothing to do
    here."""
    layer, initrd = folder / "installed.squashfs", folder / "initrd"
    more = [cpio.file("start", _START, 0o755)]
    more += [cpio.file("image.squashfs", blob(built, "root").read_bytes())]
    more += [cpio.file("installed.squashfs", layer.read_bytes())]
    first = blob(built, "initrd").read_bytes()
    initrd.write_bytes(first + bytes(-len(first) % 4) + cpio.archive(more))
    words = ["console=ttyS0", "panic=-1", "rdinit=/start", *(f"systemd.mask={unit}" for unit in masked)]
    argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    argv += ["-machine", "q35", *arguments(built.accelerator), "-m", "2048", "-smp", "2"]
    argv += ["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"]
    argv += ["-kernel", str(blob(built, "kernel")), "-initrd", str(initrd), "-append", " ".join(words)]
    argv += ["-serial", f"file:{folder}/console.log", "-serial", "stdio"]
    with child("the machine", argv, folder / "said.log", grace=3) as running:
        yield running
