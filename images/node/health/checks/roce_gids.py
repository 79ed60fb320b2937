"""RoCE ports and their GIDs. Source: Linux Documentation/ABI/testing/sysfs-class-infiniband (`gid_attrs/types`)."""

import ipaddress

from ..machine import Machine
from ..rdma import HOME, Port, physical
from ..result import Check, Result, counted, listed


def routable(gid: str) -> bool:
    """Whether a GID is an address that others reach: not empty, not link-local. Never raises."""
    try:
        address = ipaddress.IPv6Address(gid)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_link_local)


def look(machine: Machine) -> Result:
    """Ports that are up, with at least one RoCE v2 GID of an address. Virtual functions do not count: eight of them
    stay up beside a port that is down."""
    present, expected = physical(machine, "Ethernet"), machine.expected.roce_ports
    usable = {port.name: _gids(machine, port) for port in present}
    facts = {
        "ports": [f"{port.name} {port.state} {port.rate_gbps:g}, {usable[port.name]} RoCE v2 GIDs" for port in present]
    }
    if not present and not expected:
        return Result("absent", "no RoCE port, and none is expected", facts=facts)
    well = [port for port in present if port.up and usable[port.name]]
    wrong = [
        f"{port.name} has no RoCE v2 GID with an address"
        if port.up
        else f"{port.name} is {port.state} ({port.physical})"
        for port in present
        if port not in well
    ]
    if expected is not None and len(well) < expected:
        summary = f"{counted(expected, 'RoCE port')} expected, {len(well) or 'none'} in order"
        remedy = "does the interface have its address (networkctl), its link, its module (mlx5_ib)?"
        return Result("fail", summary + (f": {listed(wrong)}" if wrong else ""), remedy, facts)
    if expected is None and wrong:
        return Result("warn", f"RoCE: {listed(wrong)}", "say how many there should be: `health.roce_ports`", facts)
    return Result("pass", f"{counted(len(well), 'RoCE port')} up, with GIDs", facts=facts)


def _gids(machine: Machine, port: Port) -> int:
    """How many of its GIDs are RoCE v2 with an address. An empty place of the table cannot be read."""
    at = f"{HOME}/{port.device}/ports/{port.number}"
    second = (
        index for index in machine.names(f"{at}/gids") if machine.text(f"{at}/gid_attrs/types/{index}") == "RoCE v2"
    )
    return sum(routable(machine.text(f"{at}/gids/{index}") or "") for index in second)


CHECK = Check("roce-gids", "critical", 30, look)
