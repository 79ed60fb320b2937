"""A plan for dnsmasq 2.80 or newer, as lines of its configuration file (dnsmasq(8))."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from netboot.dhcp.plan import FIRMWARE, Net, Plan

_SERVICES = {"bios": ("x86PC",), "x64": ("X86-64_EFI", "BC_EFI"), "arm64": ("ARM64_EFI",)}
"""Kinds of client of `pxe-service`, which is all that a proxy can tell; UEFI HTTP Boot takes none of it."""


def render(plan: Plan, tftp_root: PurePosixPath | None = None) -> str:
    """The whole text. `tftp_root`: dnsmasq's own TFTP server hands out this folder."""
    return "".join(f"{line}\n" for line in _lines(plan, tftp_root))


def _lines(plan: Plan, tftp_root: PurePosixPath | None) -> Iterator[str]:
    yield "# Made by `netboot dhcp config --for dnsmasq`; docs/dhcp.md."
    yield "dhcp-match=set:ipxe,175"
    yield "dhcp-userclass=set:ipxe,iPXE"
    for firmware in FIRMWARE:
        for number in firmware.architectures:
            yield f"dhcp-match=set:{firmware.key},option:client-arch,{number}"
    yield f"dhcp-boot=tag:ipxe,{plan.script}"
    for firmware in FIRMWARE:
        server = f",,{plan.tftp}" if plan.tftp is not None and not firmware.http else ""
        yield f"dhcp-boot=tag:!ipxe,tag:{firmware.key},{plan.file(firmware)}{server}"
        if firmware.http:
            yield f"dhcp-option-force=tag:!ipxe,tag:{firmware.key},60,HTTPClient"
    if tftp_root is not None:
        yield "enable-tftp"
        yield f"tftp-root={tftp_root}"
    for number, net in enumerate(plan.nets):
        yield from _net(plan, net, f"net{number}")
    if any(net.first is None for net in plan.nets):
        yield from _proxy(plan)


def _net(plan: Plan, net: Net, tag: str) -> Iterator[str]:
    mask = net.subnet.netmask
    if net.first is None:
        yield f"dhcp-range={net.subnet.network_address},proxy,{mask}"
        return
    yield f"dhcp-range=set:{tag},{net.first},{net.last},{mask},1h"
    yield f"dhcp-option=tag:{tag},option:router" + (f",{net.router}" if net.router is not None else "")
    if net.name_servers:
        yield f"dhcp-option=tag:{tag},option:dns-server,{','.join(map(str, net.name_servers))}"
    for host in plan.hosts_of(net):
        yield f"# {host.name}"
        yield f"dhcp-host={host.mac},{host.address}"


def _proxy(plan: Plan) -> Iterator[str]:
    yield "# Where another server gives the addresses: PXE alone, for UEFI HTTP Boot heeds no proxy of dnsmasq's."
    for firmware in FIRMWARE:
        for kind in _SERVICES.get(firmware.key, ()):
            server = f",{plan.tftp}" if plan.tftp is not None else ""
            yield f'pxe-service=tag:!ipxe,{kind},"netboot",{firmware.file}{server}'
            yield f'pxe-service=tag:ipxe,{kind},"netboot",{plan.script}'
