"""Standard output that cannot be written: its reader has gone, its disk is full, or it was closed before the start.

A write that fails there raises what no file's raises: click ends by 1 and without a word where any pipe at all is
closed, and commands that catch an OSError are about their own files. docs/decisions/251-a-closed-pipe-ends-by-141.md.
"""

import io
import os
import sys
from contextlib import suppress
from typing import Any

CLOSED_PIPE = 141
"""Exit status where the reader has gone: what a shell says of a program that SIGPIPE ends (128 + 13)."""
_DESCRIPTOR, _ERRORS = 1, 2


class OutputError(Exception):
    """It cannot be written. `unread`: for its reader has gone, with all that it wanted."""

    def __init__(self, error: OSError) -> None:
        self.unread = isinstance(error, BrokenPipeError)
        super().__init__(
            f"cannot write to standard output: {error.strerror}\n"
            "Remedy: send it elsewhere, or make room where it goes; what the command did besides is done"
        )


class _Raw(io.FileIO):
    """The descriptor itself."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error) from None


class _Unfailing(io.FileIO):
    """Standard error: what it does not take is lost, for nobody can be told, and the exit status stays what it is."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data).cast("B"))


def _watch_errors() -> None:
    """Where it was closed (`2>&-`) what is opened next would have its number, and get what is said of errors."""
    now = sys.stderr
    if now is None:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != _ERRORS:
            os.dup2(null, _ERRORS)
            os.close(null)
    elif now is not sys.__stderr__ or not isinstance(now, io.TextIOWrapper):
        return
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(_ERRORS, "w", closefd=False)),
        encoding=now.encoding if now is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


def watch() -> None:
    """From now on a write that fails raises OutputError, and one to standard error nothing. What somebody else put in
    the place of either stays as it is.

    Where it was closed (`>&-`) Python has none: what is opened refuses what is written, so that no file of ours gets
    its number, and a command that says nothing succeeds.
    """
    now = sys.stdout
    _watch_errors()
    if now is None:
        null = os.open(os.devnull, os.O_RDONLY)
        if null != _DESCRIPTOR:
            os.dup2(null, _DESCRIPTOR)
            os.close(null)
    elif now is not sys.__stdout__ or not isinstance(now, io.TextIOWrapper):
        return
    buffer = io.BufferedWriter(_Raw(_DESCRIPTOR, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(
        buffer,
        encoding=now.encoding if now is not None else "utf-8",
        errors=now.errors if now is not None else "strict",
        line_buffering=now.line_buffering if now is not None else False,
        write_through=now.write_through if now is not None else False,
    )


def discard() -> None:
    """Forget what could not be written: the interpreter would try again at its end, and complain."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, _DESCRIPTOR)
        os.close(null)
