"""`netboot backup` and `netboot restore`: a site's files, kept and put back. Work on local files."""

import os
import pwd
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from images.values import files
from netboot.cli import init_options
from netboot.cli.given_files import STDIN, NamedFile
from netboot.cli.outcomes import cannot
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, config_path, find_config, site_option
from netboot.cli.times import moment
from netboot.cli.written_objects import ENROLMENTS
from netboot.clock import rfc3339

if TYPE_CHECKING:
    from netboot.cli.cluster_objects import Unread
    from netboot.config import Config
    from netboot.stores.backup import Contents
    from netboot.stores.restored_access import Access

_RESTORE = "restore"
_STDOUT = 1


@click.command()
@click.argument("file", metavar="FILE|-")
@config_option
@click.option("--force", is_flag=True, help="Over a file of that name: it is replaced once the new one is whole.")
@output_option
def backup(file: str, config: Path | None, force: bool, output: str) -> None:
    """Write a backup of the site into FILE ('-': stdout): all that cannot be made again, but no images.

    In it: configuration, inventory, enrolled TPMs (data/enrolment.db), who is held (data/intents.db), rollouts
    (data/rollouts.db), boots and traces (data/state.db, data/history.db), the key of boot ids, signing keys, secrets,
    TLS, kubeconfigs, channels and the signed site bundle; every file with its digest. The service may run meanwhile.

    Where the configuration has state in a cluster, the objects are in it as YAML, as the service's own accounts read
    them now. With the API server away FILE is made all the same; what it lacks is said, and the exit status is 5, or 4
    where the account may not read them.

    IT HOLDS SECRETS: private keys, tokens, kubeconfigs. FILE gets mode 0600; encrypt it before it leaves this machine.

    \b
    Example:
      netboot backup /var/backups/netboot-$(date +%F).tar.gz
      netboot backup - | age -r age1… > site.tar.gz.age
    """
    from netboot.cli.cluster_objects import require_all
    from netboot.cli.ends import failed
    from netboot.stores.backup import BackupError

    site, settings = config_path(config).absolute(), find_config(config)
    try:
        if file == "-":
            with _cleared_when_ended():
                unread = _to_stdout(settings, site)
            require_all(unread, "the backup")
            return
        if not Path(file).name:  # '', '.' or '/'
            raise click.BadParameter(
                f"{file!r} is no name of a file: name one, or '-' for standard output", param_hint="FILE"
            )
        if os.path.lexists(file) and not force:
            raise click.ClickException(f"{file} is there already: name another, or give --force to replace it")
        with _cleared_when_ended():
            contents, unread = _to_file(Path(file), settings, site)
    except BackupError as error:
        raise failed(error) from None
    path = Path(file)
    value = {"file": str(path), **_facts(contents), "lacks": {kind: str(error) for kind, error in unread.items()}}
    summary = f"{path}: {len(contents.files)} files, {path.stat().st_size} bytes, mode 0600. It holds secrets."
    show(output, value, (), (), summary)
    require_all(unread, str(path))


