"""A backup: one tar of everything that cannot be made again. Images are not in it: they can be built, and are large.

Every file has a name by what it is, never a path: restoring computes the place from the configuration in the backup, so
no name in an archive decides where anything is written.
"""

import hashlib
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import Field, StringConstraints

from images.store import revocations
from images.values import files
from images.values.strict import Strict
from images.values.types import Sha256
from netboot.config import Config
from netboot.config_outside import InKubernetes
from netboot.stores import bootkey, leftovers, proofkey
from netboot.stores.resources import FOLDER

FORMAT = 1
COMMAND = "backup"
"""Of whose temporary files."""
"""How names of what is not a whole backup yet begin."""
MANIFEST = "manifest.json"
DATABASES = tuple(f"data/{name}.db" for name in ("state", "enrolment", "intents", "history", "rollouts", "audit"))
"""Copied by SQLite itself, so that a service may run meanwhile."""
OBJECTS = "objects"
"""Of what names of files begin that hold objects of a cluster."""
RESTORED = "restored-objects"
"""The folder beside the configuration where those are put."""
PLAIN = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}"


class BackupError(Exception):
    """A backup that cannot be made or restored; the words say why, and what to do."""


class Entry(Strict):
    """One file. `name`: what it is, like `keys/5f2c41d09be7a688.pub` or `file/join.key`."""

    name: Annotated[str, StringConstraints(pattern=rf"^[a-z-]+(/{PLAIN})?$")]
    sha256: Sha256
    size: Annotated[int, Field(ge=0)]
    mode: Annotated[int, Field(ge=0, le=0o777)]


class Contents(Strict):
    """The manifest: first in the archive, so that everything after it can be held against it."""

    format: int
    site: str
    created_ms: int
    files: tuple[Entry, ...]


def places(config: Config, file: Path) -> dict[str, Path]:
    """Where each single file of a site belongs, by name, whether it is there or not."""
    paths = {
        "config": file,
        "revocations": config.store / revocations.FILE,
        "data/state.db": config.data / "state.db",
        "data/enrolment.db": config.data / "enrolment.db",
        "data/intents.db": config.data / "intents.db",
        "data/history.db": config.data / "history.db",
        "data/rollouts.db": config.data / "rollouts.db",
        "data/shared-rollouts.db": config.data / "shared-rollouts.db",
        "data/audit.db": config.data / "audit.db",
        "data/boot-id.key": bootkey.file_of(config),
        "data/resources.json": config.data / FOLDER / "objects.json",
        "file/management.token_file": config.management.token_file,
        "file/management.tokens": config.management.tokens,
        "file/proof_key": config.proof_key,
    }
    if config.join is not None:
        for key in ("certificate", "key", "authorities", "sealing_keys", "nonce_keys"):
            paths[f"file/join.{key}"] = getattr(config.join, key)
    for name, cluster in config.clusters.items():
        for key in ("authority", "issuer", "approver", "nodes"):
            paths[f"file/clusters.{name}.{key}"] = getattr(cluster, key)
    people = (("management.oidc", config.management.oidc), ("management.token_review", config.management.token_review))
    outside = (("upstream", config.upstream), ("pause", config.pause), ("traces", config.traces))
    sections = (*outside, *people, ("inventory_kubernetes", config.inventory_kubernetes))
    shared = (
        ("enrolments_kubernetes", config.enrolments_kubernetes),
        ("keys_kubernetes", config.keys_kubernetes),
    )
    keys = ("credentials", "token_file", "headers_file", "authority", "client_secret_file", "certificate_authority")
    for name, section in (*sections, *shared):
        for key in (*keys, *InKubernetes.FILES, "join", "reader"):
            if (path := getattr(section, key, None)) is not None:
                paths[f"file/{name}.{key}"] = path
    for name, told in (("journal", config.journal), ("ssh", config.ssh)):
        if told is not None and told.authorities is not None:
            paths[f"file/{name}.authorities"] = told.authorities
    return paths


