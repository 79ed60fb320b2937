"""Options and arguments that name a file or a folder to be read: one rule for what is in the way
(docs/command-line.md#files-that-are-named). It is looked at before anything else is done."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from images.values import files
from netboot.client.errors import FailedError
from netboot.client.named import unreadable

STDIN = "-"


class Given(io.BytesIO):
    """The content; `name`: of the file, for words."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class NamedFile(click.Path):
    """A regular file that is read. `what`: to be named in its place; `piped`: '-' is standard input."""

    def __init__(self, what: str = "a file that is there", *, piped: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self._what, self._piped = what, piped

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Raises as `not_empty` and `look_at`; not where names are completed, for nobody reads it then but
        who asks."""
        not_empty(value, param)
        completed = ctx is not None and ctx.resilient_parsing
        if not completed and not (self._piped and value == STDIN):
            look_at(Path(value), remedy(self._what, param))
        return Path(value)


class NamedFolder(click.Path):
    """A folder that is read. `made`: the command makes it where it is not there."""

    def __init__(self, *, made: bool = False) -> None:
        super().__init__(file_okay=False, path_type=Path)
        self.made = made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002
        """The path.

        Raises:
            click.BadParameter, ClientError, images.errors.StoreError: as `not_empty` and `look_at`.
        """
        not_empty(value, param)
        path = Path(value)
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except FileNotFoundError as error:
            if not self.made:
                raise unreadable(path, error, remedy("a folder that is there", param)) from None
        except OSError as error:
            at = path
            if self.made and isinstance(error, NotADirectoryError):  # what stands where it would be made
                at = next(each for each in (path, *path.parents) if files.look(each) is not None)
            raise _in_the_way(at, error, remedy("a folder that is there", param)) from None
        return path


class GivenFile(click.File):
    """As click's own, without its wait for a pipe, and without a device's endless content. `most`: bytes."""

    def __init__(self, most: int) -> None:
        super().__init__("rb")
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The file's content. Raises as `not_empty` and `look_at`."""
        not_empty(value, param)
        path = Path("<stdin>" if value == STDIN else value)
        try:
            if value == STDIN:
                return Given(files.whole(sys.stdin.buffer, self._most, path), str(path))
            return Given(files.bytes_of(path, self._most), value)
        except OSError as error:
            raise _in_the_way(path, error, remedy("a file that is there", param)) from None


def not_empty(value: Any, param: click.Parameter | None = None, hint: str | None = None) -> None:
    """See that a name is not empty, as of a variable of a script that is not set: it would be the folder `.`. `hint`:
    how it is named, where there is no parameter.

    Raises:
        click.BadParameter: it is.
    """
    if value == "":
        raise click.BadParameter("the name is empty: give that of a file or folder", param=param, param_hint=hint)


def look_at(path: Path, remedy: str) -> None:
    """See that a file can be read.

    Raises:
        ClientError: it cannot. images.errors.StoreError: nobody can tell.
    """
    try:
        files.opened(path).close()
    except OSError as error:
        raise _in_the_way(path, error, remedy) from None


def remedy(what: str, param: click.Parameter | None) -> str:
    """How another is named: by an option, or as an argument."""
    if isinstance(param, click.Option):
        return f"name {what} with {max(param.opts, key=len)}"
    return f"name {what} as {param.human_readable_name.partition('|')[0]}" if param is not None else f"name {what}"


def _in_the_way(path: Path, error: OSError, remedy: str) -> Exception:
    """Of a folder that may not be entered nobody knows what is in it."""
    if isinstance(error, PermissionError):
        files.look(path)
    if isinstance(error, NotADirectoryError) and files.look(path) is not None:
        return FailedError(f"{path} is no folder", remedy)
    return unreadable(path, error, remedy)
