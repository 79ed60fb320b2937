"""`netboot completion`: the script that teaches a shell to complete netboot's commands."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    For this session of bash:  source <(netboot completion bash)
    For every one:             netboot completion bash > /etc/bash_completion.d/netboot
    """
    from netboot.cli.commands import cli

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(cli, {}, "netboot", "_NETBOOT_COMPLETE").source())
