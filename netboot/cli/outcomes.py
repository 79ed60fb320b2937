"""What commands end with: three outcomes that are kept apart by the exit status, and what is known before one asks."""

import errno
from collections.abc import Callable
from typing import Any, TypeVar

import click

from images.values import files
from netboot.cli.times import SAID_BY
from netboot.client.errors import CannotTellError, ClientError, FailedError, NotAllowedError, UnknownError

F = TypeVar("F", bound=Callable[..., Any])

USAGE, UNKNOWN, NOT_ALLOWED, CANNOT_TELL = 2, 3, 4, 5
VERDICT = 6
"""The first of those that mean something in one command alone: docs/command-line.md."""
EXIT_CODE: dict[type[ClientError], int] = {
    UnknownError: UNKNOWN,
    NotAllowedError: NOT_ALLOWED,
    CannotTellError: CANNOT_TELL,
    FailedError: 1,
}
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


def shown(error: ClientError) -> click.ClickException:
    """As commands end by it: where a value of the request is to blame, in words of the option that says it."""
    from netboot.cli.output import printable

    message = printable(error.message)
    field = error.problem.field if error.problem is not None else None
    if field is not None and (option := _option_of(field)) is not None:
        return click.BadParameter(message.removeprefix(f"{field}: "), click.get_current_context(), option)
    return ApiError(message, printable(error.remedy), exit_code(error))


def cannot(what: str, error: OSError) -> ApiError:
    """What the file system refuses a command, with what to do. `what`: like `cannot write FILE`."""
    remedy = "see that it is there, and that this user may read and write it and its folder"
    if error.errno == errno.EROFS:
        remedy = "mount that file system writable, or name another place"
    if files.is_full(error):
        remedy = "free some space there, or name another place"
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    status = NOT_ALLOWED if is_refused(error) else UNKNOWN if absent else 1
    return ApiError(f"{what}: {error.strerror or error}", remedy, status)


def is_refused(error: BaseException) -> bool:
    """Whether the file system does not let this account do what failed, in whatever words that is told: of all errors
    in the place of which one was raised, one names a file."""
    told: BaseException | None = error
    while told is not None:
        if isinstance(told, OSError) and files.is_refusal(told) and told.filename is not None:
            return True
        told = told.__cause__ or told.__context__
    return False


def confirm(question: str, otherwise: str, *, err: bool) -> None:
    """Ask, and go on where the answer is yes. `otherwise`: what to do where nobody can answer; `err`: ask on stderr.

    Raises:
        ApiError: standard input has no answer. click.Abort: it is no, or Ctrl-C.
    """
    try:
        click.confirm(question, abort=True, err=err)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            click.echo(err=True)
            raise ApiError("an answer is needed, and standard input has none", otherwise, USAGE) from None
        raise


def exit_code(error: ClientError) -> int:
    """Of its outcome."""
    if is_refused(error):
        return NOT_ALLOWED
    return next((code for kind, code in EXIT_CODE.items() if isinstance(error, kind)), 1)


def _option_of(field: str) -> click.Parameter | None:
    """The option, or argument, by which the running command says a value of the API: the one of its name, as
    `strategy.bake` is said by `--bake`."""
    context = click.get_current_context(silent=True)
    name = field.rpartition(".")[2]
    options = context.command.params if context is not None else ()
    return next((each for each in options if each.name in (name, SAID_BY.get(name))), None)