def folders(config: Config, file: Path) -> dict[str, Path]:
    """Folders whose plain files are all part of a site."""
    paths = {
        "inventory": config.inventory,
        "keys": config.keys,
        "proof-keys": proofkey.folder_of(config),
        "secrets": file.parent / "secrets",
        "tls": file.parent / "tls",
        "channels": config.store / "channels",
        "site": config.store / "site",
    }
    if config.join is not None and config.join.tpm_roots is not None:
        paths["tpm-roots"] = config.join.tpm_roots
    return paths


def objects_folder(file: Path) -> Path:
    """Where objects of a cluster are put as files, of a site whose configuration is `file`: nobody reads them there but
    people. No backup has it."""
    return file.parent / RESTORED


def write_backup(
    config: Config, file: Path, out: BinaryIO, now_ms: int, objects: Mapping[str, bytes] | None = None
) -> Contents:
    """Write a gzipped tar of the site whose configuration is `file`. It holds secrets. `objects`: files of objects of a
    cluster, by name.

    Raises:
        BackupError: something cannot be read, or `out` not written.
    """
    try:
        place = config.data if config.data.is_dir() else None
        if place is not None:
            leftovers.sweep(place, COMMAND)
        prefix = leftovers.prefix_of(COMMAND)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as kept, leftovers.locked(Path(kept)):
            staged = [*_stage(config, file, Path(kept)), *_stage_objects(objects or {}, Path(kept))]
            contents = Contents(
                format=FORMAT, site=config.site, created_ms=now_ms, files=tuple(entry for entry, _ in staged)
            )
            _pack(contents, staged, out, now_ms)
            return contents
    except (OSError, sqlite3.Error) as error:
        where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        raise BackupError(f"the backup is not whole: {where}{getattr(error, 'strerror', None) or error}") from None


def _sources(config: Config, file: Path) -> Iterator[tuple[str, Path]]:
    seen: set[Path] = set()
    singles = {name: path for name, path in places(config, file).items() if path.is_file()}
    several = [
        (f"{kind}/{path.name}", path)
        for kind, folder in folders(config, file).items()
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if path.is_file() and re.fullmatch(PLAIN, path.name)
    ]
    for name, path in (*singles.items(), *several):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            yield name, path


def _stage(config: Config, file: Path, folder: Path) -> Iterator[tuple[Entry, Path]]:
    for number, (name, path) in enumerate(_sources(config, file)):
        copy = folder / str(number)
        if name in DATABASES:
            with closing(sqlite3.connect(path, timeout=10.0)) as live, closing(sqlite3.connect(copy)) as target:
                live.backup(target)
        else:
            shutil.copyfile(path, copy)
        mode = stat.S_IMODE(path.stat().st_mode) & 0o777
        yield Entry(name=name, sha256=digest(copy), size=copy.stat().st_size, mode=mode), copy


def _stage_objects(objects: Mapping[str, bytes], folder: Path) -> Iterator[tuple[Entry, Path]]:
    for name, content in objects.items():
        copy = folder / f"{OBJECTS}-{name}"
        with open_private(copy) as out:
            out.write(content)
        yield Entry(name=f"{OBJECTS}/{name}", sha256=digest(copy), size=len(content), mode=0o600), copy


def _pack(contents: Contents, staged: list[tuple[Entry, Path]], out: BinaryIO, now_ms: int) -> None:
    with tarfile.open(fileobj=out, mode="w|gz", format=tarfile.PAX_FORMAT) as archive:
        body = contents.model_dump_json(indent=1).encode() + b"\n"
        archive.addfile(_member(MANIFEST, len(body), 0o600, now_ms), BytesIO(body))
        for entry, copy in staged:
            with files.opened(copy) as data:
                archive.addfile(_member(entry.name, entry.size, entry.mode, now_ms), data)


def _member(name: str, size: int, mode: int, now_ms: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, mode & 0o600 or 0o600, now_ms // 1000
    return member


def digest(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with files.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_private(path: Path) -> BinaryIO:
    """A new file that only its owner can read.

    Raises:
        OSError: it is there already, or cannot be made.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
