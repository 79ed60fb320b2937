"""The management API, as commands use it: where it is, whose token is sent, and what its failures mean."""

import functools
import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from netboot.cli import answers, contexts
from netboot.cli.contexts import Context
from netboot.cli.outcomes import (
    CANNOT_TELL,
    NOT_ALLOWED,
    UNKNOWN,
    ApiError,
    read_token,
    segment,
    with_exit_codes,
)
from netboot.cli.output import output_option
from netboot.cli.paths import config_option, config_path, find_config
from netboot.cli.transport import CONNECT_SECONDS, READ_SECONDS, address, session

__all__ = ["CANNOT_TELL", "NOT_ALLOWED", "UNKNOWN", "ApiError", "Client", "Connection", "api_command", "segment"]
__all__ += ["connection_options", "with_exit_codes"]


@dataclass(frozen=True, slots=True)
class Client:
    """One service. The token shows nowhere."""

    server: str
    token: str = field(repr=False)
    hint: str = ""
    """Where the address came from, for messages."""
    authority: Path | None = None
    """PEM, by which its certificate is believed; None: by what the system trusts."""
    proxy: str | None = None

    def get(self, path: str, **parameters: object) -> Any:
        """What is there, parsed.

        Raises:
            ApiError: it is not, we may not, or the service cannot tell.
        """
        return self._json("GET", path, parameters, None)

    def seen(self, path: str) -> tuple[Any, str]:
        """The same, and its tag, by which an act says what it was meant for."""
        with self._request("GET", path, {}, None) as answer:
            return answers.parsed(self, answer), str(answer.headers.get("ETag", ""))

    def put(self, path: str, body: Any, tag: str = "") -> Any:
        """Write, and what is there now; `tag`: only while what is there has it. Raises as `get`."""
        with self._request("PUT", path, {}, body, headers={"If-Match": tag} if tag else {}) as answer:
            return answers.parsed(self, answer)

    def post(self, path: str, body: Any, **parameters: object) -> Any:
        """Ask for an act, and what it came to; text goes as CSV. Raises as `get`."""
        return self._json("POST", path, parameters, body)

    def delete(self, path: str) -> Any:
        """Remove, and what was removed; raises as `get`."""
        return self._json("DELETE", path, {}, None)

    def lines(self, path: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """A stream of JSON objects, one a line, for as long as the service sends; raises as `get`."""
        import requests

        with self._request("GET", path, parameters, None, stream=True) as answer:
            try:
                for line in answer.iter_lines(chunk_size=1):
                    if line:
                        yield json.loads(line)
            except requests.exceptions.RequestException as error:
                raise answers.unreachable(self, error) from None

    def _json(self, method: str, path: str, parameters: dict[str, object], body: Any) -> Any:
        with self._request(method, path, parameters, body) as answer:
            return answers.parsed(self, answer)

    def _request(
        self,
        method: str,
        path: str,
        parameters: dict[str, object],
        body: Any,
        *,
        stream: bool = False,
        headers: dict[str, str] | None = None,
    ) -> Any:
        import requests

        query = {name: str(value) for name, value in parameters.items() if value is not None}
        if self.authority is not None and not self.authority.is_file():
            raise ApiError(f"there is no file of authorities {self.authority}", "see --certificate-authority", 1)
        once = {"Idempotency-Key": f'"{uuid.uuid4()}"'} if method != "GET" else {}
        ask = functools.partial(
            session(self.authority, self.proxy).request,
            method,
            self.server + path,
            params=query,
            **_sent(body),
            headers={"Authorization": f"Bearer {self.token}"} | _kind(body) | once | (headers or {}),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=stream,
        )
        try:
            answer = answers.asked_twice(ask) if once else ask()
        except requests.exceptions.RequestException as error:
            raise answers.unreachable(self, error) from None
        if answer.status_code not in (200, 201, 202):
            raise answers.refused(self, answer)
        return answer


def _sent(body: Any) -> dict[str, Any]:
    return {"data": body.encode()} if isinstance(body, str) else {"json": body}


def _kind(body: Any) -> dict[str, str]:
    return {"Content-Type": "text/csv"} if isinstance(body, str) else {}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command's service is, as its options say; what they leave out, the environment, a context or the
    configuration say."""

    config: Path | None = None
    server: str | None = None
    token_file: Path | None = None
    authority: Path | None = None
    context: str | None = None

    def open(self) -> Client:
        """The service that the options, the environment, the context in use or the configuration name.

        Raises:
            ApiError: the token cannot be read, or there is no such context. NotFoundError, FaultsError: the
            configuration is needed and cannot be used. click.UsageError: the address is none.
        """
        server = self.server or os.environ.get("NETBOOT_SERVER")
        token_file = self.token_file or _file("NETBOOT_TOKEN_FILE")
        authority = self.authority or _file("NETBOOT_CERTIFICATE_AUTHORITY")
        proxy, hint = os.environ.get("NETBOOT_PROXY"), "--server or $NETBOOT_SERVER"
        context = self._context(server)
        if context is not None:
            hint = hint if server is not None else f"context {context.name}"
            server, authority = server or context.server, authority or context.certificate_authority
            proxy = proxy or context.proxy
            if token_file is None and context.login is not None:
                from netboot.cli import renewal  # what speaks to issuers is large: only where somebody logged in

                return Client(address(server), renewal.token(context.name, context.login), hint, authority, proxy)
            token_file = token_file or context.token_file
            if token_file is None:
                remedy = "name one with --token-file, or `netboot login`"
                raise ApiError(f"context {context.name} has no token", remedy, NOT_ALLOWED)
        elif server is None or token_file is None:
            management = find_config(self.config).management
            if server is None:
                hint, server = f"management in {config_path(self.config)}", management.base_url
                authority = authority or (management.tls.authority if management.tls is not None else None)
            token_file = token_file or management.token_file
        return Client(address(server), read_token(token_file), hint, authority, proxy)

    def _context(self, server: str | None) -> Context | None:
        """The one that is named; or the one in use, where nothing else says which service is meant."""
        named = self.context or os.environ.get("NETBOOT_CONTEXT")
        if named is None and (server or self.config or os.environ.get("NETBOOT_CONFIG")):
            return None
        there = contexts.read()
        chosen = named or there.current
        context = there.named(chosen) if chosen is not None else None
        if context is None and named is not None:
            raise ApiError(f"no context has the name {named}", "see `netboot context list`", UNKNOWN)
        return context


def _file(variable: str) -> Path | None:
    named = os.environ.get(variable)
    return Path(named) if named is not None else None


def connection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what says which service: the command gets them as one `connection`."""

    @functools.wraps(function)
    def command(*arguments: Any, **others: Any) -> None:
        names = ("config", "server", "token_file", "authority", "context")
        connection = Connection(**{name: others.pop(name) for name in names})
        function(*arguments, connection=connection, **others)

    for option in reversed(_OPTIONS):
        command = option(command)
    return config_option(command)


_PATH = click.Path(path_type=Path)
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
