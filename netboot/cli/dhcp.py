"""`netboot dhcp`: what a DHCP server, and a TFTP server, have to be told about this site. Prints and copies."""

import re
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from images.values import files
from netboot.cli.given_files import NamedFolder
from netboot.cli.outcomes import ApiError, cannot
from netboot.cli.paths import config_option, find_config
from netboot.dhcp import binaries, dnsmasq, generic, isc, kea
from netboot.dhcp.plan import BINARIES, Host, Net, Plan

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.machines.values import Inventory

_OTHERS = {"kea": kea.render, "isc": isc.render, "generic": generic.render}
_PARTS = {
    "kea": "client classes alone; put them into that of your Kea",
    "isc": "who is told what alone; include it in that of your dhcpd",
}
"""What is printed without networks, where that is no file that a server can have as it is."""


@click.group("dhcp")
def group() -> None:
    """What DHCP and TFTP servers have to be told, so that machines find this site."""


@group.command("config")
@config_option
@click.option(
    "--for",
    "server",
    type=click.Choice(("dnsmasq", *_OTHERS)),
    required=True,
    help="Whose configuration; generic: a table of options for whoever runs another server.",
)
@click.option(
    "--tftp-root",
    type=click.Path(path_type=PurePosixPath),
    help="With dnsmasq: let it hand out this folder by TFTP, which `netboot dhcp tftp-folder` fills.",
)
def print_config(config: Path | None, server: str, tftp_root: PurePosixPath | None) -> None:
    """Print the configuration of a DHCP server for this site, or the part of it that boots machines.

    Who is told what comes from provisioning.url, and networks from `dhcp.subnets`; without those the part alone is
    printed that goes into a configuration that you have, as stderr says. Machines whose inventory has an IPv4 address
    (node.addresses) in a range's network always get that. Print into a file of its own, never over that of a server
    that runs: look at it, then take it over, or include it, as docs/dhcp.md shows.

    \b
      netboot dhcp config --for kea > netboot-kea.json
      netboot dhcp config --for isc > netboot-dhcpd.conf
      netboot dhcp config --for dnsmasq --tftp-root /srv/tftp > /etc/dnsmasq.d/netboot.conf
      netboot dhcp config --for generic
    """
    from netboot.stores.inventory import declarations_of

    if tftp_root is not None and server != "dnsmasq":
        raise click.UsageError(
            "--tftp-root is of dnsmasq alone: leave it out, for other DHCP servers have no TFTP server"
        )
    if tftp_root is not None and not re.fullmatch(r"/[A-Za-z0-9._/-]+", str(tftp_root)):
        raise click.UsageError("--tftp-root: give an absolute path of letters, digits, '.', '_', '-' and '/'")
    loaded = find_config(config)
    plan = plan_of(loaded, declarations_of(loaded).judged(None).inventory, own_tftp=tftp_root is not None)
    text = dnsmasq.render(plan, tftp_root) if server == "dnsmasq" else _OTHERS[server](plan)
    click.echo(text, nl=False)
    if server in _PARTS and not plan.nets:
        click.echo(f"no `dhcp.subnets`: this is no whole configuration, but {_PARTS[server]}", err=True)


@group.command("tftp-folder")
@config_option
@click.argument("folder", type=NamedFolder(made=True))
def tftp_folder(config: Path | None, folder: Path) -> None:
    """Copy iPXE's binaries of this machine (provisioning.ipxe) into FOLDER, for a TFTP server to hand out.

    Files of these names are replaced; nothing else there is touched.

    \b
      netboot dhcp tftp-folder /srv/tftp
    """
    source = find_config(config).provisioning.ipxe
    there = binaries.read(source)
    if not there:
        raise click.ClickException(
            f"{source} has none of {', '.join(BINARIES)}: `apt-get install ipxe`, or set provisioning.ipxe"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError:  # all above it was made, or is there
        words = f"cannot make {folder}: the file system there takes no folders"
        raise ApiError(words, "name a folder of a disk, like /srv/tftp", 1) from None
    except OSError as error:
        raise cannot(f"cannot make {folder}", error) from None
    for name, data in there.items():
        files.write(folder / name, data)
        click.echo(f"{folder / name}")
    missing = [name for name in BINARIES if name not in there]
    if missing:
        click.echo(f"not in {source}, and not needed unless machines ask for it: {', '.join(missing)}", err=True)


def plan_of(config: "Config", inventory: "Inventory", *, own_tftp: bool = False) -> Plan:
    """What a DHCP server has to know. `own_tftp`: it is the TFTP server itself, unless the configuration names one.

    Raises:
        click.ClickException: nobody can say where the TFTP server is.
    """
    url = config.provisioning.url
    nets = []
    for one in config.dhcp.subnets:
        first, last = one.range if one.range is not None else (None, None)
        nets.append(Net(one.subnet, first, last, one.router, one.name_servers))
    tftp = config.dhcp.tftp
    if tftp is None and not own_tftp:
        try:
            tftp = IPv4Address(urlsplit(url).hostname or "")
        except ValueError:
            raise click.ClickException(
                f"the host of {url} is no IPv4 address: say with dhcp.tftp, in the configuration, which IPv4 address "
                "firmware fetches iPXE from by TFTP"
            ) from None
    hosts = (
        Host(machine.name, machine.match.macs[0], IPv4Address(address))
        for machine in inventory.machines
        for address in [each for each in machine.node.addresses if "." in each and ":" not in each][:1]
        if machine.match.macs
    )
    plan = Plan(url, tftp, tuple(nets), tuple(hosts))
    _refuse_odd(plan)
    return plan


def _refuse_odd(plan: Plan) -> None:
    """Addresses that cannot be a machine's, which no DHCP server's own checker says."""
    given = [net for net in plan.nets if net.first is not None]
    odd = {
        address: net.subnet
        for net in given
        for address in (net.router, net.subnet.network_address, net.subnet.broadcast_address)
    }
    for host in plan.hosts:
        if host.address in odd:
            raise click.ClickException(
                f"machine {host.name} has the address {host.address}, which is the router of {odd[host.address]}, or "
                "its first or last address: change node.addresses in the inventory, or dhcp.subnets in the "
                "configuration"
            )
