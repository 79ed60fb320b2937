"""Restoring a backup: everything is read and held against its digest first, then put in place, all of it or nothing.

While files change places a marker says so: as long as it is there no service starts, and restoring again completes it.
"""

import hashlib
import os
import re
import secrets
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from images.errors import ImageError
from images.store.store import Store
from images.values import files, strict
from images.values.strict import FaultsError
from netboot.config import Config, load_config
from netboot.stores.backup import DATABASES, FORMAT, MANIFEST, PLAIN, BackupError, Contents, Entry, folders, places
from netboot.stores.lock import RESTORING, sole_instance

LONGEST_MANIFEST = 64 * 1024 * 1024
_BUNDLE = ("site/bundle.json", "site/bundle.sig")
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


def restore(contents: Contents, folder: Path, file: Path) -> list[Path]:
    """Put what `read_backup` left in `folder` in place, for a site whose configuration is `file`; what was written.

    Inventory files that the backup does not have become `….before-restore`, for they could declare a machine twice.

    Raises:
        BackupError: it cannot be; everything is as it was. AlreadyRunningError: the service runs.
    """
    config = _config(contents, folder, file)
    targets = _targets(contents, folder, config, file)
    try:
        config.data.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            for data in _folders_in_use(config, file):
                if data.is_dir():
                    locks.enter_context(sole_instance(data / "lock", interrupted=True))
            _replace(config, contents, folder, targets)
    except OSError as error:
        raise BackupError(f"cannot restore: {error.filename}: {error.strerror}; everything is as it was") from None
    return sorted(targets)


def _config(contents: Contents, folder: Path, file: Path) -> Config:
    """The backup's own configuration, read as if it were in its place already."""
    number = next(number for number, entry in enumerate(contents.files) if entry.name == "config")
    try:
        return strict.load(folder / str(number), Config).resolved(file.absolute().parent)
    except FaultsError as error:
        raise BackupError(f"the backup's configuration has faults: {error}") from None


def _folders_in_use(config: Config, file: Path) -> set[Path]:
    """Data folders whose service must not run: the backup's, and that of the site as it is."""
    try:
        return {config.data, load_config(file).data}
    except FaultsError:
        return {config.data}


def _targets(contents: Contents, folder: Path, config: Config, file: Path) -> dict[Path, tuple[Path, int]]:
    """Where each file goes → where it is now, and its mode."""
    singles, several = places(config, file), folders(config, file)
    targets: dict[Path, tuple[Path, int]] = {}
    for number, entry in enumerate(contents.files):
        kind, _, name = entry.name.partition("/")
        if entry.name in _BUNDLE:
            continue
        if entry.name in singles:
            target = singles[entry.name]
        elif kind in several and re.fullmatch(PLAIN, name):
            target = several[kind] / name
        else:
            raise BackupError(f"the backup holds {entry.name}, which its configuration has no place for")
        targets[target.absolute()] = (folder / str(number), entry.mode)
    return targets


def _replace(config: Config, contents: Contents, folder: Path, targets: dict[Path, tuple[Path, int]]) -> None:
    tag = secrets.token_hex(4)
    staged: list[tuple[Path, Path]] = []
    try:
        for target, (copy, mode) in targets.items():
            staged.append((_beside(target, copy, mode, tag), target))
        marker = config.data / RESTORING
        marker.touch()
        files.sync_folder(config.data)
        try:
            _switch(staged, list(_in_the_way(config, targets)), tag)
        except OSError:
            marker.unlink()  # everything is as it was
            raise
        _bundle(config, contents, folder)
        marker.unlink()
        files.sync_folder(config.data)
    finally:
        for new, _ in staged:
            new.unlink(missing_ok=True)


def _beside(target: Path, copy: Path, mode: int, tag: str) -> Path:
    """The new file next to its place, durable, so that putting it there is a rename."""
    private = target.parent.name == "secrets"
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o755)
    new = target.with_name(f".{target.name}.restored-{tag}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out, files.opened(copy) as old:
        while block := old.read(_BLOCK):
            out.write(block)
        out.flush()
        os.fchmod(out.fileno(), mode)
        os.fsync(out.fileno())
    return new


def _in_the_way(config: Config, targets: dict[Path, tuple[Path, int]]) -> Iterator[tuple[Path, Path | None]]:
    """What must leave, and where to: None is nowhere, once all is done."""
    for target in targets:
        if target.suffix == ".db":
            for suffix in ("-wal", "-shm"):
                yield target.with_name(target.name + suffix), None
        for path in target.parent.glob(f".{target.name}.replaced-????????"):  # by a restore that was interrupted
            yield path, None
    for path in config.inventory.glob("*.yaml"):
        if path.absolute() not in targets:
            yield path, path.with_name(f"{path.name}.before-restore")
    stems = {target.stem for target in targets if target.parent == config.keys.absolute()}
    for path in config.keys.glob("*"):  # a key is trusted or retired by its file's suffix
        if path.stem in stems and path.absolute() not in targets and not path.name.startswith("."):
            yield path, None


def _switch(staged: list[tuple[Path, Path]], leaving: list[tuple[Path, Path | None]], tag: str) -> None:
    """Every rename, or, where one fails, none."""
    undo: list[tuple[Path, Path]] = []
    doomed: list[Path] = []

    def leave(path: Path, to: Path | None) -> None:
        aside = to or path.with_name(f".{path.name.lstrip('.')}.replaced-{tag}")
        path.rename(aside)
        undo.append((aside, path))
        doomed.extend([aside] if to is None else [])

    try:
        for path, to in leaving:
            if path.exists():
                leave(path, to)
        for new, target in staged:
            if target.exists():
                leave(target, None)
            new.rename(target)
            undo.append((target, new))
    except OSError:
        for now, before in reversed(undo):
            now.rename(before)
        raise
    for folder in {target.parent for _, target in staged}:
        files.sync_folder(folder)
    for path in doomed:
        path.unlink(missing_ok=True)


def _bundle(config: Config, contents: Contents, folder: Path) -> None:
    """Last, for the store replaces it whole by itself; where it cannot, `config check` says so."""
    at = {entry.name: folder / str(number) for number, entry in enumerate(contents.files)}
    if any(name not in at for name in _BUNDLE):
        return
    data, signature = (files.bytes_of(at[name], files.LARGE) for name in _BUNDLE)
    try:
        Store(config.store).set_bundle(data, signature)
    except ImageError as error:
        again = "run `netboot restore` again, or `netboot config bundle`"
        raise BackupError(f"all is restored but the site bundle: {error}; {again}") from None