@contextmanager
def _cleared_when_ended() -> Iterator[None]:
    before = {number: signal.signal(number, _ended) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended(number: int, _frame: object) -> NoReturn:
    """So that what was copied, which holds secrets, is removed. The status is a shell's of what the signal ends.

    Who reads may take nothing more, and an archive writes as it is closed: that goes nowhere.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _to_stdout(settings: "Config", site: Path) -> "Unread":
    from netboot.cli.cluster_objects import kept_of
    from netboot.stores.backup import write_backup

    if sys.stdout.isatty():
        raise click.UsageError("a backup is no text for a terminal: name a file, or pipe it on")
    objects, unread = kept_of(settings)
    contents = write_backup(settings, site, sys.stdout.buffer, time.time_ns() // 1_000_000, objects)
    click.echo(f"{len(contents.files)} files; it holds secrets", err=True)
    return unread


def _to_file(path: Path, settings: "Config", site: Path) -> "tuple[Contents, Unread]":
    """All of it or nothing: whatever has that name stays until the backup is complete."""
    from netboot.cli.cluster_objects import kept_of
    from netboot.stores import leftovers
    from netboot.stores.backup import COMMAND, open_private, write_backup

    objects, unread = kept_of(settings)
    now_ms = time.time_ns() // 1_000_000
    leftovers.sweep(path.parent, COMMAND)
    for each in leftovers.left(path.parent):
        click.echo(f"WARNING: {each} has secrets in it, left by a backup that was killed: `rm -r {each}`", err=True)
    staged = path.with_name(f"{leftovers.prefix_of(COMMAND)}{secrets.token_hex(4)}")
    try:
        with open_private(staged) as out, leftovers.locked(staged):
            contents = write_backup(settings, site, out, now_ms, objects)
            out.flush()
        staged.rename(path)
    except OSError as error:
        raise cannot(f"cannot write {path}", error) from None
    finally:
        staged.unlink(missing_ok=True)
    return contents, unread


@click.command()
@click.argument("file", metavar="FILE|-", type=NamedFile("a file that `netboot backup` wrote", piped=True))
@site_option
@click.option("--force", is_flag=True, help="Over a site that is there: its files are replaced.")
@click.option("--check", is_flag=True, help="Verify the backup, and change nothing.")
@click.option(
    "--owner", callback=init_options.account, help="Account of the service: gets the state and what is secret, no keys."
)
@output_option
def restore(
    file: Path, config: Path | None, force: bool, check: bool, owner: pwd.struct_passwd | None, output: str
) -> None:
    """Put the backup FILE ('-': stdin) in place, all of it or nothing, after verifying all of it.

    Files go where the configuration in the backup says, relative paths from the folder of --config (netboot.yaml here).
    Refused while the service runs. Owners are not kept: run it as the service's user, or as root with --owner.

    Objects of a cluster that are in the backup are put into restored-objects/ beside the configuration. Nothing is
    written into a cluster: where they are lost there, `kubectl create -f` makes them again.

    \b
    Example:
      mkdir site && cd site && netboot restore /var/backups/netboot-2026-06-01.tar.gz
      netboot restore --check backup.tar.gz
      netboot restore backup.tar.gz --config /etc/netboot/netboot.yaml --owner netboot
    """
    from netboot.cli import ownership
    from netboot.cli.ends import failed
    from netboot.config import load_config
    from netboot.stores import leftovers
    from netboot.stores.backup import BackupError, objects_folder
    from netboot.stores.lock import AlreadyRunningError
    from netboot.stores.restore import restore as put_in_place
    from netboot.stores.restored_access import keep_blocks

    site = config_path(config).absolute()
    if files.look(site) is not None and not (force or check):
        raise click.ClickException(
            f"there is a site already ({site}): give --force to replace it, or name another with --config"
        )
    try:
        if not check:
            site.parent.mkdir(parents=True, exist_ok=True)
            leftovers.sweep(site.parent, _RESTORE)
        with (
            tempfile.TemporaryDirectory(
                prefix=leftovers.prefix_of(_RESTORE), dir=None if check else site.parent
            ) as folder,
            leftovers.locked(Path(folder)),
            sys.stdin.buffer if str(file) == STDIN else files.opened(file) as data,
        ):
            contents = _read(data, Path(folder), file)
            value = _facts(contents)
            if check:
                show(output, value, (), (), f"a whole backup of site {contents.site}: {len(contents.files)} files")
                return
            access = keep_blocks(contents, Path(folder), site)
            written = put_in_place(contents, Path(folder), site)
        if owner is not None:
            ownership.give_restored(written, site.parent, load_config(site), owner)
    except (BackupError, AlreadyRunningError) as error:
        raise failed(error) from None
    except OSError as error:
        raise cannot(f"{error.filename} cannot be used", error) from None
    _warn(access, contents.created_ms)
    summary = (
        f"restored {len(written)} files of site {contents.site}; next: `netboot config check`, then `netboot serve`"
    )
    folder_of_objects = objects_folder(site)
    if any(path.parent == folder_of_objects for path in written):
        summary += (
            f"\nobjects of the cluster are in {folder_of_objects}, and were not written there; where they are lost:"
            f"\n  kubectl create -f {folder_of_objects}"
        )
    if (enrolments := folder_of_objects / ENROLMENTS) in written:
        summary += f"\n  kubectl replace --subresource=status -f {enrolments}  # only of objects that were just made"
    show(output, value, (), (), summary)


def _read(data: BinaryIO, folder: Path, file: Path) -> "Contents":
    from netboot.stores.backup import BackupError
    from netboot.stores.backup_archive import read_backup

    try:
        return read_backup(data, folder)
    except BackupError as error:
        raise BackupError(f"{'standard input' if str(file) == STDIN else file}: {error}") from None


def _facts(contents: "Contents") -> dict[str, Any]:
    facts = contents.model_dump(mode="json")
    return facts | {"created_at": rfc3339(facts.pop("created_ms"))}


def _warn(access: "Access", created_ms: int) -> None:
    """What the backup's tokens and blocks undo."""
    if access.there:
        when = f"are those of {moment(created_ms)}"
        click.echo(f"WARNING: tokens and blocks {when}: revoke and block again whom you did since", err=True)
    if access.blocked:
        click.echo(f"still blocked, though not in the backup: {', '.join(access.blocked)}", err=True)
    if access.revived:
        again = ", ".join(access.revived)
        click.echo(f"WARNING: tokens that this site did not have open things again: {again}", err=True)
