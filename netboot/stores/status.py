"""Files of what processes say of themselves (`netboot.status`): `data/status/<process>.json`, swapped whole."""

import os
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError

S = TypeVar("S", bound=Strict)


class StatusFolder:
    """`data/status`, for those who read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, process: str, model: type[S]) -> S | None:
        """What a process said last; None: nothing since the service began.

        Raises:
            CannotTellError: the file cannot be read, or is not what this version writes.
        """
        file = self._path / f"{process}.json"
        try:
            return model.model_validate_json(file.read_bytes(), strict=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CannotTellError(f"cannot tell: {file} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            message = f"cannot tell: {file} is not what this version writes: {where}: {first['msg']}"
            raise CannotTellError(message) from None


def write_status(folder: Path, process: str, status: Strict) -> None:
    """Swap the file. Not worth an fsync: a restart writes it anew.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f".{process}.{os.getpid()}"
    staged.write_text(status.model_dump_json(), encoding="utf-8")
    staged.replace(folder / f"{process}.json")


def wipe(folder: Path) -> None:
    """Forget what processes of an earlier run said (or counted: `data/metrics`)."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink(missing_ok=True)
