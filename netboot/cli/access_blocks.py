"""`netboot access block`, `unblock`, `blocked`: people of an issuer or a cluster who may do nothing here."""

from pathlib import Path
from time import time

import click
from pydantic import ValidationError

from netboot.cli.access_file import edit, there_is
from netboot.cli.client import UNKNOWN, ApiError
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.cli.times import moment
from netboot.clock import rfc3339
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessTokens, Blocked


def _person(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return Blocked(name=value, at_ms=0).name
    except ValidationError:
        raise click.BadParameter("a name as `netboot whoami` shows it, like oidc:bob@example.com") from None


@click.command()
@click.argument("name", callback=_person)
@config_option
def block(name: str, config: Path | None) -> None:
    """Let NAME, who comes from an issuer or a cluster, do nothing here from now on, whatever token they have.

    It is for the time until the issuer or the cluster has taken it back; `unblock` ends it. Tokens of this site are
    revoked: `netboot access token revoke`.

    \b
    Example:  netboot access block oidc:bob@example.com
    """
    made = Blocked(name=name, at_ms=round(time() * 1000))

    def add(there: AccessTokens) -> AccessTokens:
        others = tuple(each for each in there.blocked if each.name != name)
        if len(others) >= access_tokens.MOST:
            raise ApiError(f"{access_tokens.MOST} are blocked, and no more can be", "unblock some", 1)
        return there.model_copy(update={"blocked": (*others, made)})

    edit(find_config(config), "access-block", name, add)
    click.echo(f"{name} is blocked")


@click.command()
@click.argument("name", callback=_person)
@config_option
def unblock(name: str, config: Path | None) -> None:
    """End what `block` began: NAME may do what their role says.

    \b
    Example:  netboot access unblock oidc:bob@example.com
    """

    def remove(there: AccessTokens) -> AccessTokens:
        kept = tuple(each for each in there.blocked if each.name != name)
        if len(kept) == len(there.blocked):
            raise ApiError(f"{name} is not blocked", "see `netboot access blocked`", UNKNOWN)
        return there.model_copy(update={"blocked": kept})

    edit(find_config(config), "access-unblock", name, remove)
    click.echo(f"{name} is not blocked any more")


@click.command()
@config_option
@output_option
def blocked(config: Path | None, output: str) -> None:
    """List who is blocked.

    \b
    Example:  netboot access blocked
    """
    there = there_is(find_config(config).management).blocked
    said = [{"name": each.name, "at": rfc3339(each.at_ms)} for each in there]
    rows = [(each.name, moment(each.at_ms)) for each in there]
    show(output, {"blocked": said}, ("name", "since"), rows, "nobody")
