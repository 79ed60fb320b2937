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


def framed(archive: bytes, ours: Iterable[cpio.Entry]) -> list[cpio.Entry]:
    """dracut's entries and ours, for `cpio.archive`; of two with one path ours.

    Raises:
        ValueError: it is no archive of dracut's (`cpio.read`).
    """
    entries = {entry.path: entry for entry in _kept(archive)}
    for entry in ours:
        path = f"usr/{entry.path}" if entry.path.startswith(_PREFIXES) else entry.path
        entries[path] = replace(entry, path=path)
    return list(entries.values())


def _kept(archive: bytes) -> Iterator[cpio.Entry]:
    for entry in cpio.read(archive):
        path = entry.path.removeprefix("./")
        if path != "." and not path.startswith(_OF_THE_BUILD):
            yield replace(entry, path=path)


def hooks() -> Iterator[cpio.Entry]:
    """Our hooks and what they start."""
    for path in sorted((FOLDER / "hooks").rglob("*.sh")):
        yield cpio.file(f"lib/dracut/{path.relative_to(FOLDER).as_posix()}", path.read_bytes(), 0o755)
    yield cpio.file("lib/netboot/dracut.sh", (FOLDER / "stage.sh").read_bytes(), 0o755)
