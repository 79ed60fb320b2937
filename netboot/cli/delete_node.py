"""`netboot machine delete-node`: asks the running service."""

import click

from netboot.cli.acts import dry_run_option, why_option
from netboot.cli.client import Connection, api_command, segment
from netboot.cli.output import show


@click.command("delete-node")
@click.argument("machine")
@why_option
@dry_run_option
@api_command
def command(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Delete the Node of MACHINE, which is off or dead, so that its Pods are started elsewhere.

    Refused while the Node is Ready. netboot itself deletes no Node for being silent: see that the machine is off. One
    that runs on has no Node until it boots again, which makes another. Where somebody cordoned the Node, the machine
    is held.

    \b
      netboot machine delete-node gpu-001 --reason "its power supply is dead"
    """
    body = {"reason": reason, "dry_run": dry_run}
    answer = connection.open().post(f"/v1/machines/{segment(machine)}/delete-node", body)
    if not answer["did"]:
        words = f"{machine} has no Node: the cluster knows no {answer['node']}"
    else:
        held = f", and {machine} held, for it is cordoned" if answer["held"] else ""
        words = f"the Node {answer['node']} {'would be' if dry_run else 'is'} deleted{held}"
    show(output, answer, (), (), words)
