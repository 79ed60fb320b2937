"""`netboot drift`: machines that run something else than they would boot now. Asks the running service."""

import click

from netboot.cli.client import Connection, connection_options
from netboot.cli.output import output_option, show
from netboot.cli.times import moment

NAMES_SHOWN = 10


@click.command()
@connection_options
@output_option
def command(connection: Connection, output: str) -> None:
    """List machines whose running image, kernel arguments, profile or class is not what they would boot now, and why.

    It takes a reboot to bring one back in step. Machines that never booted are not in it.

    \b
    Exit status: 0 every machine is as it should be, 1 some are not (or the command failed),
    2 wrong usage, 4 not allowed, 5 cannot tell right now (try again).

    \b
      netboot drift
      netboot drift --output json | jq -r '.drift[].machine'
    """
    found = connection.open().get("/v1/drift")
    rows = [
        (each["machine"], each["what"], each["runs"], each["wanted"], moment(each["since_ms"]), each["why"])
        for each in found["drift"]
    ]
    empty = f"no drift: {found['machines'] - len(found['untold'])} machines run what they would boot now"
    show(output, found, ("machine", "what", "runs", "wanted", "since", "why"), rows, empty)
    if found["untold"] and output != "json":
        names = ", ".join(found["untold"][:NAMES_SHOWN]) + (" …" if len(found["untold"]) > NAMES_SHOWN else "")
        click.echo(f"what these boots were served is not known (any more): {names}", err=True)
    raise click.exceptions.Exit(1 if rows else 0)
