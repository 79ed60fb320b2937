"""What commands end with: three outcomes that are kept apart by the exit status, and what is known before one asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from netboot.cli.times import SAID_BY

F = TypeVar("F", bound=Callable[..., Any])

UNKNOWN, NOT_ALLOWED, CANNOT_TELL = 3, 4, 5
EXIT_CODES = """\b
    Exit status: 0 done, 1 failed, 2 wrong usage, 3 unknown (no such machine, boot, channel or image),
    4 not allowed, 5 cannot tell right now (try again), 130 interrupted."""


class ApiError(click.ClickException):
    """What the service answered, or that it did not; the exit status keeps the three outcomes apart."""

    def __init__(self, message: str, remedy: str, exit_code: int) -> None:
        super().__init__(f"{message}\n{'Remedy: ' + remedy if remedy else ''}".rstrip())
        vars(self)["exit_code"] = exit_code  # click declares it for the class


def with_exit_codes(function: F) -> F:
    """Add the meaning of the exit status to a command's help."""
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    {EXIT_CODES}\n"
    return function


def segment(name: str) -> str:
    """A name as one segment of a path.

    Raises:
        ApiError: it is none, so nothing has it; asked for, it would be another path.
    """
    if "/" in name or name in ("", ".", ".."):
        raise ApiError(f"nothing has the name {name!r}", "names are of letters, digits, '-' and '.'", UNKNOWN)
    return quote(name, safe="")


def read_token(path: Path) -> str:
    """The first token of a file.

    Raises:
        ApiError: it cannot be read, or holds none.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        raise ApiError(
            f"the token file {path} cannot be read: {why}",
            "run as who may read it, or name your own with --token-file",
            NOT_ALLOWED,
        ) from None
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens or not tokens[0].isascii():
        raise ApiError(f"the token file {path} holds no token", "ask the service's operator for one", NOT_ALLOWED)
    return tokens[0]


def option_of(field: str) -> click.Parameter | None:
    """The option, or argument, by which the running command says a value of the API: the one of its name, as
    `strategy.bake` is said by `--bake`."""
    context = click.get_current_context(silent=True)
    name = field.rpartition(".")[2]
    options = context.command.params if context is not None else ()
    return next((each for each in options if each.name in (name, SAID_BY.get(name))), None)
