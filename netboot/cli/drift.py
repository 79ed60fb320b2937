"""`netboot drift`: machines that run something else than they would boot now. Asks the running service."""

import click

from netboot.cli.client import CANNOT_TELL, Connection, connection_options
from netboot.cli.output import output_option, show
from netboot.cli.times import moment

NAMES_SHOWN = 10


@click.command()
@connection_options
@output_option
def command(connection: Connection, output: str) -> None:
    """List machines whose running image, kernel arguments, profile or class is not what they would boot now, and why.

    It takes a reboot to bring one back in step. Machines of which no boot is known are not in it.

    \b
    Exit status: 0 every machine is as it should be, 1 some are not (or the command failed),
    2 wrong usage, 4 not allowed, 5 cannot tell: right now, of some boots what they were served, or of any machine.

    \b
      netboot drift
      netboot drift --output json | jq -r '.drift[].machine'
    """
    found = connection.open().drift.list()
    rows = [
        (each["machine"], each["what"], each["runs"], each["wanted"], moment(each["since"]), each["why"])
        for each in found["drift"]
    ]
    empty = f"no drift: {found['machines'] - len(found['untold'])} machines run what they would boot now"
    show(output, found, ("machine", "what", "runs", "wanted", "since", "why"), rows, empty)
    if output != "json":
        _tell("what these boots were served is not known (any more)", found["untold"])
        _tell("no boot is known of", found["unknown"])
    nothing_known = bool(found["unknown"]) and not found["machines"]
    raise click.exceptions.Exit(1 if rows else CANNOT_TELL if found["untold"] or nothing_known else 0)


def _tell(what: str, names: list[str]) -> None:
    if names:
        click.echo(f"{what}: {', '.join(names[:NAMES_SHOWN])}{' …' if len(names) > NAMES_SHOWN else ''}", err=True)
