"""`data/accepted/inventory.json`: the digest of the inventory whose large removal an operator confirmed.

The management server writes it, the publisher acts upon it and removes it once the inventory is published: a restart
of either in between loses no word, and no word counts twice.
"""

import os
from pathlib import Path

from pydantic import ValidationError

from images.values import files
from images.values.strict import Strict
from images.values.types import Sha256
from netboot.lifecycle.errors import StateUnavailableError


class _Acceptance(Strict):
    digest: Sha256


class Acceptance:
    """The file. One that cannot be read, or is torn, counts as none: the operator is asked again."""

    def __init__(self, data: Path) -> None:
        self._path = data / "accepted" / "inventory.json"

    def read(self) -> str | None:
        """The digest that was accepted and is not in force yet; None: none."""
        try:
            return _Acceptance.model_validate_json(files.small(self._path)).digest
        except (OSError, ValidationError):
            return None

    def write(self, digest: str) -> None:
        """It is on the disk when this returns.

        Raises:
            StateUnavailableError: it cannot be written.
        """
        staged = self._path.with_suffix(".json-new")
        try:
            self._path.parent.mkdir(exist_ok=True)
            with staged.open("wb") as file:
                file.write(_Acceptance(digest=digest).model_dump_json().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            staged.replace(self._path)
            files.sync_folder(self._path.parent)
        except OSError as error:
            raise StateUnavailableError(f"{self._path} cannot be written: {error.strerror}") from None

    def spend(self) -> None:
        """Forget it.

        Raises:
            OSError: it cannot be removed.
        """
        self._path.unlink(missing_ok=True)
