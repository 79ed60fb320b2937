"""The management API, as commands use it: which service the options mean, and what its failures come to."""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from netboot.cli.dry_run import SHOWS_REQUESTS
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import CANNOT_TELL, NOT_ALLOWED, UNKNOWN, ApiError, shown, with_exit_codes
from netboot.cli.output import output_option, program
from netboot.cli.paths import config_option, config_path, find_config
from netboot.client import Client, ClientError, Service, TokenFile
from netboot.client.base import Values
from netboot.client.client import ANSWER_SECONDS
from netboot.client.service import find

__all__ = ["CANNOT_TELL", "NOT_ALLOWED", "UNKNOWN", "ApiError", "Client", "Connection", "api_command"]
__all__ += ["connection_options", "with_exit_codes"]


@dataclass(frozen=True, slots=True)
class _Site:
    """The site whose configuration is at hand."""

    config: Path | None
    named: bool

    def service(self) -> Service:
        """What it says of its own. Raises NotFoundError, FaultsError: it cannot be used."""
        management = find_config(self.config).management
        authority = management.tls.authority if management.tls is not None else None
        hint = f"management in {config_path(self.config)}"
        return Service(management.base_url, TokenFile(management.token_file), hint, authority)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command's service is, as its options say; what they leave out, the environment, a context or the
    configuration say."""

    config: Path | None = None
    server: str | None = None
    token_file: Path | None = None
    authority: Path | None = None
    context: str | None = None

    def open(self, seconds: float = ANSWER_SECONDS) -> Client:
        """The service that the options, the environment, the context in use or the configuration name. `seconds`: for
        an answer.

        Raises:
            ClientError: there is no such context, or it has no token. NotFoundError, FaultsError: the configuration is
            needed and cannot be used. click.UsageError: the address is none.
        """
        named = bool(self.config or os.environ.get("NETBOOT_CONFIG"))
        where = self.server, self.token_file, self.authority, self.context
        context = click.get_current_context(silent=True)
        kind = _Showing if context is not None and context.meta.get(SHOWS_REQUESTS) else Client
        try:
            return kind(find(*where, site=_Site(self.config, named)), seconds=seconds)
        except ValueError as error:
            raise click.UsageError(str(error)) from None


class _Showing(Client):
    """Reads as ever; the first request that would change something is shown in its place, and ends the command."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Values | None = None,
        headers: Values | None = None,
        body: object = None,
        text: bool = False,
        also: tuple[int, ...] = (),
    ) -> Any:
        if method == "GET":
            return super().ask(method, path, query=query, headers=headers, body=body, text=text, also=also)
        parts = {"query": _sent(query), "headers": _sent(headers), "body": _sent(body)}
        request = {"method": method, "url": f"{self.service.server}{path}"}
        request |= {name: part for name, part in parts.items() if part}
        output = click.get_current_context().params.get("output", "table")
        program("yaml" if output in ("table", "wide", "name") else output, request)
        raise click.exceptions.Exit(0)


def _sent(part: Any) -> Any:
    """Without what is not sent, and without what would make it a dry run."""
    if not isinstance(part, Mapping):
        return part
    return {name: one for name, one in part.items() if one is not None and name != "dry_run"}


def connection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what says which service: the command gets them as one `connection`."""

    @functools.wraps(function)
    def command(*arguments: Any, **others: Any) -> None:
        names = ("config", "server", "token_file", "authority", "context")
        connection = Connection(**{name: others.pop(name) for name in names})
        try:
            function(*arguments, connection=connection, **others)
        except ClientError as error:
            raise shown(error) from None

    for option in reversed(_OPTIONS):
        command = option(command)
    return config_option(command)


_PATH = NamedFile()
_OPTIONS = (
    click.option(
        "--context", help="Ask the service of this context.  [default: $NETBOOT_CONTEXT, then the one in use]"
    ),
    click.option(
        "--server", help="Address of the management API.  [default: $NETBOOT_SERVER, then the configuration's]"
    ),
    click.option(
        "--token-file",
        type=_PATH,
        help="File with the operator's token.  [default: $NETBOOT_TOKEN_FILE, then the configuration's]",
    ),
    click.option(
        "--certificate-authority",
        "authority",
        type=_PATH,
        help="PEM that vouches for its certificate.  [default: $NETBOOT_CERTIFICATE_AUTHORITY]",
    ),
)


def api_command(function: Callable[..., None]) -> Callable[..., None]:
    """What every command that asks the service has: a `connection`, `--output`, and what its exit status means."""
    return connection_options(output_option(with_exit_codes(function)))
