"""`netboot backup` and `netboot restore`: a site's files, kept and put back. Work on local files."""

import sys
import tempfile
import time
from pathlib import Path

import click

from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, config_path, find_config


@click.command()
@click.argument("file", metavar="FILE|-")
@config_option
@output_option
def backup(file: str, config: Path | None, output: str) -> None:
    """Write a backup of the site into FILE ('-': stdout): all that cannot be made again, but no images.

    In it: configuration, inventory, enrolled TPMs (data/enrolment.db), boots and traces (data/state.db), the key of
    boot ids, signing keys, secrets, TLS, kubeconfigs, channels and the signed site bundle; every file with its digest.
    The service may run meanwhile.

    IT HOLDS SECRETS: private keys, tokens, kubeconfigs. FILE gets mode 0600; encrypt it before it leaves this machine.

    \b
    Example:
      netboot backup /var/backups/netboot-$(date +%F).tar.gz
      netboot backup - | age -r age1… > site.tar.gz.age
    """
    from netboot.stores.backup import BackupError, open_private, write_backup

    site, settings = config_path(config).absolute(), find_config(config)
    now_ms = time.time_ns() // 1_000_000
    if file == "-":
        if sys.stdout.isatty():
            raise click.UsageError("a backup is no text for a terminal: name a file, or pipe it on")
        try:
            contents = write_backup(settings, site, sys.stdout.buffer, now_ms)
        except BackupError as error:
            raise click.ClickException(str(error)) from None
        click.echo(f"{len(contents.files)} files; it holds secrets", err=True)
        return
    path = Path(file)
    staged = path.with_name(f".{path.name}.{now_ms}")
    try:
        with open_private(staged) as out:
            contents = write_backup(settings, site, out, now_ms)
            out.flush()
        staged.rename(path)
    except BackupError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None
    finally:
        staged.unlink(missing_ok=True)
    value = {"file": str(path), **contents.model_dump(mode="json")}
    summary = f"{path}: {len(contents.files)} files, {path.stat().st_size} bytes, mode 0600. It holds secrets."
    show(output, value, (), (), summary)


@click.command()
@click.argument("file", metavar="FILE|-")
@config_option
@click.option("--force", is_flag=True, help="Over a site that is there: its files are replaced.")
@click.option("--check", is_flag=True, help="Verify the backup, and change nothing.")
@output_option
def restore(file: str, config: Path | None, force: bool, check: bool, output: str) -> None:
    """Put the backup FILE ('-': stdin) in place, all of it or nothing, after verifying all of it.

    Files go where the configuration in the backup says, relative paths from the folder of --config (netboot.yaml here).
    Refused while the service runs. Owners are not kept: run it as the service's user.

    \b
    Example:
      mkdir site && cd site && netboot restore /var/backups/netboot-2026-06-01.tar.gz
      netboot restore --check backup.tar.gz
    """
    from netboot.stores.backup import BackupError
    from netboot.stores.lock import AlreadyRunningError
    from netboot.stores.restore import read_backup
    from netboot.stores.restore import restore as put_in_place

    site = config_path(config).absolute()
    if site.exists() and not (force or check):
        raise click.ClickException(f"there is a site already ({site}): --force replaces it, --config names another")
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".restore-", dir=site.parent) as folder,
            sys.stdin.buffer if file == "-" else Path(file).open("rb") as data,
        ):
            contents = read_backup(data, Path(folder))
            value = contents.model_dump(mode="json")
            if check:
                show(output, value, (), (), f"a whole backup of site {contents.site}: {len(contents.files)} files")
                return
            written = put_in_place(contents, Path(folder), site)
    except (BackupError, AlreadyRunningError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    summary = (
        f"restored {len(written)} files of site {contents.site}; next: `netboot config check`, then `netboot serve`"
    )
    show(output, value, (), (), summary)
