"""`netboot login`, `logout` and `whoami`: people who prove themselves to an issuer, and as whom they are known."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from rich.console import Console

from netboot.cli.client import NOT_ALLOWED, UNKNOWN, ApiError, Client, Connection, api_command, with_exit_codes
from netboot.cli.given_files import NamedFile
from netboot.cli.output import say, show
from netboot.cli.times import moment
from netboot.client import Service, contexts
from netboot.client.contexts import Context, Contexts, Login, change, with_login
from netboot.client.named import check_authorities
from netboot.config_access import LOOPBACK, parse_issuer
from netboot.lifecycle.errors import IssuerUnavailableError, LoginRefusedError

if TYPE_CHECKING:
    from netboot.oidc.issuer import Granted

LONGEST_SECONDS = 1800
"""For which a code is waited for, whatever the issuer says."""
SLOWER_SECONDS = 5
"""By which it is asked less often where it says `slow_down` (RFC 8628, 3.5); and the interval where it says none."""
_LATER = ("authorization_pending", "slow_down")


def wait(seconds: float) -> None:
    """Until it may be asked again."""
    time.sleep(seconds)


_context_option = click.option("--context", "name", help="The context to log in to.  [default: the one in use]")


@click.command()
@_context_option
@click.option(
    "--issuer-certificate-authority",
    "authority",
    type=NamedFile(),
    help="PEM that vouches for the issuer's certificate.  [default: what the system trusts]",
)
@click.option("--plain-http", is_flag=True, help="Also where the service is asked over a network without TLS.")
@with_exit_codes
def login(name: str | None, authority: Path | None, plain_http: bool) -> None:
    """Log in at the issuer that the service names, in a browser on whatever machine: an address and a code are shown.

    The service says for which client and scopes that is, and gets the token: compare both with what you expect. So it
    has to be asked in TLS, or on this machine.

    The tokens are kept in the context (a file of mode 0600) and renewed by themselves, until the issuer ends that.

    \b
    Example:
      netboot context add fra --server https://netboot.fra.example:8081
      netboot login
    """
    if authority is not None:
        check_authorities(authority, "name another with --issuer-certificate-authority")
    context = _context(name)
    _require_tls(context, plain_http)
    offered = _client(context).logins.get()["oidc"]
    if offered is None:
        remedy = (
            "an admin of the service configures `management.oidc`; or use a token: `netboot context add --token-file`"
        )
        raise ApiError(f"the service at {context.server} has no login", remedy, UNKNOWN)
    begun = Login(
        issuer=_issuer(offered["issuer"]),
        client_id=str(offered["client_id"]),
        audience=offered["audience"],
        certificate_authority=authority.absolute() if authority is not None else None,
        token="",
        expires_ms=0,
    )
    scopes = " ".join(map(str, offered["scopes"]))
    audience = f", audience {begun.audience}" if begun.audience is not None else ""
    say(f"At {begun.issuer}, for the client {begun.client_id}: scopes {scopes}{audience}", err=True)
    made = _by_device(begun, scopes)
    who = _client(context, made.token).logins.whoami()
    change(lambda there: with_login(there, context.name, made))
    click.echo(f"logged in to {context.name} as {who['name']}, {who['role']}")


@click.command()
@_context_option
@with_exit_codes
def logout(name: str | None) -> None:
    """Forget the login of a context, and take it back at its issuer.

    \b
    Example:  netboot logout
    """
    context = _context(name)
    if context.login is None:
        raise ApiError(f"context {context.name} has no login", "see `netboot context list`", UNKNOWN)
    change(lambda there: with_login(there, context.name, None))
    click.echo(f"logged out of {context.name}{ended(context.login)}")


def ended(login: Login) -> str:
    """Take a login that is forgotten here back at its issuer; what there is to say of it, "" where all is done."""
    from netboot.client.renewal import issuer_of
    from netboot.oidc.issuer import Client as IssuersClient

    try:
        if login.refresh_token and issuer_of(login).revoke(IssuersClient(login.client_id), login.refresh_token):
            return ""
    except (IssuerUnavailableError, LoginRefusedError) as error:
        say(f"WARNING: the issuer was not told: {error}", err=True)
    return "; its token opens things until it ends"


@click.command()
@api_command
def whoami(connection: Connection, output: str) -> None:
    """Say as whom the service knows you, with which role, and until when.

    \b
    Example:  netboot whoami
    """
    who = connection.open().logins.whoami()
    until = moment(who["expires_at"]) if who["expires_at"] is not None else "nobody says"
    row = (who["name"], who["role"], who["issuer"] or "this site", until)
    show(output, who, ("name", "role", "known by", "until"), [row])


def _context(name: str | None) -> Context:
    """The context of that name, or in use. Raises ApiError: there is none."""
    there: Contexts = contexts.read()
    chosen = name or there.current
    context = there.named(chosen) if chosen is not None else None
    if context is None:
        words = f"no context has the name {name}" if name is not None else "no context is in use"
        raise ApiError(words, "make one: `netboot context add NAME --server URL`", UNKNOWN)
    return context


def _require_tls(context: Context, plain_http: bool) -> None:
    """Raises ApiError: whoever stands between us and the service could name an issuer's client of theirs."""
    if context.server.startswith("https://") or plain_http or urlsplit(context.server).hostname in LOOPBACK:
        return
    remedy = "give the service TLS (`management.tls`), or say --plain-http where that network is yours alone"
    raise ApiError(f"a login by way of {context.server} would cross a network unencrypted", remedy, NOT_ALLOWED)


