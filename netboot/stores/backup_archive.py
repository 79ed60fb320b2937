"""Reading a backup: its files are unpacked, and each is held against its digest."""

import hashlib
import os
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from images.values import files
from netboot.stores.backup import DATABASES, FORMAT, MANIFEST, BackupError, Contents, Entry

LONGEST_MANIFEST = 64 * 1024 * 1024
_BLOCK = 1024 * 1024


def read_backup(data: BinaryIO, folder: Path) -> Contents:
    """Unpack into `folder` (private to us), each file under the number of its place in the manifest, and verify all.

    Raises:
        BackupError: not a backup, damaged, cut short, or of a newer netboot. Nothing outside `folder` was touched.
        OSError: `folder` takes no more.
    """
    try:
        with _archive(data) as archive:
            contents = _manifest(archive)
            for number, entry in enumerate(contents.files):
                member = archive.next()
                if member is None or not member.isreg() or (member.name, member.size) != (entry.name, entry.size):
                    raise BackupError(f"the backup is damaged or cut short: {entry.name} is not where it should be")
                _unpack(archive, member, entry, folder / str(number))
            if archive.next() is not None:
                raise BackupError("the backup holds more than its manifest says")
    except (tarfile.TarError, EOFError, ValueError):
        raise BackupError("the backup is damaged or cut short: its archive breaks off before its last file") from None
    except OSError as error:
        if files.is_full(error):
            raise OSError(error.errno, error.strerror, str(folder)) from None
        raise BackupError(f"the backup cannot be read: {error.strerror or error}") from None
    for number, entry in enumerate(contents.files):
        if entry.name in DATABASES:
            _check_database(folder / str(number), entry.name)
    return contents


def _archive(data: BinaryIO) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=data, mode="r|*")
    except (tarfile.TarError, EOFError):
        raise BackupError("no archive, so no backup that `netboot backup` has made") from None


def _manifest(archive: tarfile.TarFile) -> Contents:
    member = archive.next()
    body = archive.extractfile(member) if member is not None and member.isreg() else None
    if member is None or body is None or member.name != MANIFEST or member.size > LONGEST_MANIFEST:
        raise BackupError("not a backup that `netboot backup` has made")
    try:
        contents = Contents.model_validate_json(body.read())
    except ValidationError:
        raise BackupError("not a backup that this netboot understands: its manifest is of another form") from None
    if contents.format != FORMAT:
        words = f"a backup of format {contents.format}, this one knows {FORMAT}"
        raise BackupError(f"{words}: use the netboot that made it")
    names = [entry.name for entry in contents.files]
    if len(set(names)) != len(names) or "config" not in names:
        raise BackupError("the backup is damaged: its manifest contradicts itself")
    return contents


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry, copy: Path) -> None:
    body = archive.extractfile(member)
    assert body is not None  # it is a regular file
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while block := body.read(_BLOCK):
            digest.update(block)
            size += len(block)
            out.write(block)
    if size != entry.size or digest.hexdigest() != entry.sha256:
        raise BackupError(f"the backup is damaged: {entry.name} is not what was backed up")


def _check_database(copy: Path, name: str) -> None:
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            verdict = db.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict != "ok":
        raise BackupError(f"the backup's {name} is not a sound database: {verdict}")
