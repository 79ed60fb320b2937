"""Options that name a file whose content a command takes whole: a regular one, or what is piped in, up to a limit."""

import io
import sys
from pathlib import Path
from typing import Any

import click

from images.values import files
from netboot.cli.outcomes import cannot


class Given(io.BytesIO):
    """The content; `name`: of the file, for words."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class GivenFile(click.File):
    """As click's own, without its wait for a pipe, and without a device's endless content. `most`: bytes."""

    def __init__(self, most: int) -> None:
        super().__init__("rb")
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file's content. Raises ApiError: this account may not read it; else click.BadParameter."""
        path = Path(value)
        try:
            if value == "-":
                return Given(files.whole(sys.stdin.buffer, self._most, path), "<stdin>")
            return Given(files.bytes_of(path, self._most), value)
        except PermissionError as error:
            raise cannot(f"{value} cannot be read", error) from None
        except OSError as error:
            self.fail(f"'{value}': {error.strerror}", param, ctx)
