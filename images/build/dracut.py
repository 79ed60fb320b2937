"""An initrd that dracut made, as the frame of ours: what of its archive stays, and where our files go in it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from images.formats import cpio

FOLDER = Path(str(files("images") / "node" / "dracut"))
"""What runs our stage (`images.build.initrd.STAGE`) in an initrd by dracut, and the module that dracut is given."""
ARCHIVE = "dracut.cpio"
PACKAGES = "packages.json"
COPYRIGHTS = "copyrights"
"""What the step writes: dracut's archive; of which packages that is, and which files several of them have; a root with
their copyright files."""
_PREFIXES = ("lib/", "bin/", "sbin/")
"""Links into usr where it is merged, as in all that dracut makes of our trees."""
_OF_THE_BUILD = ("etc/cmdline.d/90multipath.conf", "var/cache/ldconfig/", "var/log/")
"""What the builder's own kernel has loaded (dracut's multipath looks), ldconfig's notes of inodes and times, logs."""


def settled(archive: bytes) -> bytes:
    """dracut's archive as our writer has it: order, times and numbers of inodes are the same each time.

    Raises:
        ValueError: it is no archive (`cpio.read`).
    """
    entries = (replace(entry, path=entry.path.removeprefix("./")) for entry in cpio.read(archive))
    return cpio.archive(entry for entry in entries if entry.path != "." and not entry.path.startswith(_OF_THE_BUILD))


def framed(archive: bytes, ours: Iterable[cpio.Entry]) -> list[cpio.Entry]:
    """The entries of such an archive and ours, for `cpio.archive`; of two with one path ours."""
    entries = {entry.path: entry for entry in cpio.read(archive)}
    for entry in ours:
        path = f"usr/{entry.path}" if entry.path.startswith(_PREFIXES) else entry.path
        entries[path] = replace(entry, path=path)
    return list(entries.values())


def hooks() -> Iterator[cpio.Entry]:
    """Our hooks and what they start."""
    for path in sorted((FOLDER / "hooks").rglob("*.sh")):
        yield cpio.file(f"lib/dracut/{path.relative_to(FOLDER).as_posix()}", path.read_bytes(), 0o755)
    yield cpio.file("lib/netboot/dracut.sh", (FOLDER / "stage.sh").read_bytes(), 0o755)
