"""`netboot machine delete-node`: asks the running service."""

from typing import TYPE_CHECKING

from netboot.cli.ordering import machine_act

if TYPE_CHECKING:
    from netboot.client.models import Deleted


def _words(answer: "Deleted") -> str:
    machine, node = answer["machine"], answer["node"]
    if not answer["did"]:
        return f"{machine} has no Node: the cluster knows no {node}"
    held = f", and {machine} held, for it is cordoned" if answer["held"] else ""
    return f"the Node {node} {'would be' if answer['dry_run'] else 'is'} deleted{held}"


@machine_act(lambda client: client.delete_node.delete_node, _words)
def delete_node() -> None:
    """Delete the Node of MACHINE, which is off or dead, so that its Pods are started elsewhere.

    Refused while the Node is Ready. netboot itself deletes no Node for being silent: see that the machine is off. One
    that runs on has no Node until it boots again, which makes another. Where somebody cordoned the Node, the machine
    is held.

    \b
      netboot machine delete-node gpu-001 --reason "its power supply is dead"
    """
