"""A machine whose systemd runs the shipped unit: a built image's root with the service installed on top of it.

QEMU starts the image's own kernel and initrd, to which a second one is appended: both squashfs files, and a first
process that mounts one over the other. So nothing is built for it, and there is neither disk nor network.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from images.formats import cpio
from lab.accelerator import arguments
from lab.packages import OURS, needed
from lab.processes import Child, child
from lab.work import ROOT
from tests.boot.data_centre import BuiltImage

UID = 990
"""Of the user `netboot`, as an operator makes one for a service."""
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_ACCOUNTS = {"passwd": f"netboot:x:{UID}:{UID}::/srv/netboot:/usr/sbin/nologin\n", "group": f"netboot:x:{UID}:\n"}
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


def installed(folder: Path, built: BuiltImage) -> Path:
    """A folder of what an operator installs, laid out as in the root: `/opt/netboot` with what `netboot` needs of
    .venv, the unit, enabled, its user and its folders in `/srv/netboot`.

    Raises:
        AssertionError: the image has another Python than .venv, whose libraries do not run there.
    """
    root = blob(built, "root")
    listed = subprocess.run(["unsquashfs", "-l", str(root), f"usr/bin/{PYTHON}"], capture_output=True, check=True)
    assert PYTHON.encode() in listed.stdout, f"the image of this test has no {PYTHON}, of which .venv is"
    site_packages = folder / "opt/netboot/lib" / PYTHON / "site-packages"
    for name in needed("netboot") - {"netboot"}:
        for file in metadata.distribution(name).files or ():
            if ".." not in file.parts and Path(str(file.locate())).is_file():
                target = site_packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), target)
    for name in OURS:
        shutil.copytree(ROOT / name, site_packages / name)
    binaries = folder / "opt/netboot/bin"
    binaries.mkdir()
    (binaries / "python3").symlink_to("/usr/bin/python3")
    (folder / "opt/netboot/pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    (binaries / "netboot").write_text("#!/opt/netboot/bin/python3\nfrom netboot.cli.main import main\n\nmain()\n")
    (binaries / "netboot").chmod(0o755)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j2", str(site_packages)], check=True)
    for name, line in _ACCOUNTS.items():
        before = subprocess.run(["unsquashfs", "-cat", str(root), f"etc/{name}"], capture_output=True, check=True)
        write(folder / "etc" / name, before.stdout.decode() + line)
    write(folder / "etc/systemd/system/netboot.service", (ROOT / "deploy/netboot.service").read_text())
    enable(folder, "netboot.service")
    for name in ("data", "store"):
        (folder / "srv/netboot" / name).mkdir(parents=True, exist_ok=True)
    return folder


def write(path: Path, text: str) -> None:
    """A file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def enable(folder: Path, unit: str) -> None:
    """As `systemctl enable`."""
    wants = folder / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(f"/etc/systemd/system/{unit}")


def blob(built: BuiltImage, artifact: str) -> Path:
    sha256: str = built.manifest["artifacts"][artifact]["sha256"]
    return built.site.store / "blobs" / sha256


@contextlib.contextmanager
def switched_on(folder: Path, built: BuiltImage, tree: Path, masked: Sequence[str]) -> Iterator[Child]:
    """The machine with `tree` over its root, for the length of a block; what is written to its second serial port is
    the output. Its console: `<folder>/console.log`. `masked`: units of the image that have nothing to do here."""
    for path in (tree / "srv/netboot", *(tree / "srv/netboot").rglob("*")):
        os.lchown(path, UID, UID)
    layer, initrd = folder / "installed.squashfs", folder / "initrd"
    fast = ("-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "1")
    subprocess.run(["mksquashfs", str(tree), str(layer), *fast], check=True)
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
