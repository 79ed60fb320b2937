"""A plan for Kea 2.2 or newer (`kea-dhcp4`): client classes and subnets, in JSON."""

import json
from typing import Any

from netboot.dhcp.plan import FIRMWARE, Firmware, Net, Plan

_IPXE = "netboot-ipxe"
_FREE = f"not member('{_IPXE}')"


def render(plan: Plan) -> str:
    """The whole text. Without subnets: what goes into an existing configuration, its client classes."""
    ipxe = {"name": _IPXE, "test": "option[175].exists or substring(option[77].hex,0,4) == 'iPXE'"}
    classes = [ipxe | {"boot-file-name": plan.script}, *(_class(plan, firmware) for firmware in FIRMWARE)]
    served: dict[str, Any] = {"client-classes": classes}
    if plan.nets:
        served = {
            "interfaces-config": {"interfaces": ["*"]},
            "lease-database": {"type": "memfile"},
            "valid-lifetime": 3600,
            **served,
            "subnet4": [_subnet(plan, net) for net in plan.nets],
        }
    return json.dumps({"Dhcp4": served}, indent=2) + "\n"


def _class(plan: Plan, firmware: Firmware) -> dict[str, Any]:
    is_one = " or ".join(f"option[93].hex == 0x{number:04x}" for number in firmware.architectures)
    made = {
        "name": f"netboot-{firmware.key}",
        "test": f"({is_one}) and {_FREE}",
        "boot-file-name": plan.file(firmware),
    }
    if firmware.http:
        echo = {"name": "vendor-class-identifier", "data": "HTTPClient", "always-send": True}
        return {**made, "option-data": [echo]}
    return {**made, "next-server": str(plan.tftp)} if plan.tftp is not None else made


def _subnet(plan: Plan, net: Net) -> dict[str, Any]:
    """Its `id` is of its address, so that leases stay those of their network when others come and go."""
    made: dict[str, Any] = {"id": max(int(net.subnet.network_address), 1), "subnet": str(net.subnet)}
    options = [("routers", [net.router] if net.router is not None else []), ("domain-name-servers", net.name_servers)]
    data = [{"name": name, "data": ", ".join(map(str, given))} for name, given in options if given]
    if net.first is not None:
        made["pools"] = [{"pool": f"{net.first} - {net.last}"}]
    if data:
        made["option-data"] = data
    hosts = [
        {"hw-address": host.mac, "ip-address": str(host.address), "user-context": {"machine": host.name}}
        for host in plan.hosts_of(net)
    ]
    return {**made, "reservations": hosts} if hosts else made
