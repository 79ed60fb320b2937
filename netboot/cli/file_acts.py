"""The audit of acts that no service is asked for: of whoever may write the site's own files.

They are in the same list as acts over the API (`netboot audit`), by the account of this host.
"""

import os
import pwd
import secrets
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any, Literal

import click

from images.errors import StoreError
from images.values import files
from images.values.strict import FaultsError
from netboot.cli.paths import Paths, config_path
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.audit import Record, SqliteAudit

FILES = "files"
"""The role of whoever acts so: whoever may write the files."""
Stood = Mapping[str, Any] | None


def record(
    data: Path,
    act: str,
    facts: Mapping[str, object],
    *,
    before: Stood = None,
    after: Stood = None,
    reason: str = "",
) -> None:
    """A record of what was done, in the audit of a site's `data`; nothing where no service of it has made the file yet.

    `facts`: whom or what it concerns. No secret is in any of them. What cannot be written down is done all the same,
    and said on stderr.
    """
    path = data / "audit.db"
    done = Record(
        at_ms=round(time() * 1000),
        who=_who(),
        role=FILES,
        token="",
        peer="",
        request_id=secrets.token_hex(8),
        act=act,
        reason=reason,
        before=_plain(before),
        after=_plain(after),
        facts=dict(facts),
    )
    try:
        path.lstat()
        SqliteAudit(path).write(done)
    except FileNotFoundError:
        return
    except OSError as error:
        _in_none(f"{path} cannot be looked at: {error.strerror}")
    except StateUnavailableError as error:
        _in_none(str(error))


def record_of(
    paths: Paths,
    folder: Literal["store", "keys"],
    act: str,
    facts: Mapping[str, object],
    *,
    before: Stood = None,
    after: Stood = None,
) -> None:
    """The same of what was done in a folder that an option may name: nothing, where it is not the site's own."""
    try:
        data = _data_of(paths, folder)
    except (StoreError, FaultsError) as error:
        _in_none(str(error))
        return
    if data is not None:
        record(data, act, facts, before=before, after=after)


def _data_of(paths: Paths, folder: Literal["store", "keys"]) -> Path | None:
    """Raises StoreError: nobody can tell whether there is a configuration. FaultsError: of that."""
    if files.look(config_path(paths.config)) is None:
        return None
    config = paths.configured
    own = config.store if folder == "store" else config.keys
    worked_on = paths.store if folder == "store" else paths.keys
    return config.data if worked_on.resolve() == own.resolve() else None


def _in_none(why: str) -> None:
    click.echo(f"it is done, and in no audit: {why}", err=True)


def _plain(stood: Stood) -> dict[str, Any] | None:
    return None if stood is None else dict(stood)


def _who() -> str:
    """The account on this host; who it was before sudo, where they say so: whoever is root may say anything."""
    try:
        account = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        account = str(os.geteuid())
    before = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    return f"{account}@host" + (f" (sudo by {before[:32]})" if before.isprintable() and before else "")