def _issuer(value: object) -> str:
    try:
        return parse_issuer(str(value))
    except ValueError as error:
        raise ApiError(f"the service names no issuer that can be asked: {error}", "see management.oidc", 1) from None


def _client(context: Context, token: str = "") -> Client:
    hint = f"context {context.name}"
    return Client(Service(context.server, token, hint, context.certificate_authority, context.proxy))


def _by_device(begun: Login, scopes: str) -> Login:
    """RFC 8628: somebody says yes in a browser, which may be anywhere. Raises ApiError."""
    from netboot.client.renewal import issuer_of, unavailable, with_tokens
    from netboot.oidc.issuer import DEVICE_CODE
    from netboot.oidc.issuer import Client as IssuersClient

    issuer, client = issuer_of(begun), IssuersClient(begun.client_id)
    try:
        code, interval, seconds = _shown(issuer.device(client, scopes))
        grant = {"grant_type": DEVICE_CODE, "device_code": code}
        with _waiting():
            return with_tokens(begun, _awaited(lambda: issuer.token(client, grant), interval, seconds))
    except LoginRefusedError as error:
        raise ApiError(f"not logged in: {error}", "begin again: `netboot login`", NOT_ALLOWED) from None
    except IssuerUnavailableError as error:
        raise unavailable(begun.issuer, error) from None


def _awaited(ask: Callable[[], "Granted"], interval: float, seconds: float) -> "Granted":
    """What `ask` gives once somebody has said yes. Raises LoginRefusedError: no, or not in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wait(interval)
        try:
            return ask()
        except LoginRefusedError as error:
            if error.code not in _LATER:
                raise
            interval += SLOWER_SECONDS if error.code == "slow_down" else 0
        except IssuerUnavailableError:  # it comes back, or the code ends
            interval = min(interval * 2, 60)
    raise LoginRefusedError("nobody entered the code in time")


def _shown(asked: dict[str, Any]) -> tuple[str, float, float]:
    """Says where to go; the device code, the seconds between two questions, and for how many it counts."""
    code, user, where = (asked.get(name) for name in ("device_code", "user_code", "verification_uri"))
    whole = asked.get("verification_uri_complete")
    if not (isinstance(code, str) and _plain(user) and _plain(where)):
        raise LoginRefusedError("the issuer's answer is no device authorisation (RFC 8628, 3.2)")
    seconds = _number(asked.get("expires_in"), 600, LONGEST_SECONDS)
    click.echo(f"Open {where} in a browser, on any machine, and enter the code\n\n    {user}\n", err=True)
    if _plain(whole):
        click.echo(f"or open {whole}, and compare the code.", err=True)
    until = moment(round((time.time() + seconds) * 1000))
    click.echo(f"Waiting until {until}; Ctrl-C gives up, and changes nothing.", err=True)
    return code, _number(asked.get("interval"), SLOWER_SECONDS, 60), seconds


def _plain(value: object) -> bool:
    """Whether a terminal may show it."""
    return isinstance(value, str) and 0 < len(value) <= 1000 and value.isascii() and value.isprintable()


def _number(value: object, default: int, most: int) -> float:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return min(float(value), most) if sound and isinstance(value, int | float) else default


@contextmanager
def _waiting() -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status("waiting for the code to be entered"):
        yield
