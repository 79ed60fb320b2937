"""Restoring a backup that was read (`netboot.stores.backup_archive`): put in place, all of it or nothing.

While files change places a marker says so: as long as it is there no service starts, and restoring again completes it.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from images.errors import ImageError
from images.store.store import Store
from images.values import files, strict
from images.values.strict import FaultsError
from netboot.config import Config, load_config
from netboot.config_outside import SHARED
from netboot.stores.backup import OBJECTS, PLAIN, RESTORED, BackupError, Contents, folders, objects_folder, places
from netboot.stores.lock import RESTORING, sole_instance

_BUNDLE = ("site/bundle.json", "site/bundle.sig")
_BLOCK = 1024 * 1024


def restore(contents: Contents, folder: Path, file: Path) -> list[Path]:
    """Put what `read_backup` left in `folder` in place, for a site whose configuration is `file`; what was written.

    Inventory files that the backup does not have become `….before-restore`, for they could declare a machine twice; so
    do files of objects, where the backup has some.

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
        return strict.load(folder / str(number), Config).resolved(file.absolute().parent).with_shared_keys()
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
    singles, several = places(config, file), folders(config, file) | {OBJECTS: objects_folder(file)}
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
    private = target.parent.name in ("secrets", SHARED, RESTORED)
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
    objects = {target.parent for target in targets if target.parent.name == RESTORED}
    for path in (path for folder in (config.inventory, *objects) for path in folder.glob("*.yaml")):
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
