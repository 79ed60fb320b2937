"""A plan for ISC's dhcpd 4.4 (dhcpd.conf(5), dhcp-eval(5))."""

from collections.abc import Iterator
from ipaddress import IPv4Address

from netboot.dhcp.plan import FIRMWARE, Firmware, Net, Plan


def render(plan: Plan) -> str:
    """The whole text. Without subnets: what goes into an existing configuration."""
    return "".join(f"{line}\n" for line in _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield "# Made by `netboot dhcp config --for isc`; docs/dhcp.md."
    if not plan.nets:
        yield "# No whole configuration, for there is no `dhcp.subnets`: include it in that of your dhcpd."
    yield "option netboot-arch code 93 = unsigned integer 16;"
    yield "option netboot-ipxe code 175 = string;"
    yield 'if exists netboot-ipxe or substring(option user-class, 0, 4) = "iPXE" {'
    yield f'  filename "{plan.script}";'
    for firmware in FIRMWARE:
        is_one = " or ".join(f"option netboot-arch = 00:{number:02x}" for number in firmware.architectures)
        yield f"}} elsif {is_one} {{"
        yield from _told(plan, firmware)
    yield "}"
    if any(net.first is not None for net in plan.nets):
        yield "authoritative;"
    for net in plan.nets:
        yield from _subnet(plan, net)


def _told(plan: Plan, firmware: Firmware) -> Iterator[str]:
    if firmware.http:
        yield '  option vendor-class-identifier "HTTPClient";'
    elif plan.tftp is not None:
        yield f"  next-server {plan.tftp};"
    yield f'  filename "{plan.file(firmware)}";'


def _subnet(plan: Plan, net: Net) -> Iterator[str]:
    yield f"subnet {net.subnet.network_address} netmask {net.subnet.netmask} {{"
    for first, last in _free(plan, net):
        yield f"  range {first} {last};"
    if net.router is not None:
        yield f"  option routers {net.router};"
    if net.name_servers:
        yield f"  option domain-name-servers {', '.join(map(str, net.name_servers))};"
    yield "}"
    for host in plan.hosts_of(net):
        yield f"# {host.name}"
        declared = f"hardware ethernet {host.mac}; fixed-address {host.address};"
        yield f"host netboot-{host.mac.replace(':', '')} {{ {declared} }}"


def _free(plan: Plan, net: Net) -> Iterator[tuple[IPv4Address, IPv4Address]]:
    """Its range in parts, around machines' own addresses: dhcpd would give one to another machine (dhcpd.conf(5),
    "Dynamic and static leases")."""
    if net.first is None or net.last is None:
        return
    first = net.first
    for taken in sorted(host.address for host in plan.hosts_of(net) if net.first <= host.address <= net.last):
        if first < taken:
            yield first, taken - 1
        first = taken + 1
    if first <= net.last:
        yield first, net.last
