"""`netboot serve`: the service. `netboot process` is what it starts its processes with."""

import os
import sys
from functools import partial
from pathlib import Path

import click

from netboot.cli.paths import config_option
from netboot.config import Config


@click.command()
@config_option
@click.option(
    "--log-format", type=click.Choice(["logfmt", "json"]), envvar="NETBOOT_LOG_FORMAT", help="Over `log.format`."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    envvar="NETBOOT_LOG_LEVEL",
    help="Over `log.level` and `log.levels`, of all processes.",
)
def command(config: Path | None, log_format: str | None, log_level: str | None) -> None:
    """Run the service in the foreground: scripts and images for machines, the API for operators.

    \b
    SIGTERM, Ctrl-C    stop: no request is cut; again: hurry
    SIGHUP             take of netboot.yaml what `netboot config reload` takes; read inventory, channels and keys again
                       now (changes of these are noticed by themselves)

    It logs to stderr, one event a line: docs/logs.md. Under systemd: deploy/netboot.service.

    \b
      netboot serve --config site/netboot.yaml
    """
    from netboot import logs
    from netboot.cli.paths import config_path, find_config
    from netboot.lifecycle.errors import StateUnavailableError
    from netboot.listeners import ListenError
    from netboot.processes.supervisor import serve
    from netboot.stores.lock import AlreadyRunningError

    adapt = partial(logging_as, form=log_format, level=log_level)
    settings = adapt(find_config(config))
    logs.set_up("supervisor", "supervisor", settings.log)
    if os.geteuid() == 0:
        click.echo(
            "WARNING: running as root. The service needs no privilege: run it as a user of its own\n"
            "         (deploy/netboot.service); for a port below 1024 give it CAP_NET_BIND_SERVICE alone.",
            err=True,
        )
    try:
        serve(settings, config_path(config).absolute(), lambda line: click.echo(line), adapt)
    except (AlreadyRunningError, ListenError, StateUnavailableError) as error:
        from netboot.cli.ends import failed  # brings what no process needs

        raise failed(error) from None
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or settings.data}: {error.strerror}; see `data` in netboot.yaml"
        ) from None


def logging_as(config: Config, form: str | None, level: str | None) -> Config:
    """The same configuration, with what the command line or the environment says of the log."""
    given: dict[str, object] = {"format": form, "level": level, "levels": {} if level is not None else None}
    changed = config.log.model_copy(update={key: said for key, said in given.items() if said is not None})
    return config.model_copy(update={"log": changed})


@click.command(hidden=True)
@click.argument("name")
def process(name: str) -> None:  # noqa: ARG001 — it is there for `ps`
    """Be one of the service's processes, under a supervisor."""
    from netboot.process import OrphanedError, ProcessSpec
    from netboot.processes.start import start

    try:
        start(ProcessSpec.model_validate_json(sys.stdin.buffer.read()))
    except OrphanedError as error:
        from netboot.cli.ends import failed  # likewise

        raise failed(error) from None
