"""The snapshot file: the publisher publishes it, boot workers read it."""

import os
from pathlib import Path

from pydantic import ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import NotReadyError
from netboot.lifecycle.snapshot import Snapshot


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in the file.

    Raises:
        NotReadyError: there is none, or it is not one; the words say which.
    """
    try:
        return Snapshot.model_validate_json(path.read_bytes())
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
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
