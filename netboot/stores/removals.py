"""`data/removals.json`: which machines went from the inventory or became others within the last hour, and what those
that went were known by. The publisher writes it, so that a restart of it forgets nothing; who compares inventories
reads it.
"""

from pathlib import Path

from pydantic import ValidationError

from images.values import files
from netboot.lifecycle.errors import StateUnavailableError
from netboot.machines.removals import Removals

MOST_BYTES = files.LARGE
"""As all custom resources together may have."""


class RemovalsFile:
    """Of a data folder."""

    def __init__(self, data: Path) -> None:
        self._path = data / "removals.json"

    def read(self) -> Removals:
        """What was written last; nothing was: nobody went.

        Raises:
            StateUnavailableError: it cannot be told.
        """
        try:
            return Removals.model_validate_json(files.bytes_of(self._path, MOST_BYTES))
        except FileNotFoundError:
            return Removals()
        except OSError as error:
            raise StateUnavailableError(f"{self._path} cannot be read: {error.strerror}") from None
        except ValidationError:
            raise StateUnavailableError(f"{self._path} is not what this version writes") from None

    def write(self, removals: Removals) -> None:
        """It is on the disk when this returns.

        Raises:
            ValueError: it would be longer than MOST_BYTES. StoreError: it cannot be written.
        """
        content = removals.model_dump_json().encode()
        if len(content) > MOST_BYTES:
            raise ValueError(f"{self._path} would have {len(content):,} bytes, and {MOST_BYTES:,} are the most")
        files.write(self._path, content + b"\n")
