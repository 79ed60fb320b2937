"""`netboot access`: who may use the management API, and as what. Works on the site's own files."""

from pathlib import Path
from time import time
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from images.values.durations import duration
from netboot.cli import access_blocks, host_token
from netboot.cli.access_file import change, in_place_of
from netboot.cli.client import UNKNOWN, ApiError
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.cli.times import moment
from netboot.clock import rfc3339
from netboot.lifecycle.roles import Role
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessToken, TokenName

_NAME: TypeAdapter[str] = TypeAdapter(TokenName)
DAY = 86_400
LONGEST_DAYS = 366
_FORM = f"a whole number and s, m, h or d, like 12h or 30d, from 1m to {LONGEST_DAYS}d"


@click.group()
def group() -> None:
    """Who may use the management API, and with which role: viewer, operator or admin.

    \b
    Example:
      netboot access token create alice --role operator --ttl 90d > alice.token
      netboot access token list
      netboot access token revoke alice
      netboot access block oidc:bob@example.com
    """


for _command in (access_blocks.block, access_blocks.unblock, access_blocks.blocked):
    group.add_command(_command)


@group.group()
def token() -> None:
    """Tokens of the management API, each with a name, a role and an end; their hashes are in `management.tokens`.

    Whoever may write that file gives access. The running service reads it again at once.

    \b
    Example:
      netboot access token create dashboard --role viewer --ttl 366d
    """


def _name(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return _NAME.validate_python(value)
    except ValidationError:
        raise click.BadParameter(
            "use lower-case letters, digits, '-', '.', '_' and '@', at most 63, like alice"
        ) from None


def _ttl(_context: click.Context, _option: click.Parameter, value: str) -> int:
    days = value[:-1]
    try:
        whole = value.endswith("d") and days.isascii() and days.isdigit() and len(days) < 6
        seconds = int(days) * DAY if whole else duration(value)
    except ValueError:
        raise click.BadParameter(_FORM) from None
    if not 60 <= seconds <= LONGEST_DAYS * DAY:
        raise click.BadParameter(_FORM)
    return seconds


@token.command()
@click.argument("name", callback=_name)
@click.option("--role", type=click.Choice([str(role) for role in Role]), required=True, help="What its bearer may do.")
@click.option(
    "--ttl", metavar="DURATION", default="90d", show_default=True, callback=_ttl, help="It ends after so long."
)
@config_option
@output_option
def create(name: str, role: str, ttl: int, config: Path | None, output: str) -> None:
    """Make a token for NAME, and print it: here and nowhere else, for the site keeps its hash.

    A viewer looks; an operator acts on machines and images; an admin decides who may join too, and what inventory is in
    force. The acts of its bearer are recorded under NAME (`netboot audit`).

    \b
    Example:
      (umask 077; netboot access token create alice --role operator --ttl 90d > alice.token)
    """
    config_, text, now = find_config(config), access_tokens.new_token(), round(time() * 1000)
    made = AccessToken(
        name=name, role=Role(role), sha256=access_tokens.hash_of(text), created_ms=now, expires_ms=now + ttl * 1000
    )

    def add(tokens: tuple[AccessToken, ...]) -> tuple[AccessToken, ...]:
        if any(each.name == name and each.expires_ms > now for each in tokens):
            remedy = f"choose another name, or `netboot access token revoke {name}` first"
            raise ApiError(f"{name} has a token already", remedy, 1)
        return in_place_of(tokens, made, config_.management.tokens)

    change(config_, "access-token-create", name, add)
    if output == "table":
        click.echo(f"{name} is {role} until {moment(made.expires_ms)}; this is shown once:", err=True)
    show(output, {**_shown(made, now), "token": text}, (), (), text)


@token.command("list")
@config_option
@output_option
def list_(config: Path | None, output: str) -> None:
    """List tokens, never what opens anything. Those of `management.token_file`, of admins, are not among them.

    \b
    Example:  netboot access token list
    """
    path, now = find_config(config).management.tokens, round(time() * 1000)
    tokens = [_shown(each, now) for each in access_tokens.read(path).tokens]
    rows = [
        (
            each["name"],
            each["role"],
            each["id"],
            moment(each["created_at"]),
            f"{moment(each['expires_at'])}{' (expired)' if each['expired'] else ''}",
        )
        for each in tokens
    ]
    empty = "no named token: `netboot access token create` makes one"
    columns, names = ("name", "role", "id", "created", "expires"), [each["name"] for each in tokens]
    show(output, {"tokens": tokens}, columns, rows, empty, names=names)


@token.command()
@click.argument("name")
@config_option
def revoke(name: str, config: Path | None) -> None:
    """Revoke NAME's token: from now on it opens nothing.

    \b
    Example:  netboot access token revoke alice
    """

    def remove(tokens: tuple[AccessToken, ...]) -> tuple[AccessToken, ...]:
        kept = tuple(each for each in tokens if each.name != name)
        if len(kept) == len(tokens):
            raise ApiError(f"no token has the name {name}", "see `netboot access token list`", UNKNOWN)
        return kept

    change(find_config(config), "access-token-revoke", name, remove)
    click.echo(f"the token of {name} is revoked")


@token.command()
@click.option(
    "--ttl",
    metavar="DURATION",
    default=f"{LONGEST_DAYS}d",
    show_default=True,
    callback=_ttl,
    help="It ends after so long.",
)
@config_option
def host(ttl: int, config: Path | None) -> None:
    """Make a new token for the commands of this host, in the place of the one that is in `management.token_file`.

    It is an admin's, of the name host-admin; whatever that file had before opens nothing from now on. Nothing is
    shown: commands on this host read the file. Who else used what was in it needs a token of their own: `create`.

    \b
    Example:
      netboot access token host
      netboot access token host --ttl 30d
    """
    config_ = find_config(config)
    made = host_token.renew(config_, ttl * 1000)
    said = f"commands of this host are {made.name}, {made.role}, until {moment(made.expires_ms)}"
    click.echo(f"{said}: {config_.management.token_file}")


def _shown(token: AccessToken, now_ms: int) -> dict[str, Any]:
    """`id`: by which the log and `netboot audit` name it; it opens nothing."""
    said = token.model_dump(mode="json", include={"name", "role"})
    said |= {"created_at": rfc3339(token.created_ms), "expires_at": rfc3339(token.expires_ms)}
    return {**said, "id": token.sha256[:8], "expired": token.expires_ms <= now_ms}
