"""The snapshot file: the publisher publishes it, boot workers read it."""

import os
from pathlib import Path

from pydantic import ValidationError

from images.values import files
from images.values.faults import first_fault
from netboot.lifecycle.errors import NotReadyError
from netboot.lifecycle.snapshot import Snapshot

_MOST = 1 << 30
"""Bytes. A limit of the reader's, far above what any inventory comes to."""


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in the file.

    Raises:
        NotReadyError: there is none, or it is not one; the words say which.
    """
    try:
        return Snapshot.model_validate_json(files.bytes_of(path, _MOST))
    except FileNotFoundError:
        raise NotReadyError(f"{path} is not there: nothing has been published yet") from None
    except OSError as error:
        raise NotReadyError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise NotReadyError(f"{path} is not a snapshot: {first_fault(error)}") from None


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Publish: temporary file, fsync, rename, fsync of the folder. Readers see the old one or the new one, whole.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_suffix(".json-new")
    with staged.open("wb") as file:
        file.write(snapshot.model_dump_json(by_alias=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    files.sync_folder(path.parent)
