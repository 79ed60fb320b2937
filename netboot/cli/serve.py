"""`netboot serve`: the service. `netboot process` is what it starts its processes with."""

import os
import sys
from pathlib import Path

import click

from netboot.cli.paths import config_option


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Run the service in the foreground: scripts and images for machines, the API for operators.

    \b
    SIGTERM, Ctrl-C    stop: no request is cut; again: hurry
    SIGHUP             read inventory, channels and keys again now (changes are noticed by themselves)

    It logs to stderr, one event a line. Under systemd: deploy/netboot.service.

    \b
      netboot serve --config site/netboot.yaml
    """
    from netboot import logs
    from netboot.cli.paths import find_config
    from netboot.lifecycle.errors import StateUnavailableError
    from netboot.listeners import ListenError
    from netboot.processes.supervisor import serve
    from netboot.stores.lock import AlreadyRunningError

    settings = find_config(config)
    logs.set_up("supervisor")
    if os.geteuid() == 0:
        click.echo(
            "WARNING: running as root. The service needs no privilege: run it as a user of its own\n"
            "         (deploy/netboot.service); for a port below 1024 give it CAP_NET_BIND_SERVICE alone.",
            err=True,
        )
    try:
        serve(settings, lambda line: click.echo(line))
    except (AlreadyRunningError, ListenError, StateUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or settings.data}: {error.strerror}; see `data` in netboot.yaml"
        ) from None


@click.command(hidden=True)
@click.argument("name")
def process(name: str) -> None:  # noqa: ARG001 — it is there for `ps`
    """Be one of the service's processes, under a supervisor."""
    from netboot.process import OrphanedError, ProcessSpec
    from netboot.processes.start import start

    try:
        start(ProcessSpec.model_validate_json(sys.stdin.buffer.read()))
    except OrphanedError as error:
        raise click.ClickException(str(error)) from None
