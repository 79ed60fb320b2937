"""Options of the commands that reach a registry or a plain origin, and what is made of them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from images.registry.credentials import Login, default_file, read_login
from images.registry.errors import BadReferenceError, RegistryError
from images.registry.reference import Reference
from images.registry.retry import RetryPolicy
from netboot.cli.given_files import NamedFile
from netboot.client.named import check_authorities

if TYPE_CHECKING:
    from images.registry.client import OciRegistry


@dataclass(frozen=True, slots=True)
class Access:
    """How a registry is reached, as the options say."""

    username: str | None
    credentials: Path | None
    authority: Path | None
    plain_http: bool


def access_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--username`, `--credentials`, `--authority`, `--plain-http`: the command gets them as one `access`."""

    @wraps(function)
    def command(
        *arguments: Any,
        username: str | None,
        credentials: Path | None,
        authority: Path | None,
        plain_http: bool,
        **others: Any,
    ) -> None:
        function(*arguments, access=Access(username, credentials, authority, plain_http), **others)

    decorated: Callable[..., None] = command
    for option in (
        click.option("--plain-http", is_flag=True, help="No TLS, also where the registry is not on this machine."),
        click.option("--authority", type=NamedFile(), help="PEM of who signed its certificate."),
        click.option(
            "--credentials",
            type=NamedFile(),
            help="File with its login, as `docker login` writes it.  [default: docker's own]",
        ),
        click.option("--username", help="Log in by this name; the password is the first line of standard input."),
    ):
        decorated = option(decorated)
    return decorated


def retry() -> RetryPolicy:
    """Ten attempts; why one is made again is said on stderr."""
    return RetryPolicy(tell=lambda reason: click.echo(reason, err=True))


def login(access: Access, registry: str) -> Login | None:
    """Who we are to a registry; asks for the password where stdin is a terminal.

    Raises:
        RegistryError: no password came, or the file with logins cannot be used.
    """
    if access.username is None:
        file = access.credentials
        return read_login(file or default_file(), registry, required=file is not None)
    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise RegistryError(f"no password for {access.username!r} on standard input: pipe it in, on one line")
    return Login(access.username, password)


@contextmanager
def open_registries(access: Access, *places: Reference) -> Iterator[list["OciRegistry"]]:
    """Repositories of one registry, with one login.

    Raises:
        BadReferenceError: of several. RegistryError: see `login`.
    """
    from images.registry.client import OciRegistry  # requests and its kin are large

    first = places[0].registry
    if any(place.registry != first for place in places):
        raise BadReferenceError(
            f"{places[0]} and {places[1]} are in two registries: pull from the one and push to the other"
        )
    check_authority(access.authority)
    account = login(access, first)
    opened = [OciRegistry(place, account, authority=access.authority, plain_http=access.plain_http) for place in places]
    try:
        yield opened
    finally:
        for repository in opened:
            repository.close()


def check_authority(path: Path | None) -> None:
    """Better words than the library's for a file without certificates.

    Raises:
        ClientError.
    """
    if path is not None:
        check_authorities(path, "name another with --authority")
