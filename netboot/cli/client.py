"""The management API, as commands use it: where it is, whose token is sent, and what its failures mean."""

import functools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from netboot.cli.output import output_option
from netboot.cli.paths import config_option, config_path, find_config
from netboot.cli.times import SAID_BY

F = TypeVar("F", bound=Callable[..., Any])

UNKNOWN, NOT_ALLOWED, CANNOT_TELL = 3, 4, 5
EXIT_CODES = """\b
    Exit status: 0 done, 1 failed, 2 wrong usage, 3 unknown (no such machine, boot, channel or image),
    4 not allowed, 5 cannot tell right now (try again), 130 interrupted."""
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0


class ApiError(click.ClickException):
    """What the service answered, or that it did not; the exit status keeps the three outcomes apart."""

    def __init__(self, message: str, remedy: str, exit_code: int) -> None:
        super().__init__(f"{message}\n{'Remedy: ' + remedy if remedy else ''}".rstrip())
        vars(self)["exit_code"] = exit_code  # click declares it for the class


def with_exit_codes(function: F) -> F:
    """Add the meaning of the exit status to a command's help."""
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    {EXIT_CODES}\n"
    return function


@dataclass(frozen=True, slots=True)
class Client:
    """One service. The token shows nowhere."""

    server: str
    token: str = field(repr=False)
    hint: str = ""
    """Where the address came from, for messages."""

    def get(self, path: str, **parameters: object) -> Any:
        """What is there, parsed.

        Raises:
            ApiError: it is not, we may not, or the service cannot tell.
        """
        return self._json("GET", path, parameters, None)

    def put(self, path: str, body: Any) -> Any:
        """Write, and what is there now; raises as `get`."""
        return self._json("PUT", path, {}, body)

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
                raise _unreachable(self, error) from None

    def _json(self, method: str, path: str, parameters: dict[str, object], body: Any) -> Any:
        with self._request(method, path, parameters, body) as answer:
            try:
                return answer.json()
            except ValueError:
                raise _not_netboot(self) from None

    def _request(
        self, method: str, path: str, parameters: dict[str, object], body: Any, *, stream: bool = False
    ) -> Any:
        import requests

        query = {name: str(value) for name, value in parameters.items() if value is not None}
        session = requests.Session()
        session.trust_env = False  # neither a proxy nor ~/.netrc has a say in where the token goes
        try:
            answer = session.request(
                method,
                self.server + path,
                params=query,
                **_sent(body),
                headers={"Authorization": f"Bearer {self.token}"} | _kind(body),
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=stream,
            )
        except requests.exceptions.RequestException as error:
            raise _unreachable(self, error) from None
        if answer.status_code not in (200, 201, 202):
            raise _refused(self, answer)
        return answer


def _sent(body: Any) -> dict[str, Any]:
    return {"data": body.encode()} if isinstance(body, str) else {"json": body}


def _kind(body: Any) -> dict[str, str]:
    return {"Content-Type": "text/csv"} if isinstance(body, str) else {}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command's service is, as its options say; what they leave out, environment or configuration say."""

    config: Path | None = None
    server: str | None = None
    token_file: Path | None = None

    def open(self) -> Client:
        """The service that the options, the environment or the configuration name.

        Raises:
            ApiError: the token cannot be read. NotFoundError, FaultsError: the configuration is needed and cannot be
            used. click.UsageError: the address is none.
        """
        named = os.environ.get("NETBOOT_TOKEN_FILE")
        server = self.server or os.environ.get("NETBOOT_SERVER")
        token_file = self.token_file or (Path(named) if named is not None else None)
        hint = "--server or $NETBOOT_SERVER"
        if server is None or token_file is None:
            management = find_config(self.config).management
            hint = hint if server is not None else f"management in {config_path(self.config)}"
            server = server or management.base_url
            token_file = token_file or management.token_file
        if not server.startswith(("http://", "https://")):
            raise click.UsageError(f"the address of the service must begin with http:// or https://: {server}")
        return Client(server.rstrip("/"), _token(token_file), hint)


def connection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--config`, `--server`, `--token-file`: the command gets them as one `connection`."""
    server = "Address of the management API.  [default: $NETBOOT_SERVER, then the configuration's]"
    token = "File with the operator's token.  [default: $NETBOOT_TOKEN_FILE, then the configuration's]"  # noqa: S105 — help

    @functools.wraps(function)
    def command(
        *arguments: Any, config: Path | None, server: str | None, token_file: Path | None, **others: Any
    ) -> None:
        function(*arguments, connection=Connection(config, server, token_file), **others)

    command = click.option("--token-file", type=click.Path(path_type=Path), help=token)(command)
    return config_option(click.option("--server", help=server)(command))


def api_command(function: Callable[..., None]) -> Callable[..., None]:
    """What every command that asks the service has: a `connection`, `--output`, and what its exit status means."""
    return connection_options(output_option(with_exit_codes(function)))


def segment(name: str) -> str:
    """A name as one segment of a path.

    Raises:
        ApiError: it is none, so nothing has it; asked for, it would be another path.
    """
    if "/" in name or name in ("", ".", ".."):
        raise ApiError(f"nothing has the name {name!r}", "names are of letters, digits, '-' and '.'", UNKNOWN)
    return quote(name, safe="")


def _token(path: Path) -> str:
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


def _unreachable(client: Client, error: Exception) -> ApiError:
    import requests

    if isinstance(error, requests.exceptions.Timeout):
        why = "it does not answer in time"
    elif "Connection refused" in str(error):
        why = "nothing listens there"
    else:
        cause: BaseException = error
        while cause.__cause__ or cause.__context__:
            cause = cause.__cause__ or cause.__context__ or cause
        why = str(cause).split(": ", 1)[-1][:200]
    remedy = f"is `netboot serve` running? The address is from {client.hint}"
    return ApiError(f"cannot reach the service at {client.server}: {why}", remedy, CANNOT_TELL)


def _not_netboot(client: Client) -> ApiError:
    remedy = f"check the address (from {client.hint})"
    return ApiError(f"what answers at {client.server} is not netboot's management API", remedy, 1)


def _refused(client: Client, answer: Any) -> click.ClickException:
    try:
        error = answer.json()["error"]
        message, remedy = str(error["message"]), str(error["remedy"])
        message = "\n".join([*map(str, error.get("faults", ())), message])
    except (ValueError, KeyError, TypeError):
        return _not_netboot(client)
    field = str(error.get("field", ""))
    if (option := _gives(field)) is not None:
        return click.BadParameter(message.removeprefix(f"{field}: "), click.get_current_context(), option)
    status: int = answer.status_code
    if status == 404:
        code = UNKNOWN
    elif status in (401, 403, 409, 422):
        code = NOT_ALLOWED
    elif status in (502, 503, 504):
        code = CANNOT_TELL
    else:
        code = 1
    return ApiError(message, remedy, code)


def _gives(field: str) -> click.Parameter | None:
    """The option, or argument, by which the running command says a value of the API: the one of its name, as
    `strategy.bake` is said by `--bake`."""
    context = click.get_current_context(silent=True)
    name = field.rpartition(".")[2]
    options = context.command.params if context is not None else ()
    return next((each for each in options if each.name in (name, SAID_BY.get(name))), None)
