"""`netboot node`: what is done on a machine itself."""

import sys

import click

from images.node.health import record as recorder


@click.group("node")
def group() -> None:
    """Work on this machine itself, not by the service."""


@group.command("record")
@click.argument("folder", type=click.Path())
def record(folder: str) -> None:
    """Record this machine's hardware into a new FOLDER, for a bug report or a fixture.

    \b
    FOLDER/machine.txt       what the health checks read: files of /sys and /proc, output of nvidia-smi, nvme, ipmitool
    FOLDER/provenance.json   what machine, when, which kernel, driver and tools

    Serials, UUIDs, MAC and IP addresses, GUIDs, the host's name and programs' names become numbers. Read machine.txt
    before you send it. Run it as root: what cannot be read is not recorded. Nothing on the machine is changed.

    A machine that netboot booted has no `netboot`; there it is:

    \b
      cd /usr/lib/netboot && python3 -Bs -m node.health.record /tmp/this-machine

    \b
      sudo netboot node record this-machine
    """
    sys.exit(recorder.main(["record", folder]))
