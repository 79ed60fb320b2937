"""The audit of acts that no service is asked for: of whoever may write the site's own files.

They are in the same list as acts over the API (`netboot audit`), by the account of this host.
"""

import os
import pwd
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any, Literal

import click

from images.errors import ImageError, StoreError
from images.values import files
from images.values.strict import FaultsError
from netboot.cli.paths import Paths, config_path
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.audit import Record, SqliteAudit

FILES = "files"
"""The role of whoever acts so: whoever may write the files."""
Stood = Mapping[str, Any] | None
Write = Callable[[Stood, Stood, str], None]
"""Records an act: what was before, what is now, and the record's `result`."""
IN_PART = "done-in-part"
_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def recorded(stands: Callable[[], Stood], write: Write) -> Iterator[None]:
    """Around an act on files: what is otherwise afterwards is written down, however the act ended: also where it failed
    on its way, was interrupted, or is in place and a power cut may undo that. One that failed and changed nothing is
    not; one that was done and changed nothing is `unchanged`.

    `stands()`: what the act concerns, without secrets, as it is now.
    """
    before = stands()
    try:
        yield
    except BaseException:
        _write_down(before, stands, write, failed=True)
        raise
    _write_down(before, stands, write, failed=False)


def _write_down(before: Stood, stands: Callable[[], Stood], write: Write, *, failed: bool) -> None:
    with _uninterrupted():
        try:
            after = stands()
        except (ImageError, FaultsError, StateUnavailableError, OSError) as error:
            click.echo(f"whether it is done cannot be told, and no audit has it: {error}", err=True)
            return
        if after != before:
            write(before, after, IN_PART if failed else "done")
        elif not failed:
            write(before, after, "unchanged")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C, and a request to end, wait until the block is over: what is done is to be written down first."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def record(
    data: Path,
    act: str,
    facts: Mapping[str, object],
    *,
    before: Stood = None,
    after: Stood = None,
    reason: str = "",
    machine: str = "",
    result: str = "done",
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
        machine=machine,
        reason=reason,
        result=result,
        before=_plain(before),
        after=_plain(after),
        facts=dict(facts),
    )
    try:
        path.lstat()
        with _uninterrupted():
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
    result: str = "done",
) -> None:
    """The same of what was done in a folder that an option may name: where it is of no site that is known here, that is
    said on stderr."""
    try:
        data = _data_of(paths, folder)
    except (StoreError, FaultsError) as error:
        _in_none(str(error))
        return
    if data is None:
        _in_none("no configuration here has this folder")
    else:
        record(data, act, facts, before=before, after=after, result=result)


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
