"""The `netboot` command: errors become one message and an exit status. What takes time to import is imported inside, so
that Ctrl-C has an answer from the first moment."""

import os
import sys
from typing import Any

from netboot.cli import standard_output

INTERRUPTED = 130
"""As a shell says it of what SIGINT ends (128 + 2)."""


def main(arguments: list[str] | None = None) -> Any:
    """Entry point of the `netboot` command.

    Which status means what: docs/command-line.md.
    """
    try:
        standard_output.watch()
        if status := _run(arguments):
            sys.exit(status)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


def _run(arguments: list[str] | None) -> int:
    """Give the command, say what it ends by, and return the exit status."""
    import click

    from netboot.cli.commands import cli

    try:
        # click knows terminals, and not https://no-color.org
        color = False if os.environ.get("NO_COLOR") else None
        status = cli.main(args=arguments, prog_name="netboot", standalone_mode=False, color=color)
        sys.stdout.flush()
    except standard_output.OutputError as error:
        standard_output.discard()
        if error.unread:
            return standard_output.CLOSED_PIPE
        click.echo(f"Error: {error}", err=True)
        return 1
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.NoSuchCommand as error:
        from netboot.cli.suggestions import no_such_command

        no_such_command(error).show()
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - any other is raised again
        return _end_by(error)
    return status or 0  # click hands the status of its own Exit back in this mode; commands return nothing


def _end_by(error: Exception) -> int:
    """Say what to do about an error of ours, and give the exit status. Any other is a defect, and raised again."""
    import click

    from images.values.strict import FaultsError
    from netboot.cli.ends import BASES, ended  # only here: --help and completion need none of it
    from netboot.cli.outcomes import cannot, shown
    from netboot.client.errors import ClientError

    if isinstance(error, ClientError) or (isinstance(error, OSError) and isinstance(error.filename, str)):
        said = shown(error) if isinstance(error, ClientError) else cannot(f"cannot use {error.filename}", error)
        said.show()
        return said.exit_code
    if not isinstance(error, BASES):
        raise error
    words, status = ended(error)
    click.echo(words if isinstance(error, FaultsError) else f"Error: {words}", err=True)  # faults begin with a file
    return status


if __name__ == "__main__":
    main()
