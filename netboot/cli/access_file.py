"""Changing `management.tokens`, the file of who may use the management API; each change is in the service's audit."""

import os
import pwd
import secrets
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import click

from images.errors import NotDurableError
from netboot.cli.outcomes import cannot
from netboot.config import Config
from netboot.config_management import Management
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessToken, AccessTokens
from netboot.stores.audit import Record, SqliteAudit

FILES = "files"
"""The role of whoever acts so: whoever may write the files."""


def change(
    config: Config, act: str, name: str, made: Callable[[tuple[AccessToken, ...]], tuple[AccessToken, ...]]
) -> None:
    """The same of its tokens alone."""
    edit(config, act, name, lambda there: there.model_copy(update={"tokens": made(there.tokens)}))


def edit(config: Config, act: str, name: str, made: Callable[[AccessTokens], AccessTokens]) -> None:
    """Change the file, and record the act of that name in the audit, where a service has made one."""
    management, stood = config.management, list[dict[str, Any] | None]()
    there_is(management)  # one that is lost is not begun anew by the way

    def edited(there: AccessTokens) -> AccessTokens:
        after = made(there)
        stood[:] = [_of(there, name), _of(after, name)]
        return after

    in_place: NotDurableError | None = None
    try:
        access_tokens.change(management.tokens, edited)
    except NotDurableError as error:
        in_place = error
    except OSError as error:
        raise cannot(f"cannot write {management.tokens}", error) from None
    _audited(config.data / "audit.db", act, name, *stood)
    if in_place is not None:
        raise in_place


def _audited(path: Path, act: str, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    try:
        _write(path, act, name, before, after)
    except StateUnavailableError as error:
        click.echo(f"it is done, and in no audit: {error}", err=True)


def _of(there: AccessTokens, name: str) -> dict[str, Any] | None:
    """What the file has of that name, without what opens anything."""
    found = [each.model_dump(mode="json", exclude={"sha256"}) for each in (*there.tokens, *there.blocked)]
    return next((each for each in found if each["name"] == name), None)


def there_is(management: Management) -> AccessTokens:
    """The file. Raises NoTokensError: it cannot be used, or is gone where an issuer or a cluster names people."""
    there = access_tokens.read(management.tokens)
    if there is access_tokens.ABSENT and management.others:
        raise access_tokens.absent(management.tokens)
    return there


def _write(path: Path, act: str, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    """A record of it; nothing where no service of this site has made the file yet. `name`: whom it concerns.

    Raises:
        StateUnavailableError: the file is there, and cannot be written.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StateUnavailableError(f"{path} cannot be looked at: {error.strerror}") from None
    record = Record(
        at_ms=round(time() * 1000),
        who=_who(),
        role=FILES,
        token="",
        peer="",
        request_id=secrets.token_hex(8),
        act=act,
        before=before,
        after=after,
        facts={"name": name},
    )
    SqliteAudit(path).write(record)


def _who() -> str:
    """The account on this host; who it was before sudo, where they say so: whoever is root may say anything."""
    try:
        account = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        account = str(os.geteuid())
    before = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    return f"{account}@host" + (f" (sudo by {before[:32]})" if before.isprintable() and before else "")
